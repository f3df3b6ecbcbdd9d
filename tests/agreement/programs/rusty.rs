// SPDX-License-Identifier: MIT
// rusty.rs - a mutex, a channel, a barrier and a condition of Rust's library.
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, RwLock};
use std::{thread, time::Duration};

fn main() {
    let count = Arc::new((Mutex::new(0), Condvar::new()));
    let table = Arc::new(RwLock::new(0));
    let barrier = Arc::new(Barrier::new(4));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (count, table, barrier, send) =
                (count.clone(), table.clone(), barrier.clone(), send.clone());
            thread::spawn(move || {
                barrier.wait();
                for _ in 0..10 {
                    let mut held = count.0.lock().unwrap();
                    thread::sleep(Duration::from_micros(300));
                    *held += 1;
                    count.1.notify_all();
                    drop(held);
                    if number == 0 {
                        *table.write().unwrap() += 1;
                    } else {
                        let _read = table.read().unwrap();
                        thread::sleep(Duration::from_micros(100));
                    }
                    send.send(number).unwrap();
                }
            })
        })
        .collect();
    let mut held = count.0.lock().unwrap();
    while *held < 40 {
        held = count.1.wait(held).unwrap();
    }
    drop(held);
    drop(send);
    assert_eq!(receive.iter().count(), 40);
    for thread in threads {
        thread.join().unwrap();
    }
}
