"""Waits of Python programs: for work, or for a lock that another thread has."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from nptltrace.catalog._cpython import DEBUG_WORDS, VERSIONS
from tests.hang.test_cpython import interpreters, minor_of
from tests.ports import free_port
from tests.python.test_frames import Stacks, marked
from tests.real.real import listens, wait_until
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

PROGRAM = ROOT / "tests" / "programs" / "python_idle.py"
SERVICE = ROOT / "tests" / "programs" / "python_service.py"
LONG_NS = 20_000_000
GIL_WAITS = {("gil", "cond"), ("gil", "mutex")}
# The waiting thread must start to wait before another thread wakes it.
pytestmark = pytest.mark.alone


@pytest.mark.parametrize("python", interpreters())
def test_an_empty_queue_is_no_contention(python: str, record: Recorder) -> None:
    if minor_of(python) not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip("frames of this version are not read")
    stacks = Stacks(record(python, PROGRAM))
    long = [wait for wait in stacks.waits if wait["dur_ns"] > LONG_NS and wait["stack_id"]]
    # Afterwards, a thread waits for the GIL at the same line, which takes long on a busy machine.
    long = [wait for wait in long if (wait["class"], wait["kind"]) not in GIL_WAITS]
    found = {(wait["class"], stacks.place(wait["stack_id"]).split(" ")[-1]) for wait in long}
    for mark in ("idle", "contended", "join"):
        lines = marked(PROGRAM, mark)
        assert lines <= {place for name, place in found if name == mark}, found
        assert not lines & {place for name, place in found if name != mark}, found
    # An idle thread of a pool is in no function of the program.
    pool = [place for name, place in found if name == "idle" and place.startswith("(thread.py:")]
    assert pool, found


# The main thread waits for the end of the second thread. That end also takes a lock of its own.
JOINED = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(pause,)) for pause in (0.01, 0.2)]
for thread in threads:
    thread.start()
print(threads[1].native_id)
threads[1].join()  # joins
"""


@pytest.mark.parametrize("python", interpreters())
def test_a_join_names_the_thread(python: str, record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    if minor_of(python) not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip("frames of this version are not read")
    script, said = tmp_path / "joined.py", tmp_path / "said.txt"
    script.write_text(JOINED)
    trace = record("sh", "-c", 'exec "$@" > "$0"', said, python, script)
    (line,) = marked(script, "joins")
    query = "select * from named_waits where class = 'join' order by dur_ns desc"
    rows = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    joined = next(row for row in rows if row["site"].endswith(line))
    tid = int(said.read_text(encoding="utf-8"))
    assert joined["owner_tid"] == joined["waker_tid"] == tid
    assert minor_of(python) not in VERSIONS or f"end of thread {tid}" in joined["object_name"]
    assert not [wait for wait in rows if wait["owner_tid"] != wait["waker_tid"]]
    text = ptt("report", "--by", "thread", trace).stdout
    assert "(joining)" in text


# The program does not wait for the thread: the interpreter waits before it ends.
LEFT_BEHIND = """
import threading, time
threading.Thread(target=time.sleep, args=(0.2,)).start()
"""


@pytest.mark.parametrize("python", interpreters())
def test_the_end_of_a_program_waits_in_python(
    python: str, record: Recorder, tmp_path: Path
) -> None:
    if minor_of(python) not in VERSIONS:
        pytest.skip("the end is another there")
    script = tmp_path / "left.py"
    script.write_text(LEFT_BEHIND)
    stacks = Stacks(record(python, script))
    # A busy machine may take long to start the thread, and the program waits for the start, too.
    longest = max((wait for wait in stacks.waits if wait["stack_id"]), key=lambda w: w["dur_ns"])
    assert longest["dur_ns"] > LONG_NS
    assert "(threading.py:" in stacks.place(longest["stack_id"])


# The second thread waits for the lock and gets it, while the third thread waits.
HANDED_ON = """
import threading, time

lock = threading.Lock()

def waits(thread):  # for the lock, or the same word
    words = []
    while len(words) < 20 or len(set(words[-20:])) > 1 or words[-1][0] != "202":
        time.sleep(0.005)
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            words.append(file.read().split()[:2])
            words[-1] = tuple(words[-1])

def second():
    with lock:  # holds
        third.start()
        waits(third)

def last():
    with lock:
        pass

second, third = threading.Thread(target=second), threading.Thread(target=last)
with lock:
    second.start()
    waits(second)
second.join()
third.join()
"""


@pytest.mark.parametrize("python", interpreters())
def test_the_line_of_a_holder_that_waited_before(
    python: str, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    if minor_of(python) not in VERSIONS:
        pytest.skip("its locks are no semaphores")
    script = tmp_path / "handed.py"
    script.write_text(HANDED_ON)
    document = json.loads(ptt("report", "--format", "json", record(python, script)).stdout)
    (line,) = marked(script, "holds")
    blamed = {one["site"] for item in document["objects"] for one in item["blamed"]}
    assert any(site.endswith(line) for site in blamed), blamed


# The holder takes the lock without a wait, and releases it at another line.
NEVER_WAITED = """
import os, threading, time

lock, held = threading.Lock(), []

def asleep(pid):
    words = []
    while len(words) < 20 or len(set(words[-20:])) > 1 or words[-1][0] != "202":
        time.sleep(0.002)
        with open(f"/proc/self/task/{pid}/syscall") as file:
            words.append(tuple(file.read().split()[:2]))

def holder():
    lock.acquire()
    held.append(1)
    asleep(os.getpid())
    time.sleep(0.05)
    lock.release()  # gives back

thread = threading.Thread(target=holder)
thread.start()
while not held:
    time.sleep(0.001)
with lock:
    pass
thread.join()
"""


@pytest.mark.parametrize("python", interpreters())
def test_the_line_of_a_holder_that_never_waited(
    python: str, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    if minor_of(python) not in VERSIONS:
        pytest.skip("its locks are no semaphores")
    script = tmp_path / "never.py"
    script.write_text(NEVER_WAITED)
    trace = record(python, script)
    (line,) = marked(script, "gives back")
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    blamed = [one for item in document["objects"] for one in item["blamed"]]
    (there,) = [one for one in blamed if one["site"].endswith(line)]
    assert there["released"]
    assert there["wait_caused_ns"] > LONG_NS
    text = " ".join(ptt("report", trace).stdout.split())
    assert re.search(rf"held it, released at (?:\w+\.)?holder {re.escape(line)}", text), text


# A task takes a lock that another thread has, and so keeps the other tasks from their turns. Then
# it lets a thread take the lock.
BLOCKED = """
import asyncio, threading, time

lock, held = threading.Lock(), threading.Event()

def keep():
    with lock:
        held.set()
        time.sleep(0.1)

def take():
    with lock:
        pass

async def ticks():
    for _ in range(10):
        await asyncio.sleep(0.001)

async def main():
    thread = threading.Thread(target=keep)
    thread.start()
    held.wait()
    other = asyncio.get_running_loop().create_task(ticks())
    with lock:  # blocks
        pass
    thread.join()
    held.clear()
    thread = threading.Thread(target=keep)
    thread.start()
    await asyncio.get_running_loop().run_in_executor(None, held.wait)
    await asyncio.get_running_loop().run_in_executor(None, take)
    await other
    thread.join()

asyncio.run(main())
"""


@pytest.mark.parametrize("python", interpreters())
def test_a_blocked_event_loop_is_reported(
    python: str, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    if minor_of(python) not in {*VERSIONS, *DEBUG_WORDS}:
        pytest.skip("frames of this version are not read")
    script = tmp_path / "loop.py"
    script.write_text(BLOCKED)
    query = "select site, waits, wait_ns from blocked_loops where class = 'contended'"
    found = json.loads(ptt("sql", "--format", "json", record(python, script), query).stdout)
    (line,) = marked(script, "blocks")
    long = [row for row in found if row["wait_ns"] > LONG_NS]
    assert [(row["site"].endswith(line), row["waits"]) for row in long] == [(True, 1)], found


def test_gunicorn_names_the_line_that_held_a_lock(ptt: Ptt, tmp_path: Path) -> None:
    gunicorn = shutil.which("gunicorn")
    if not gunicorn:
        pytest.skip("gunicorn is not installed")
    port, trace = free_port(), tmp_path / "run.ptt"
    service = ("--threads", "8", "-b", f"127.0.0.1:{port}", "--chdir", str(SERVICE.parent))
    running = subprocess.Popen(
        ptt.command(
            "record", "-o", trace, "--", gunicorn, *service, "python_service:application"
        ),
        env=ptt.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: listens(port), "gunicorn listens")
        url = f"http://127.0.0.1:{port}/"
        with ThreadPoolExecutor(6) as clients:
            list(clients.map(lambda _: urllib.request.urlopen(url, timeout=60).read(), range(48)))
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(60)
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    (line,) = marked(SERVICE, "waits")
    lock = max(document["objects"], key=lambda one: int(one["wait_ns"]))
    assert lock["waits"] > 20
    there = [item["wait_caused_ns"] for item in lock["blamed"] if item["site"].endswith(line)]
    assert sum(there) > 0.9 * lock["held_ns"]
