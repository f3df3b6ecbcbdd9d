"""A wait for a mutex of the interpreter (`PyMutex`) names the mutex, not the parking place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hang.test_cpython import interpreters, minor_of
from tests.python.test_frames import marked

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# The waiting thread must start to wait before another thread wakes it.
pytestmark = pytest.mark.alone

# Two mutexes; two threads wait in turn for each mutex. Until 3.13.0, only extensions have such
# mutexes.
PROGRAM = """
import ctypes, threading, time

lock, unlock = ctypes.pythonapi.PyMutex_Lock, ctypes.pythonapi.PyMutex_Unlock
mutexes = [ctypes.c_ubyte(0) for _ in range(2)]
print(*(ctypes.addressof(mutex) for mutex in mutexes))

def asleep(thread):
    words = []
    while len(words) < 20 or len(set(words[-20:])) > 1 or words[-1][0] != "202":
        time.sleep(0.005)
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            words.append(tuple(file.read().split()[:2]))

def take(mutex):
    lock(ctypes.byref(mutex))  # waits
    unlock(ctypes.byref(mutex))

def keep(mutex):
    lock(ctypes.byref(mutex))
    thread = threading.Thread(target=take, args=(mutex,))
    thread.start()
    asleep(thread)
    unlock(ctypes.byref(mutex))  # gives back
    thread.join()

for mutex in mutexes * 2:
    keep(mutex)
"""
LONG_NS = 50_000_000


def test_threads_wait_for_the_mutex(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    python = next((path for path in interpreters() if minor_of(path) == 13), None)
    if python is None:
        pytest.skip("no CPython 3.13 is installed")
    script, said = tmp_path / "mutexes.py", tmp_path / "said.txt"
    script.write_text(PROGRAM)
    trace = record("sh", "-c", 'exec "$@" > "$0"', said, python, script)
    addresses = {f"0x{int(word):x}" for word in said.read_text(encoding="utf-8").split()}
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    mutexes = [item for item in document["objects"] if item["kind"] == "python-mutex"]
    mine = [item for item in mutexes if item["object"] in addresses]
    assert len(mine) == 2, mutexes
    (waits,), (back,) = marked(script, "waits"), marked(script, "gives back")
    for item in mine:
        assert item["waits"] == 2
        assert item["wait_ns"] > 2 * LONG_NS
        assert item["name"].startswith("mutex first waited for in take ")
        assert waits in item["name"]
        assert [there["site"].endswith(back) for there in item["blamed"]] == [True]
    assert len({item["name"] for item in mine}) == 2
