# SPDX-License-Identifier: MIT
# Mutexes and monitors in all the ways in which a thread leaves them; what Ruby refuses is printed.
require "fiddle"
require "monitor"
require "timeout"

def refused
  yield
rescue ThreadError, TypeError, RuntimeError => error
  puts error.class, error.message
end

def quietly(&block)
  Thread.new { Thread.current.report_on_exception = false; block.call }
end

def wait_until_asleep(thread)
  Thread.pass until thread.status == "sleep"
end

LOCK = Mutex.new
BELL = ConditionVariable.new

# A thread that waits for the lock is stopped by an exception, by its end, and by a time limit.
LOCK.lock
raised = quietly { LOCK.lock }
wait_until_asleep(raised)
raised.raise("stop")
refused { raised.join }
killed = quietly { LOCK.synchronize { abort } }
wait_until_asleep(killed)
killed.kill.join
late = quietly { Timeout.timeout(0.01) { LOCK.lock } }
refused { late.join }
LOCK.unlock

# What is no one's to do.
refused { LOCK.synchronize { LOCK.lock } } if ARGV[0] == "again"
refused { LOCK.unlock }
LOCK.synchronize { refused { quietly { LOCK.unlock }.join } }
LOCK.synchronize { refused { LOCK.sleep("long") } }
trap("USR1") { refused { LOCK.lock } }
Process.kill("USR1", $$)
sleep 0.001
LOCK.synchronize { Process.kill("USR1", $$); sleep 0.001 } if ARGV[0] == "again"
p LOCK.try_lock, LOCK.try_lock
LOCK.unlock

# A thread ends with the lock, which Ruby releases; the next one may be the same to the kernel.
2.times { Thread.new { LOCK.lock }.join }
LOCK.synchronize { p LOCK.owned? }

# Conditions, with and without an end.
asleep = Thread.new { LOCK.synchronize { BELL.wait(LOCK); BELL.wait(LOCK, 0.001); LOCK.sleep(0.001) } }
wait_until_asleep(asleep)
LOCK.synchronize { BELL.signal }
asleep.join
asleep = Thread.new { LOCK.synchronize { BELL.wait(LOCK) } }
wait_until_asleep(asleep)
LOCK.synchronize { asleep.kill }
asleep.join

# A monitor is taken again by the thread that has it.
monitor = Monitor.new
2.times.map { Thread.new { 20.times { monitor.synchronize { monitor.synchronize { Thread.pass } } } } }.each(&:join)

# The memory of locks that are gone is used anew, in another order; the objects of some are moved.
3.times do
  locks = 100.times.map { Mutex.new }
  locks.each_cons(2) { |one, two| one.synchronize { two.synchronize { } } }
  locks = nil
  GC.start
  locks = 100.times.map { Mutex.new }.reverse
  locks.first.lock
  GC.compact if GC.respond_to?(:compact)
  locks.first.unlock
  locks.each_cons(2) { |one, two| one.synchronize { two.synchronize { } } }
  locks = nil
  GC.start
end

# The type of an extension's objects may have no name.
type = Fiddle::Pointer.malloc(256, Fiddle::RUBY_FREE)
type[0, 256] = "\0" * 256
types = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP]
make = Fiddle::Function.new(Fiddle::Handle::DEFAULT["rb_data_typed_object_zalloc"], types, Fiddle::TYPE_VOIDP, need_gvl: true)
made = make.call(Fiddle.dlwrap(Object), 8, type)
puts made.null?

# A child has only the thread that forks.
Process.wait(fork { LOCK.synchronize { } })
