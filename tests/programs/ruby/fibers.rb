# SPDX-License-Identifier: MIT
# Fibers of one thread wait for a lock in turn; then another thread waits for it.
LOCK = Mutex.new
COUNT = [0]

class Turns
  def initialize
    @ready = []
    @blocked = {}
    @sleeping = {}
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def run
    until @ready.empty? && @blocked.empty? && @sleeping.empty?
      ready, @ready = @ready, []
      ready.each(&:resume)
      over = @sleeping.select { |_, till| till <= now }.keys
      over.each { |fiber| @sleeping.delete(fiber); fiber.resume if fiber.alive? }
      Thread.pass
    end
  end

  def close
    run
  end

  def block(_, timeout = nil)
    @blocked[Fiber.current] = true
    Fiber.yield
  end

  def unblock(_, fiber)
    @blocked.delete(fiber)
    @ready << fiber
  end

  def kernel_sleep(duration = nil)
    @sleeping[Fiber.current] = now + duration
    Fiber.yield
  end

  def io_wait(*)
  end

  def fiber(&block)
    fiber = Fiber.new(blocking: false, &block)
    fiber.resume
    fiber
  end
end

Thread.new do
  Fiber.set_scheduler(Turns.new)
  4.times { Fiber.schedule { 3.times { LOCK.synchronize { sleep 0.001; COUNT[0] += 1 } } } }
end.join
other = Thread.new { LOCK.synchronize { COUNT[0] += 1; sleep 0.005 } }
Thread.pass until COUNT[0] == 13
LOCK.synchronize { COUNT[0] += 1 }
other.join
p COUNT[0]
