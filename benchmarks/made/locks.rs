// SPDX-License-Identifier: MIT
//! Threads of a Rust program wait for one another's locks, in calls of any depth.
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

static LOCKS: [Mutex<u64>; 2] = [Mutex::new(0), Mutex::new(0)];

#[inline(never)]
fn take(which: u64) -> u64 {
    let mut taken = LOCKS[which as usize % 2].lock().unwrap();
    thread::sleep(Duration::from_micros(300));
    *taken += which;
    *taken
}

#[inline(never)]
fn deep(left: u64, which: u64) -> u64 {
    if left == 0 {
        take(which)
    } else {
        deep(left - 1, which).wrapping_add(left)
    }
}

#[inline(never)]
fn through(call: &dyn Fn(u64) -> u64, which: u64) -> u64 {
    call(which) ^ which
}

fn main() {
    let run = |thread: u64| {
        move || {
            for i in thread.. {
                through(&|which| deep(which % 13, which), i);
            }
        }
    };
    let threads: Vec<_> = (0..6).map(|thread| thread::spawn(run(thread))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
