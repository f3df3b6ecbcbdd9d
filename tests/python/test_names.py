"""Locks of Python programs have names: the kind, and the place of the creation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace.catalog._cpython import DEBUG_WORDS, VERSIONS
from tests.hang.test_cpython import interpreters, minor_of
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# The waiting thread must start to wait before another thread wakes it.
pytestmark = pytest.mark.alone

PROGRAM = ROOT / "tests" / "programs" / "python_locks.py"
LONG_NS = 15_000_000
MUTEXES = "import sys; sys.exit(sys.version_info < (3, 13, 1))"


@cache
def with_semaphores() -> str:
    """Return an interpreter with semaphores for locks; this interpreter, if its locks are some."""
    for python in (sys.executable, *interpreters()):
        if subprocess.run([python, "-c", MUTEXES], check=False).returncode:
            return python
    pytest.fail("no installed interpreter has semaphores for locks")


def expected() -> list[re.Pattern[str]]:
    """Return the names in the program's marks."""
    lines = enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1)
    marks = [(n, line.partition("  # ")[2]) for n, line in lines]
    names = []
    for number, mark in marks:
        what, _, turn = mark.partition(" .* ")
        if mark:
            place = rf" [\w.]+ \({PROGRAM.name}:{number}\)"
            names.append(re.compile(re.escape(what) + place + (f" {turn}" if turn else "")))
    return names


@pytest.mark.parametrize("python", interpreters())
def test_locks_have_the_names_in_the_marks(python: str, record: Recorder, tmp_path: Path) -> None:
    minor = minor_of(python)
    if minor not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip(f"frames of Python 3.{minor} are not read")
    if subprocess.run([python, "-c", MUTEXES], check=False).returncode == 0:
        pytest.skip("its locks are created unseen")
    trace = record(python, PROGRAM, tmp_path)
    query = "select distinct object_name from named_waits where kind = 'semaphore' and dur_ns > ?"
    with nptltrace.open(trace) as traces:
        rows = traces.sql(query.replace("?", str(LONG_NS))).to_pylist()
    names = [str(row["object_name"]) for row in rows]
    for name in expected():
        assert [item for item in names if name.fullmatch(item)], (name.pattern, names)
    if minor >= 11:
        assert any("= Lock of Store.__init__ (" in name for name in names)


# Two locks of one line: the deadlock must name them differently.
DEADLOCK = """
import os, threading
locks = [threading.Lock() for _ in range(2)]
met = threading.Barrier(2)

def take(first, second):
    with first:
        met.wait()
        second.acquire()

def blocked(thread):
    with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
        return file.read().split()[:1]

for pair in (locks, locks[::-1]):
    threading.Thread(target=take, args=pair, daemon=True).start()
threads = threading.enumerate()[1:]
while met.n_waiting or not all(lock.locked() for lock in locks):
    pass
same = 0
while same < 20:
    same = same + 1 if all(blocked(one) == ["202"] for one in threads) else 0
    threading.Event().wait(0.005)
os._exit(0)
"""


def test_a_name_chooses_a_single_lock(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(DEADLOCK)
    trace = record(with_semaphores(), script)
    document = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)
    (finding,) = [one for one in document["findings"] if one["kind"] == "deadlock"]
    names = finding["object_names"]
    assert sorted(re.findall(r"#\d", " ".join(names))) == ["#1", "#2"], names
    assert all("(two.py:3)" in name for name in names), names
    assert all("take (two.py:9)" in site for site in finding["sites"]), finding["sites"]
    rows = json.loads(ptt("report", "--object", names[0], "--format", "json", trace).stdout)
    found = {item["name"] for item in rows["objects"]}
    assert names[0] in found
    assert names[1] not in found


# The program frees a lock, and the next lock has the same address.
IN_TURN = """
import threading, time

def waits_for(lock):
    held = []
    def hold():
        with lock:
            held.append(1)
            time.sleep(0.03)
    thread = threading.Thread(target=hold)
    thread.start()
    while not held:
        time.sleep(0.001)
    with lock:
        pass
    thread.join()

for n in range(8):
    waits_for(threading.RLock() if n % 2 else threading.Lock())
"""


def test_locks_at_the_same_address_differ(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    script = tmp_path / "turns.py"
    script.write_text(IN_TURN)
    trace = record(with_semaphores(), script)
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    names = [
        item["name"] for item in document["objects"]
        if item["kind"] == "semaphore" and item["wait_ns"] > LONG_NS
    ]  # fmt: skip
    for kind in ("Lock", "RLock"):
        wanted = [f"{kind} of <module> (turns.py:19) #{n}" for n in range(1, 5)]
        assert sorted(name for name in names if name.startswith(f"{kind} ")) == wanted


# Names from the program, names from a library, a name too long for the kernel, and an invalid name.
THREADS = """
import threading, _thread
from concurrent.futures import ThreadPoolExecutor

class Strange(threading.Thread):
    def __getattribute__(self, name):
        if name == "_name" and threading.current_thread() is not threading.main_thread():
            print("asked", name)
        return super().__getattribute__(name)

def quick():
    pass

for name in ("reader", "ü日", "a name that is quite a lot longer than fifteen", ""):
    thread = threading.Thread(target=quick, name=name)
    thread.start()
    thread.join()
Strange(target=quick, name="strange").start()
with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
    pool.submit(quick).result()
wrong = threading.Thread(target=quick)
wrong._name = 5
try:
    wrong.start()
except TypeError:  # it cannot be shown, says 3.12 and later
    pass
done = threading.Event()
_thread.start_new_thread(done.set, ())
done.wait()
"""


@pytest.mark.parametrize("python", interpreters())
def test_threads_have_the_names_of_threading(python: str, record: Recorder, tmp_path: Path) -> None:
    minor = minor_of(python)
    if not 8 <= minor <= 13:
        pytest.skip("it names threads itself, or its frames are not read")
    script = tmp_path / "named.py"
    script.write_text(THREADS, encoding="utf-8")
    with nptltrace.open(record(python, script)) as traces:
        names = [str(row["name"]) for row in traces.table("threads").to_pylist()]
    long = "a name that is quite a lot longer than fifteen"
    assert {"reader", "ü日", long, "strange", "pool_0"} <= set(names), names
    # Threads without a name have the name of the program.
    program = names[0]
    assert len([name for name in names if name == program]) >= 3, names


def test_functions_missing_in_the_trace_have_no_name(
    record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    """A recorder that was killed between two lines leaves such a trace."""
    trace = record(sys.executable, PROGRAM, tmp_path)
    info = trace / "info" / "processes.jsonl"
    lines = []
    for line in map(json.loads, info.read_text().splitlines()):
        if "codes" in line:
            codes = line["codes"]["codes"]
            line["codes"]["codes"] = [code for code in codes if not code[3].endswith(PROGRAM.name)]
        lines.append(json.dumps(line))
    info.write_text("\n".join(lines) + "\n")
    objects = json.loads(ptt("report", "--format", "json", trace).stdout)["objects"]
    assert objects
    assert not any("Store." in item["name"] for item in objects)
