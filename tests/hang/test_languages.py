"""Programs in languages other than C: sites are their own frames, and their locks are known."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.hang.routines import routine_kind
from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable

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
    // The word after a Rust lock must not be taken for the owner that a C lock would have there.
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
# Declared here, so the test needs no headers of the library.
QT = """
    #include <pthread.h>
    struct mutex { void *word; } left, right;
    void take(struct mutex *mutex) __asm__("_ZN6QMutex4lockEv");
    static pthread_barrier_t both;
    static void *cross(void *first)
    {
        take(first);
        pthread_barrier_wait(&both);
        take(first == &left ? &right : &left);
        return 0;
    }
    int main(void)
    {
        pthread_t threads[2];
        pthread_barrier_init(&both, 0, 2);
        pthread_create(&threads[0], 0, cross, &left);
        pthread_create(&threads[1], 0, cross, &right);
        pthread_join(threads[0], 0);
        return 0;
    }
"""
CLOSURES = """
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn main() {
    let (left, right) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (one, other) = (left.clone(), right.clone());
    let first = thread::spawn(move || {
        let _held = one.lock().unwrap();
        thread::sleep(Duration::from_millis(300));
        let _wanted = other.lock().unwrap();
    });
    let second = thread::spawn(move || {
        let _held = right.lock().unwrap();
        thread::sleep(Duration::from_millis(300));
        let _wanted = left.lock().unwrap();
    });
    first.join().unwrap();
    second.join().unwrap();
}
"""
GLIB = """
    #include <pthread.h>
    struct mutex { void *word; } left, right;
    /* In a condition of the C library, the words after it would have a meaning. */
    struct condition { void *first; unsigned words[2], behind[8]; } never = {
        .behind = { 0, 0, 5, 5 },
    };
    void g_mutex_lock(struct mutex *mutex);
    void g_cond_wait(struct condition *condition, struct mutex *mutex);
    static pthread_barrier_t both;
    static void *cross(void *first)
    {
        g_mutex_lock(first);
        pthread_barrier_wait(&both);
        g_mutex_lock(first == &left ? &right : &left);
        return 0;
    }
    int main(void)
    {
        struct mutex own = { 0 };
        pthread_t thread;
        pthread_barrier_init(&both, 0, 2);
        pthread_create(&thread, 0, cross, &left);
        pthread_create(&thread, 0, cross, &right);
        g_mutex_lock(&own);
        for (;;)
            g_cond_wait(&never, &own);
    }
"""
PARKED = """
use std::thread;

fn main() {
    let other = thread::spawn(|| thread::park());
    other.join().unwrap();
}
"""
# Each thread's name says what the thread does.
PARKED_FOR = """
use std::sync::{mpsc, Condvar, LazyLock, Mutex, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

static NEVER: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
static TABLE: RwLock<u32> = RwLock::new(0);
static CONFIG: LazyLock<u32> = LazyLock::new(|| receive());
static OTHER: OnceLock<u32> = OnceLock::new();
static TWICE: OnceLock<u32> = OnceLock::new();

fn receive() -> u32 {
    let (sender, receiver) = mpsc::channel::<u32>();
    let got = receiver.recv().unwrap();
    drop(sender);
    got
}
fn bounded() {
    let (sender, receiver) = mpsc::sync_channel::<u32>(4);
    println!("{}", receiver.recv_timeout(Duration::from_secs(3600)).unwrap());
    drop(sender);
}
fn full() {
    let (sender, receiver) = mpsc::sync_channel::<u32>(1);
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    drop(receiver);
}
fn meets() {
    let (sender, receiver) = mpsc::sync_channel::<u32>(0);
    sender.send(2).unwrap();
    drop(receiver);
}
fn iterates() {
    let (sender, receiver) = mpsc::channel::<u32>();
    for one in &receiver {
        println!("{one}");
    }
    drop(sender);
}
fn scope() {
    thread::scope(|all| { all.spawn(|| thread::park()); });
}
fn condition() {
    let held = NEVER.0.lock().unwrap();
    drop(NEVER.1.wait(held).unwrap());
}
fn writer() { *TABLE.write().unwrap() += 1; }
fn runs() { println!("{}", *CONFIG); }
fn wants() {
    thread::sleep(Duration::from_millis(200));
    println!("{}", *CONFIG);
}
fn crossed() { OTHER.get_or_init(|| { thread::sleep(Duration::from_millis(100)); *CONFIG }); }
fn twice() { TWICE.get_or_init(|| *TWICE.get_or_init(|| 1)); }
fn again() {
    thread::sleep(Duration::from_millis(50));
    println!("{}", OTHER.get_or_init(|| 1));
}

fn main() {
    let all: [(&str, fn()); 12] = [
        ("bounded", bounded), ("full", full), ("meets", meets), ("iterates", iterates),
        ("scope", scope), ("condition", condition), ("writer", writer), ("runs", runs),
        ("wants", wants), ("crossed", crossed), ("again", again), ("twice", twice),
    ];
    let table = TABLE.read().unwrap();
    for (name, run) in all {
        thread::Builder::new().name(name.into()).spawn(run).unwrap();
    }
    thread::park();
    println!("{table}");
}
"""
FUTURES = """
#include <future>
#include <mutex>
#include <semaphore.h>
#include <unistd.h>
std::promise<int> never;
std::shared_future<int> answer(never.get_future());
sem_t empty;
std::once_flag once;
static int takes() { return sem_wait(&empty); }
static void waits() { answer.wait(); }
int main()
{
    auto first = std::async(std::launch::async, [] { return answer.get(); });
    auto second = std::async(std::launch::async, takes);
    auto joins = std::async(std::launch::async, [&second] { second.wait(); });
    auto third = std::async(std::launch::async, [] { std::call_once(once, waits); return 0; });
    usleep(100000);
    std::call_once(once, waits);
}
"""

TEMPORARY = """
#include <future>
#include <mutex>
#include <thread>
static std::mutex own;
static void takes() { std::lock_guard<std::mutex> held(own); }
static int counts(pthread_mutex_t copy) { return pthread_mutex_lock(&copy); }
static void copies()
{
    static pthread_mutex_t original = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&original);
    counts(original);
}
int main()
{
    std::thread second(copies);
    std::lock_guard<std::mutex> held(own);
    std::async(std::launch::async, takes);
}
"""


@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_cplusplus_locks_are_known(optimized: str, ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "prog.cc"
    source.write_text(CPLUSPLUS, encoding="utf-8")
    result = str(tmp_path / "prog")
    command = ["g++", "-std=c++20", "-g", optimized, "-pthread", "-o", result, str(source)]
    subprocess.run(command, check=True)
    with running(tmp_path / "prog") as pid:
        answer = asleep(ptt, pid, 3)
    (finding,) = answer["findings"]
    assert finding["kind"] == "deadlock"
    assert sorted(finding["object_names"]) == ["left", "right"]
    assert all("(prog.cc:11)" in site for site in finding["sites"]), finding["sites"]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
def test_rust_locks_are_known(ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "prog.rs"
    source.write_text(RUST, encoding="utf-8")
    subprocess.run(["rustc", "-g", "-o", tmp_path / "prog", source], check=True)
    with running(tmp_path / "prog") as pid:
        answer = asleep(ptt, pid, 3)
        text, _, _ = ptt("hang", pid, status=1).stdout.partition("stuck in")
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]
    kinds = sorted(thread["waits_for"]["kind"] for thread in answer["threads"])
    assert kinds == ["join", "mutex", "mutex"]
    assert {t["waits_for"]["owner_tid"] for t in answer["threads"]} <= {
        None, *(thread["tid"] for thread in answer["threads"]),
    }  # fmt: skip
    assert text.count("prog::cross+0x") == 2
    assert text.count("(prog.rs:8)") == 2


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
def test_the_caller_of_a_function_with_a_frame_pointer_is_known(ptt: Ptt, tmp_path: Path) -> None:
    """The caller uses the frame-pointer register for other data: no chain of frames leads to it."""
    source = tmp_path / "closures.rs"
    source.write_text(CLOSURES, encoding="utf-8")
    subprocess.run(["rustc", "-g", "-O", "-o", tmp_path / "closures", source], check=True)
    with running(tmp_path / "closures") as pid:
        asleep(ptt, pid, 3)
        text, _, _ = ptt("hang", pid, status=1).stdout.partition("stuck in")
    assert text.count("(closures.rs:12)") == 1
    assert text.count("(closures.rs:17)") == 1


JUMPS = """
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#define OWN __attribute__((noipa))
static int word, sum;
OWN __attribute__((optimize("no-omit-frame-pointer"))) int sleeps(int *on)
{
    volatile char room[200] = {0};

    return (int)syscall(SYS_futex, on, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0) + room[8];
}
OWN int front(int *on) { return sleeps(on); }
OWN int program(int n) { return front(&word) + n; }
int main(void) { sum = program(2); return sum; }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="jumps of x86-64")
def test_the_caller_is_known_across_a_tail_call(ptt: Ptt, tmp_path: Path) -> None:
    """The called function jumped to the function that sleeps."""
    source, program = tmp_path / "jumps.c", tmp_path / "jumps"
    source.write_text(JUMPS, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-g", "-o", program, source], check=True)
    with running(program) as pid:
        (thread,) = asleep(ptt, pid, 1)["threads"]
    functions = [frame.partition("+")[0] for frame in thread["stack"]]
    assert functions[1:3] == ["sleeps", "program"]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
@pytest.mark.parametrize("optimized", ["-Copt-level=0", "-O"])
def test_parked_rust_threads_have_their_kind_of_wait(
    optimized: str, ptt: Ptt, tmp_path: Path
) -> None:
    source = tmp_path / "parked.rs"
    source.write_text(PARKED_FOR, encoding="utf-8")
    subprocess.run(["rustc", "-g", optimized, "-o", tmp_path / "parked", source], check=True)
    with running(tmp_path / "parked") as pid:
        answer = asleep(ptt, pid, 14)
        text = " ".join(ptt("hang", pid, status=None).stdout.split())
    by_name = {thread["name"]: thread for thread in answer["threads"]}
    tids = {name: thread["tid"] for name, thread in by_name.items()}
    waits = {name: thread["waits_for"] for name, thread in by_name.items()}
    kinds = {name: wait["kind"] for name, wait in waits.items()}
    assert kinds.pop("scope") in {"scope", "park"}  # the thread inside the scope has the same name
    assert kinds == {
        "parked": "park", "bounded": "receive", "full": "send", "meets": "send",
        "iterates": "receive", "condition": "condition", "writer": "rwlock", "runs": "receive",
        "wants": "once", "crossed": "once", "again": "once", "twice": "once",
    }  # fmt: skip
    assert waits["writer"]["name"] == "parked::TABLE"
    owners = {name: wait["owner_tid"] for name, wait in waits.items() if wait["kind"] == "once"}
    runners = {"wants": "runs", "crossed": "runs", "again": "crossed", "twice": "twice"}
    assert owners == {name: tids[runner] for name, runner in runners.items()}
    assert [finding["kind"] for finding in answer["findings"]] == ["self-deadlock"]
    assert text.count("to write, held by 1 reader") == 1
    # The program's line, although the program has no frame pointers and calls through pointers.
    for name, thread in by_name.items():
        assert any("parked.rs:" in frame for frame in thread["stack"]), name
        assert not any("[guessed]" in frame for frame in thread["stack"]), thread


def _program_of(recorder: str) -> str:
    """Return the process id of the program that a recorder started."""
    children = Path(f"/proc/{recorder}/task/{recorder}/children")
    until = time.monotonic() + 60
    while not (found := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.01)
    return found[0]


@pytest.mark.parametrize("traced", [False, True], ids=["untraced", "traced"])
def test_waits_for_futures_are_known(traced: bool, ptt: Ptt, tmp_path: Path) -> None:  # noqa: FBT001 -- a case
    """A task's own wait is shown, not the call_once() around the task."""
    source = tmp_path / "futures.cc"
    source.write_text(FUTURES, encoding="utf-8")
    result = tmp_path / "futures"
    subprocess.run(["g++", "-std=c++20", "-g", "-pthread", "-o", result, source], check=True)
    record = ptt.command("record", "-q", "-o", tmp_path / "run.ptt", "--") if traced else []
    with running(*record, result, env=ptt.environment()) as started:
        pid = _program_of(started) if traced else started
        answer = asleep(ptt, pid, 5)
        text = ptt("hang", pid, status=1).stdout
        if traced:
            os.kill(int(pid), signal.SIGKILL)
    said = {thread["tid"]: thread["waits_for"] for thread in answer["threads"]}
    assert [wait["kind"] for _, wait in sorted(said.items())] == [
        "once", "future", "semaphore", "join", "future",
    ]  # fmt: skip
    assert said[int(pid)]["owner_tid"] == max(said)
    sites = re.findall(r"^      .*\(futures\.cc:(\d+)\)$", text, re.MULTILINE)
    assert sites == ["19", "14", "10", "16", "11"]
    for thread in answer["threads"]:
        assert not any("[guessed]" in frame for frame in thread["stack"]), thread
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
def test_a_parked_rust_thread_is_known(ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "parked.rs"
    source.write_text(PARKED, encoding="utf-8")
    subprocess.run(["rustc", "-g", "-o", tmp_path / "parked", source], check=True)
    with running(tmp_path / "parked") as pid:
        answer = asleep(ptt, pid, 2)
        text = ptt("hang", pid, status=None).stdout
    assert {t["waits_for"]["kind"] for t in answer["threads"]} == {"join", "park"}
    assert "waits to be unparked\n" in text


def test_qt_mutexes_name_no_owner(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """Qt's mutexes store no owner: PTT finds that no thread goes on, and names no holder."""
    if not any(Path("/usr/lib").glob("*/libQt5Core.so.5")):
        pytest.skip("Qt 5 is not installed")
    program = compile_c(QT, "-g", "-l:libQt5Core.so.5")
    with running(program) as pid:
        answer = asleep(ptt, pid, 3)
        text = ptt("hang", pid, status=1).stdout
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]
    waits = [t["waits_for"] for t in answer["threads"] if t["waits_for"]["kind"] == "mutex"]
    assert {wait["name"] for wait in waits} == {"left", "right"}
    assert {wait["owner_tid"] for wait in waits} == {None}
    assert "waits for mutex left, held by an unknown thread" in text


def test_glib_mutexes_are_known(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """The sleeping function has no name in the library; the mutex call above it has a name."""
    if not any(Path("/usr/lib").glob("*/libglib-2.0.so.0")):
        pytest.skip("GLib is not installed")
    program = compile_c(GLIB, "-g", "-l:libglib-2.0.so.0")
    with running(program) as pid:
        answer = asleep(ptt, pid, 3)
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]
    waits = {t["waits_for"]["name"]: t["waits_for"] for t in answer["threads"]}
    assert {name: wait["kind"] for name, wait in waits.items()} == {
        "left": "mutex", "right": "mutex", "never": "condition",
    }  # fmt: skip
    assert {wait["owner_tid"] for wait in waits.values()} == {None}


def test_go_threads_sleep_in_the_runtime(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """Threads of Go sleep in a function of the runtime, whatever the goroutines wait for."""
    program = compile_c("""
        #include <linux/futex.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static unsigned word;
        void wait_there(void) __asm__("runtime.futex");
        __attribute__((noinline)) void wait_there(void)
        {
            for (;;)
                syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
        }
        int main(void)
        {
            wait_there();
        }
    """)
    with running(program) as pid:
        answer = asleep(ptt, pid, 1)
    assert answer["threads"][0]["waits_for"]["kind"] == "go"
    assert answer["findings"] == []


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("parking_lot::raw_mutex::RawMutex::lock_slow", "mutex"),
        ("<parking_lot::raw_mutex::RawMutex>::lock_slow", "mutex"),
        ("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", "rwlock"),
        ("parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow", "rwlock"),
        ("parking_lot::condvar::Condvar::wait_until_internal", "condition"),
        ("std::sys::unix::locks::futex_mutex::Mutex::lock_contended", "mutex"),
        ("<std::sys::sync::mutex::futex::Mutex>::lock_contended", "mutex"),
        ("std::thread::park", "park"),
        ("std::thread::functions::park_timeout", "park"),
        ("<std::thread::thread::Thread>::park", "park"),
        ("std::sys::sync::thread_parking::futex::Parker::park", "park"),
        ("std::thread::parker_of", ""),
        ("std::sync::mpmc::list::Channel<T>::recv::{{closure}}", "receive"),
        ("std::sync::mpsc::SyncSender<T>::send", "send"),
        ("__pthread_mutex_clocklock_common", "mutex"),
        ("__pthread_rwlock_rdlock_full64.constprop.0", "rwlock"),
        ("___pthread_rwlock_timedrdlock64", "rwlock"),
        ("__new_sem_wait_slow64.constprop.0", "semaphore"),
        ("__pthread_cond_wait_common", "condition"),
        ("pthread_cond_broadcast", ""),
        ("QBasicMutex::lockInternal()", "mutex"),
        ("QMutex::lock()", ""),
        ("___pthread_mutex_lock", "mutex"),
        ("__GI___pthread_cond_wait", "condition"),
    ],
)
def test_kinds_are_known_by_waiting_functions(function: str, kind: str) -> None:
    assert routine_kind(function) == kind


def test_a_temporary_future_and_a_copied_mutex_have_sites_in_the_program(
    ptt: Ptt, tmp_path: Path
) -> None:
    """Templates of the C++ library are no call sites; a mutex on a stack is still a mutex."""
    source = tmp_path / "temporary.cc"
    source.write_text(TEMPORARY, encoding="utf-8")
    result = tmp_path / "temporary"
    subprocess.run(["g++", "-std=c++20", "-g", "-pthread", "-o", result, source], check=True)
    with running(result) as pid:
        answer = asleep(ptt, pid, 3)
    lines = {
        finding["kind"]: {site.rpartition(":")[2] for site in finding["sites"]}
        for finding in answer["findings"]
    }
    assert lines == {"deadlock": {"6)", "18)"}, "self-deadlock": {"7)"}}
