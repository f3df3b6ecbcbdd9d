// SPDX-License-Identifier: MIT
// Contended.java - four threads want a monitor and a lock for 20 of every 80 µs; prints wall time and processor time in ns.
import java.util.concurrent.locks.ReentrantLock;

public class Contended {
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();
	static long sum;

	static long work(int rounds, long value) {
		for (int i = 0; i < rounds; i++)
			value = value * 6364136223846793005L + 1442695040888963407L;
		return value;
	}

	static void use(int count, int rounds) {
		long own = 1;
		for (int i = 0; i < count; i++) {
			own = work(3 * rounds, own);
			if (i % 2 == 0) {
				synchronized (monitor) {
					sum = work(rounds, sum);
				}
			} else {
				lock.lock();
				sum = work(rounds, sum);
				lock.unlock();
			}
		}
		sum += own;
	}

	static void run(int count, int rounds) throws InterruptedException {
		Thread[] threads = new Thread[4];
		for (int i = 0; i < threads.length; i++)
			(threads[i] = new Thread(() -> use(count, rounds))).start();
		for (Thread thread : threads)
			thread.join();
	}

	static long used() {
		return ProcessHandle.current().info().totalCpuDuration().get().toNanos();
	}

	public static void main(String[] words) throws InterruptedException {
		int count = Integer.parseInt(words[0]), rounds = 20_000;
		run(count / 10, rounds);
		long wall = System.nanoTime(), cpu = used();
		run(count, rounds);
		System.out.println((System.nanoTime() - wall) + " " + (used() - cpu));
	}
}
