// SPDX-License-Identifier: MIT
// locks.rs - two locks of Rust's standard library or, with feature parking, of parking_lot, used as the argument says.
#[cfg(feature = "parking")]
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(feature = "parking"))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

extern "C" {
    fn ualarm(us: u32, again: u32) -> u32;
}

static FIRST: Mutex<i32> = Mutex::new(0);
static SECOND: Mutex<i32> = Mutex::new(0);
static TAKEN: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
static JOBS: Mutex<i32> = Mutex::new(0);
static WORK: Condvar = Condvar::new();

fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_micros(100));
    }
}

#[cfg(feature = "parking")]
fn take(lock: &'static Mutex<i32>) -> MutexGuard<'static, i32> {
    lock.lock()
}

#[cfg(not(feature = "parking"))]
fn take(lock: &'static Mutex<i32>) -> MutexGuard<'static, i32> {
    lock.lock().unwrap()
}

fn contend() {
    let other = thread::spawn(|| {
        let held = take(&FIRST);
        TAKEN[0].store(true, Ordering::SeqCst);
        wait_for(&TAKEN[1]);
        pause(500);
        drop(held);
    });
    wait_for(&TAKEN[0]);
    TAKEN[1].store(true, Ordering::SeqCst);
    let began = Instant::now();
    drop(take(&FIRST));
    let waited = began.elapsed();
    other.join().unwrap();
    println!("{}", waited.as_nanos());
}

fn deadlock() {
    let cross = |own: usize| {
        move || {
            let (mine, theirs) = if own == 1 { (&SECOND, &FIRST) } else { (&FIRST, &SECOND) };
            let _held = take(mine);
            TAKEN[own].store(true, Ordering::SeqCst);
            wait_for(&TAKEN[1 - own]);
            let _never = take(theirs);
        }
    };
    let (one, other) = (thread::spawn(cross(0)), thread::spawn(cross(1)));
    wait_for(&TAKEN[0]);
    wait_for(&TAKEN[1]);
    unsafe { ualarm(300_000, 0) };
    one.join().unwrap();
    other.join().unwrap();
}

fn nest(outer: &'static Mutex<i32>, inner: &'static Mutex<i32>) {
    let mut one = take(outer);
    let mut other = take(inner);
    *one += 1;
    *other += 1;
    pause(1);
}

fn orders() {
    thread::spawn(|| nest(&FIRST, &SECOND)).join().unwrap();
    thread::spawn(|| nest(&SECOND, &FIRST)).join().unwrap();
}

fn correct() {
    let threads: Vec<_> = (0..2).map(|_| thread::spawn(|| nest(&FIRST, &SECOND))).collect();
    for one in threads {
        one.join().unwrap();
    }
}

#[cfg(feature = "parking")]
fn wait(mut held: MutexGuard<'static, i32>) -> MutexGuard<'static, i32> {
    WORK.wait(&mut held);
    held
}

#[cfg(not(feature = "parking"))]
fn wait(held: MutexGuard<'static, i32>) -> MutexGuard<'static, i32> {
    WORK.wait(held).unwrap()
}

fn pool() {
    let threads: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                let mut ready = take(&JOBS);
                while *ready == 0 {
                    ready = wait(ready);
                }
            })
        })
        .collect();
    pause(200);
    *take(&JOBS) = 1;
    WORK.notify_all();
    for one in threads {
        one.join().unwrap();
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("contend") => contend(),
        Some("deadlock") => deadlock(),
        Some("orders") => orders(),
        Some("pool") => pool(),
        Some("correct") => correct(),
        _ => std::process::exit(2),
    }
}
