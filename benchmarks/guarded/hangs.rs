// SPDX-License-Identifier: MIT
// Programs that hang, one for each argument; the head of hangs.c explains the comments.
//
// case mutexes: deadlock|stuck
// case again: stuck|self-deadlock
// case upgrade: stuck|self-deadlock
// case sender: stuck
// case bounded: stuck
// case barrier: stuck
// case missed: stuck
// case joined: stuck|deadlock
// case scope: stuck|deadlock
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

static LEFT: Mutex<u64> = Mutex::new(1);
static RIGHT: Mutex<u64> = Mutex::new(2);
static TABLE: RwLock<u64> = RwLock::new(3);
static FILLED: Condvar = Condvar::new();

fn mutexes() {
    let both = Arc::new(Barrier::new(2));
    let other = both.clone();
    let one = thread::spawn(move || {
        let _left = LEFT.lock().unwrap();
        other.wait();
        let _right = RIGHT.lock().unwrap(); // hangs: mutexes
    });
    let two = thread::spawn(move || {
        let _right = RIGHT.lock().unwrap();
        both.wait();
        let _left = LEFT.lock().unwrap(); // hangs: mutexes
    });
    one.join().unwrap();
    two.join().unwrap();
}

fn again() {
    let _first = LEFT.lock().unwrap();
    let _second = LEFT.lock().unwrap(); // hangs: again
}

fn upgrade() {
    let _reads = TABLE.read().unwrap();
    let _writes = TABLE.write().unwrap(); // hangs: upgrade
}

// The loop keeps a sender of its own, so the channel is never closed.
fn sender() {
    let (sends, receives) = channel::<u64>();
    let other = sends.clone();
    thread::spawn(move || other.send(1).unwrap()).join().unwrap();
    let mut sum = 0;
    while let Ok(value) = receives.recv() { // hangs: sender
        sum += value;
    }
    drop(sends);
    println!("{sum}");
}

// The receiver is used only after the end of the sender.
fn bounded() {
    let (sends, receives) = sync_channel::<u64>(1);
    let producer = thread::spawn(move || {
        for value in 0..4 {
            sends.send(value).unwrap(); // hangs: bounded
        }
    });
    producer.join().unwrap(); // hangs: bounded
    println!("{}", receives.iter().sum::<u64>());
}

fn barrier() {
    let all = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let all = all.clone();
            thread::spawn(move || {
                all.wait(); // hangs: barrier
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn missed() {
    thread::spawn(|| FILLED.notify_one()).join().unwrap();
    let guard = LEFT.lock().unwrap();
    let _guard = FILLED.wait(guard).unwrap(); // hangs: missed
}

fn joined() {
    let _left = LEFT.lock().unwrap();
    let other = thread::spawn(|| {
        *LEFT.lock().unwrap() += 1; // hangs: joined
    });
    other.join().unwrap(); // hangs: joined
}

fn scope() {
    let _left = LEFT.lock().unwrap();
    thread::scope(|threads| {
        threads.spawn(|| {
            *LEFT.lock().unwrap() += 1; // hangs: scope
        });
    });
}

fn main() {
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "mutexes" => mutexes(),
        "again" => again(),
        "upgrade" => upgrade(),
        "sender" => sender(),
        "bounded" => bounded(),
        "barrier" => barrier(),
        "missed" => missed(),
        "joined" => joined(),
        "scope" => scope(),
        _ => std::process::exit(2),
    }
}
