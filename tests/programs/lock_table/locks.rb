# SPDX-License-Identifier: MIT
# Two locks of Ruby, used in the way that is asked for; with a second argument they are monitors.
require "monitor"

KIND = ARGV[1] ? Monitor : Mutex
FIRST, SECOND = KIND.new, KIND.new
TAKEN = [false, false]

def wait_for(number)
  sleep 0.0001 until TAKEN[number]
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def nest(outer, inner)
  outer.synchronize { inner.synchronize { sleep 0.001 } }
end

case ARGV[0]
when "contend"
  other = Thread.new { FIRST.synchronize { TAKEN[0] = true; wait_for 1; sleep 0.2 } }
  wait_for 0
  TAKEN[1] = true
  began = now
  FIRST.synchronize { puts now - began }
  other.join
when "deadlock"
  [[0, FIRST, SECOND], [1, SECOND, FIRST]].each do |own, outer, inner|
    Thread.new { outer.synchronize { TAKEN[own] = true; wait_for 1 - own; inner.synchronize { } } }
  end
  wait_for 0
  wait_for 1
  sleep 0.3
  exit! 0
when "orders"
  # the first one stays: Ruby would make the second one of the same thread of the kernel
  first = Thread.new { nest FIRST, SECOND; TAKEN[0] = true; wait_for 1 }
  wait_for 0
  Thread.new { nest SECOND, FIRST; TAKEN[1] = true }.join
  first.join
when "pool"
  jobs = Thread::Queue.new
  threads = 2.times.map { Thread.new { jobs.pop } }
  sleep 0.2
  threads.each { jobs << nil }
  threads.each(&:join)
when "correct"
  2.times.map { Thread.new { nest FIRST, SECOND } }.each(&:join)
end
