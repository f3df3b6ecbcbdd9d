// SPDX-License-Identifier: MIT
// Waits.java - threads that wait for the monitor of an object, for the monitor of a class, and for a notification.
public class Waits {
	static class Account {
	}

	static final Account account = new Account();

	/** Waits until another thread has to wait for a monitor. */
	static void awaitBlocked(Thread thread) throws InterruptedException {
		while (thread.getState() != Thread.State.BLOCKED)
			Thread.sleep(1);
		Thread.sleep(20);
	}

	static void pay() {
		synchronized (account) { // line 17
		}
	}

	static synchronized void book() {
	}

	static void notified() throws InterruptedException {
		synchronized (account) {
			account.wait(20);
		}
	}

	static Thread start(String name, Runnable action) {
		Thread thread = new Thread(action, name);
		thread.start();
		return thread;
	}

	static void refused() throws InterruptedException {
		try {
			account.wait();
		} catch (IllegalMonitorStateException expected) {
			System.out.println("refused");
		}
	}

	public static void main(String[] none) throws InterruptedException {
		Thread payer, bookkeeper;

		refused();
		synchronized (account) {
			payer = start("one that pays for all of the others", Waits::pay);
			awaitBlocked(payer);
		}
		payer.join();
		synchronized (Waits.class) {
			bookkeeper = start("bookkeeper", Waits::book);
			awaitBlocked(bookkeeper);
		}
		bookkeeper.join();
		notified();
	}
}
