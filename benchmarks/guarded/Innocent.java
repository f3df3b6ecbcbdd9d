// SPDX-License-Identifier: MIT
// Programs that are idle or slow, and do not hang; the argument chooses one.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.*;

public class Innocent {
    static void pool() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int n = 0; n < 4; n++) {
            pool.submit(() -> 1).get();
        }
        System.in.read();
    }

    static void schedule() {
        Executors.newScheduledThreadPool(2).scheduleAtFixedRate(() -> {}, 0, 2, TimeUnit.SECONDS);
    }

    static void collects() {
        List<byte[]> kept = new ArrayList<>();
        while (true) {
            kept.add(new byte[1 << 16]);
            if (kept.size() == 256) {
                kept.clear();
                System.gc();
            }
        }
    }

    static void heldAsleep() throws Exception {
        Object lock = new Object();
        synchronized (lock) {
            new Thread(() -> {
                synchronized (lock) {
                    System.out.println("later");
                }
            }).start();
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    static void takes() throws Exception {
        BlockingQueue<String> jobs = new LinkedBlockingQueue<>();
        for (int n = 0; n < 4; n++) {
            new Thread(() -> {
                try {
                    jobs.take();
                } catch (InterruptedException error) {
                    return;
                }
            }).start();
        }
        System.in.read();
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "pool" -> pool();
            case "schedule" -> schedule();
            case "collects" -> collects();
            case "held-asleep" -> heldAsleep();
            case "takes" -> takes();
            default -> System.exit(2);
        }
    }
}
