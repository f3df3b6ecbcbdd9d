"""Locks of Python have holders, even if no release is in the trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

pytestmark = pytest.mark.alone

# The program frees "kept" while a thread holds it, and takes "left" and "right" in both orders.
# Another thread than the holder releases "bell"; the holder itself releases "given".
PROGRAM = """
import os, threading, time

def asleep(thread):
    while True:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            if file.read().split()[0] == "202":
                return
        time.sleep(0.001)

def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread

def take(lock):
    lock.acquire()

def give_up(lock):
    lock.acquire(timeout=0.03)

def free():
    kept = threading.Lock()
    start(take, kept).join()
    start(give_up, kept).join()
free()
bell = threading.Lock()
bell.acquire()
start(bell.release).join()
given = threading.Lock()
with given:
    pass

left = threading.Lock()
right = threading.Lock()
met = threading.Barrier(2)
def both(first, second):
    first.acquire()
    met.wait()
    time.sleep(0.01)
    second.acquire()
threads = [start(both, left, right), start(both, right, left)]
time.sleep(0.05)
for thread in threads:
    asleep(thread)
time.sleep(0.02)
os._exit(0)
"""


def _name(row: dict[str, str]) -> str:
    """Return the variable to which the program has assigned a lock."""
    return row["name"].partition(" = ")[0].rpartition(".")[2]


@pytest.mark.parametrize("minor", [11, 13])
def test_the_holder_is_known(minor: int, record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    python = next((path for path in interpreters() if minor_of(path) == minor), None)
    if python is None:
        pytest.skip(f"no CPython 3.{minor} is installed")
    script = tmp_path / "kept.py"
    script.write_text(PROGRAM)
    trace = record(python, script)
    report = json.loads(ptt("report", "-n", "0", "--format", "json", trace).stdout)
    locks = {_name(item): item for item in report["objects"]}
    for name in ("left", "right"):
        one = locks[name]
        assert (one["waits"], one["unknown_waits"], one["holds"]) == (1, 0, 1)
        assert one["held_ns"] == one["wait_ns"] > 20_000_000
    assert (locks["kept"]["timeout_waits"], locks["kept"]["holds"]) == (1, 1)
    assert locks["kept"]["hold_ns"] > 30_000_000
    assert locks["given"]["holds"] == 1
    bell = locks["bell"]  # no thread held "bell", and no thread waited for it
    assert bell["holds"] == sum(ns for name, ns in bell.items() if name.endswith("_waits")) == 0
    (cycle,) = report["deadlocks"]
    assert {_name({"name": wait["object_name"]}) for wait in cycle} == {"left", "right"}
    assert [wait["owner_tid"] for wait in cycle] == [cycle[1]["tid"], cycle[0]["tid"]]
    assert "DEADLOCK" in ptt("report", trace).stdout
