// SPDX-License-Identifier: MIT
// Parks.java - threads that java.util.concurrent parks: for a lock, for a while, for a permit, for work.
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

public class Parks {
	interface Action {
		void run() throws InterruptedException;
	}

	static final ReentrantLock till = new ReentrantLock();
	static final Semaphore permits = new Semaphore(0);
	static final LinkedBlockingQueue<Integer> jobs = new LinkedBlockingQueue<>();

	/** Waits until another thread has been parked. */
	static void awaitParked(Thread thread) throws InterruptedException {
		while (thread.getState() != Thread.State.WAITING)
			Thread.sleep(1);
		Thread.sleep(20);
	}

	static Thread start(String name, Action action) {
		Thread thread = new Thread(() -> {
			try {
				action.run();
			} catch (InterruptedException end) {
			}
		}, name);
		thread.start();
		return thread;
	}

	static void pay() {
		till.lock(); // line 36
		till.unlock();
	}

	static void giveUp() throws InterruptedException {
		till.tryLock(100, TimeUnit.MILLISECONDS);
	}

	public static void main(String[] none) throws InterruptedException {
		till.lock();
		Thread payer = start("payer", Parks::pay);
		awaitParked(payer);
		start("impatient", Parks::giveUp).join();
		till.unlock();
		payer.join();
		Thread taker = start("taker", permits::acquire);
		awaitParked(taker);
		permits.release();
		taker.join();
		Thread worker = start("worker", jobs::take);
		awaitParked(worker);
		jobs.put(1);
		worker.join();
	}
}
