// SPDX-License-Identifier: MIT
// standard.rs - Rust's own locks: Mutex, RwLock, Condvar, Once, Barrier, channels, scoped threads, panics.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;

static ONCE: Once = Once::new();
static RUNS: AtomicUsize = AtomicUsize::new(0);

struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        RUNS.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static LOCAL: AtEnd = const { AtEnd };
}

fn main() {
    let state = Arc::new((Mutex::new(0), Condvar::new(), RwLock::new(0), Barrier::new(4)));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let state = state.clone();
            let sender = sender.clone();
            thread::spawn(move || {
                LOCAL.with(|_| ());
                ONCE.call_once(|| {
                    RUNS.fetch_add(100, Ordering::SeqCst);
                });
                state.3.wait();
                for _ in 0..500 {
                    *state.0.lock().unwrap() += 1;
                    *state.2.write().unwrap() += 1;
                    let _ = *state.2.read().unwrap();
                }
                state.1.notify_all();
                sender.send(i).unwrap();
            })
        })
        .collect();
    drop(sender);
    let mut count = state.0.lock().unwrap();
    while *count < 2000 {
        count = state.1.wait(count).unwrap();
    }
    drop(count);
    let sum: i32 = receiver.iter().sum();
    for thread in threads {
        thread.join().unwrap();
    }
    let poisoned = thread::scope(|scope| {
        std::panic::set_hook(Box::new(|_| ()));
        scope
            .spawn(|| {
                let _held = state.0.lock();
                panic!("on purpose");
            })
            .join()
            .is_err()
    });
    println!(
        "{} {} {} {} {}",
        sum,
        *state.2.read().unwrap(),
        poisoned,
        state.0.lock().is_err(),
        RUNS.load(Ordering::SeqCst)
    );
}
