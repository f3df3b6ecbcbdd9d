// SPDX-License-Identifier: MIT
// Programs that hang, one for each argument; the head of hangs.c explains the comments. A thread that
// waits for a monitor is, for the virtual machine, at the first statement behind the monitor.
//
// case monitors: deadlock
// case locks: deadlock
// case three: deadlock
// case joins: deadlock
// case classes: deadlock
// case mixed: deadlock
// case notified: after
// case latch: after
// case executor: after
// case queue: after
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

public class Hangs {
    static final Object account = new Object(), journal = new Object(), archive = new Object();
    static final ReentrantLock accounts = new ReentrantLock(), journals = new ReentrantLock();

    static void meet(CountDownLatch all) {
        all.countDown();
        try {
            all.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void run(Runnable... jobs) throws Exception {
        Thread[] threads = new Thread[jobs.length];
        for (int n = 0; n < jobs.length; n++) {
            threads[n] = new Thread(jobs[n], "worker-" + n);
            threads[n].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void cross(CountDownLatch all, Object first, Object second) {
        synchronized (first) {
            meet(all);
            synchronized (second) {
                System.out.println("not reached"); // hangs: monitors; hangs: three
            }
        }
    }

    static void crossLocks(CountDownLatch all, Lock first, Lock second) {
        first.lock();
        meet(all);
        second.lock(); // hangs: locks
    }

    static void monitors() throws Exception {
        CountDownLatch all = new CountDownLatch(2);
        run(() -> cross(all, account, journal), () -> cross(all, journal, account));
    }

    static void three() throws Exception {
        CountDownLatch all = new CountDownLatch(3);
        run(() -> cross(all, account, journal), () -> cross(all, journal, archive),
            () -> cross(all, archive, account));
    }

    static void locks() throws Exception {
        CountDownLatch all = new CountDownLatch(2);
        run(() -> crossLocks(all, accounts, journals), () -> crossLocks(all, journals, accounts));
    }

    static void joins() throws Exception {
        Thread first = Thread.currentThread();
        Thread other = new Thread(() -> {
            try {
                first.join(); // hangs: joins
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        other.start();
        other.join(); // hangs: joins
    }

    static final CountDownLatch classesMeet = new CountDownLatch(2);

    static class Fonts {
        static {
            meet(classesMeet);
            Themes.load(); // hangs: classes
        }

        static void load() {
        }
    }

    static class Themes {
        static {
            meet(classesMeet);
            Fonts.load(); // hangs: classes
        }

        static void load() {
        }
    }

    static void classes() throws Exception {
        run(Fonts::load, Themes::load);
    }

    static void mixed() throws Exception {
        CountDownLatch all = new CountDownLatch(2);
        run(
            () -> {
                synchronized (account) {
                    meet(all);
                    accounts.lock(); // hangs: mixed
                }
            },
            () -> {
                accounts.lock();
                meet(all);
                synchronized (account) {
                    accounts.unlock(); // hangs: mixed
                }
            });
    }

    static void notified() throws Exception {
        synchronized (account) {
            account.notifyAll();
            account.wait(); // hangs: notified
        }
    }

    static void latch() throws Exception {
        CountDownLatch never = new CountDownLatch(2);
        never.countDown();
        never.await(); // hangs: latch
    }

    static void executor() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        pool.submit(() -> pool.submit(() -> 1).get()).get(); // hangs: executor
    }

    static void queue() throws Exception {
        new ArrayBlockingQueue<String>(4).take(); // hangs: queue
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "monitors" -> monitors();
            case "locks" -> locks();
            case "three" -> three();
            case "joins" -> joins();
            case "classes" -> classes();
            case "mixed" -> mixed();
            case "notified" -> notified();
            case "latch" -> latch();
            case "executor" -> executor();
            case "queue" -> queue();
            default -> System.exit(2);
        }
    }
}
