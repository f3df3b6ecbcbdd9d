"""Locks of Python that one thread holds while another thread forks the process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

pytestmark = pytest.mark.alone

# The program prints the expected answer: the child's process, the parent's holder, and the line of
# the wait.
PROGRAM = """
import logging, os, queue, signal, threading, time

def asleep(pid):
    while True:
        with open(f"/proc/{pid}/syscall") as file:
            if file.read().split()[0] == "202":
                return
        time.sleep(0.001)

def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread

class Held:
    def __init__(self, lock):
        self.lock, self.has, self.leave = lock, threading.Event(), threading.Event()
    def run(self):
        with self.lock:
            self.has.set()
            self.leave.wait()
    def __enter__(self):
        self.thread = start(self.run)
        self.has.wait()
        return self.thread
    def __exit__(self, *_):
        self.leave.set()
        self.thread.join()

def take(lock):
    with lock: pass

def forked(child, *args):
    pid = os.fork()
    if pid == 0:
        child(*args)
        os._exit(0)
    return pid

def hangs(lock, child, *args):
    with Held(lock) as holder:
        pid = forked(child, *args)
        asleep(pid)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print(pid, holder.native_id)

class Slow(logging.Handler):
    def emit(self, record):
        pass

lock = threading.Lock()
rlock = threading.RLock()
condition = threading.Condition()
jobs = queue.Queue()
take(lock)
hangs(lock, take, lock)
hangs(rlock, take, rlock)
hangs(condition, take, condition)
hangs(jobs.mutex, jobs.put, 1)

handler = Slow()
logging.getLogger().addHandler(handler)
with Held(handler.lock), Held(lock):
    for child in (
        lambda: logging.error("it has locks of its own"),
        lambda: lock.acquire(timeout=0.01),
        lambda: take(threading.Lock()),
        lambda: take(jobs.mutex),
    ):
        os.waitpid(forked(child), 0)
"""


@pytest.mark.parametrize(
    "minor",
    [11, *(pytest.param(minor, marks=pytest.mark.slow) for minor in (8, 13))],
)
def test_the_lock_and_its_holder_are_named(
    minor: int, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    python = next((path for path in interpreters() if minor_of(path) == minor), None)
    if python is None:
        pytest.skip(f"no CPython 3.{minor} is installed")
    script, said = tmp_path / "forks.py", tmp_path / "said"
    script.write_text(PROGRAM)
    trace = record("sh", "-c", f'exec "$0" "$1" > {said}', python, script)
    found = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)["findings"]
    expected = [tuple(map(int, line.split())) for line in said.read_text().splitlines()]
    assert len(expected) == 4
    assert {item["kind"] for item in found} == {"deadlock"}
    messages = {item["pid"]: item["message"] for item in found}
    names = ("lock = Lock", "rlock = RLock", "condition = Condition", "jobs = Queue")
    for (pid, holder), name in zip(expected, names, strict=True):
        assert name in messages[pid]
        assert "forks.py:" in messages[pid].partition(" for ever: ")[0].rpartition(" at ")[2]
        assert f"thread {holder} " in messages[pid].partition(" for ever: ")[2]
        assert "forked this process" in messages[pid]
    assert len(found) == len(expected)
