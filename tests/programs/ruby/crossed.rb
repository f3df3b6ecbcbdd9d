# SPDX-License-Identifier: MIT
# The first thread and another one wait for one another's locks, a mutex and a monitor; others wait for other things.
require "monitor"

MUTEX, MONITOR, HELD = Mutex.new, Monitor.new, Mutex.new
WAITING = []

def waits(name, &block)
  Thread.new { Thread.current.name = name; block.call }.tap { |one| WAITING << one }
end

waits("queue") { Mutex.new.synchronize { Queue.new.pop } }
waits("condition") { own = Mutex.new; own.synchronize { ConditionVariable.new.wait(own) } }
waits("holder") { HELD.synchronize { loop { sleep 3600 } } }
Thread.pass until HELD.locked?
waits("waiter") { HELD.synchronize { } }
waits("other") { MONITOR.synchronize { Thread.pass until MUTEX.locked?; MUTEX.synchronize { } } }
Thread.pass until WAITING.first(4).all? { |one| one.status == "sleep" }
MUTEX.synchronize do
  Thread.pass until WAITING.all? { |one| one.status == "sleep" }
  puts "ready"
  $stdout.flush
  MONITOR.synchronize { }
end
