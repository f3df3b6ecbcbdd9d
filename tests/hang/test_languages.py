"""Programs of other languages than C: their own frames are the sites, their own locks are known."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

CPLUSPLUS = """
#include <latch>
#include <mutex>
#include <thread>
std::mutex left, right;
std::latch both(2);
static void cross(std::mutex &first, std::mutex &second)
{
    std::lock_guard one(first);
    both.arrive_and_wait();
    std::lock_guard two(second);
}
int main()
{
    std::jthread a([] { cross(left, right); }), b([] { cross(right, left); });
}
"""
RUST = """
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

fn cross(first: Arc<Mutex<u64>>, second: Arc<Mutex<u64>>, both: Arc<Barrier>) {
    let _one = first.lock().unwrap();
    both.wait();
    let _two = second.lock().unwrap();
}

fn main() {
    // What lies behind a lock of Rust must not be taken for the owner that one of C would have.
    let left = Arc::new(Mutex::new(77));
    let right = Arc::new(Mutex::new(78));
    let both = Arc::new(Barrier::new(2));
    let (a, b, c) = (left.clone(), right.clone(), both.clone());
    let one = thread::Builder::new().name("one".into()).spawn(move || cross(a, b, c)).unwrap();
    let two = thread::spawn(move || cross(right, left, both));
    one.join().unwrap();
    two.join().unwrap();
}
"""


@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_cplusplus(optimized: str, ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "prog.cc"
    source.write_text(CPLUSPLUS, encoding="utf-8")
    result = str(tmp_path / "prog")
    command = ["g++", "-std=c++20", "-g", optimized, "-pthread", "-o", result, str(source)]
    subprocess.run(command, check=True)
    with running(tmp_path / "prog") as pid:
        found = asleep(ptt, pid, 3)
    (one,) = found["findings"]
    assert one["kind"] == "deadlock"
    assert sorted(one["object_names"]) == ["left", "right"]
    assert all("(prog.cc:11)" in site for site in one["sites"]), one["sites"]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
def test_rust(ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "prog.rs"
    source.write_text(RUST, encoding="utf-8")
    subprocess.run(["rustc", "-g", "-o", tmp_path / "prog", source], check=True)
    with running(tmp_path / "prog") as pid:
        found = asleep(ptt, pid, 3)
        text = ptt("hang", pid, status=1).stdout
    assert [one["kind"] for one in found["findings"]] == ["stuck"]
    kinds = sorted(thread["waits_for"]["kind"] for thread in found["threads"])
    assert kinds == ["join", "mutex", "mutex"]
    assert {t["waits_for"]["owner_tid"] for t in found["threads"]} <= {
        None, *(thread["tid"] for thread in found["threads"]),
    }  # fmt: skip
    assert text.count("prog::cross+0x") == 2
    assert text.count("(prog.rs:8)") == 2
