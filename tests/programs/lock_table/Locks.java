// SPDX-License-Identifier: MIT
// Locks.java - two locks of Java, monitors or (second argument: locks) ReentrantLocks, used as the first argument says.
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

public class Locks {
	static class Lock extends ReentrantLock {
	}

	static final Lock first = new Lock(), second = new Lock();
	static final boolean[] taken = new boolean[2];
	static boolean monitors = true;

	interface Action {
		void run() throws InterruptedException;
	}

	static void under(Lock lock, Action action) throws InterruptedException {
		if (monitors) {
			synchronized (lock) {
				action.run();
			}
		} else {
			lock.lock();
			try {
				action.run();
			} finally {
				lock.unlock();
			}
		}
	}

	static void say(int number) {
		synchronized (taken) {
			taken[number] = true;
		}
	}

	static void await(int number) throws InterruptedException {
		for (;;) {
			synchronized (taken) {
				if (taken[number])
					return;
			}
			Thread.sleep(1);
		}
	}

	static Thread start(Action action) {
		Thread thread = new Thread(() -> {
			try {
				action.run();
			} catch (InterruptedException end) {
			}
		});

		thread.setDaemon(true);
		thread.start();
		return thread;
	}

	static void contend() throws InterruptedException {
		Thread other = start(() -> under(first, () -> {
			say(0);
			await(1);
			Thread.sleep(200);
		}));
		long[] ended = new long[1];

		await(0);
		say(1);
		long began = System.nanoTime();
		under(first, () -> ended[0] = System.nanoTime());
		other.join();
		System.out.println(ended[0] - began);
	}

	static boolean waits(Thread thread) {
		Thread.State state = thread.getState();

		return state == Thread.State.BLOCKED || state == Thread.State.WAITING;
	}

	static void cross(Lock own, Lock other, int number) throws InterruptedException {
		under(own, () -> {
			say(number);
			await(1 - number);
			under(other, () -> {
			});
		});
	}

	static void nest(Lock outer, Lock inner) throws InterruptedException {
		under(outer, () -> under(inner, () -> Thread.sleep(1)));
	}

	public static void main(String[] what) throws InterruptedException {
		monitors = what.length < 2;
		switch (what[0]) {
		case "contend" -> contend();
		case "deadlock" -> {
			Thread one = start(() -> cross(first, second, 0)), other = start(() -> cross(second, first, 1));
			await(0);
			await(1);
			while (!waits(one) || !waits(other))
				Thread.sleep(1);
			Thread.sleep(300);
		}
		case "orders" -> {
			start(() -> nest(first, second)).join();
			start(() -> nest(second, first)).join();
		}
		case "correct" -> {
			Thread one = start(() -> nest(first, second)), other = start(() -> nest(first, second));
			one.join();
			other.join();
		}
		case "pool" -> {
			LinkedBlockingQueue<Integer> jobs = new LinkedBlockingQueue<>();
			Thread one = start(jobs::take), other = start(jobs::take);
			Thread.sleep(200);
			jobs.put(1);
			jobs.put(2);
			one.join();
			other.join();
		}
		default -> System.exit(2);
		}
	}
}
