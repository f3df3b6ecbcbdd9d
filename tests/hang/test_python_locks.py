"""Locks of Python that threads wait for, with their names and holders."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep, running
from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# Threads in five deadlocks, and threads at locks without a known holder.
PROGRAM = textwrap.dedent("""\
    import queue, threading

    class Account:
        def __init__(self):
            self.lock = threading.Lock()

    left, right, right_too = Account(), threading.RLock(), threading.Condition(threading.RLock())
    own, kept, lent, bell, jobs = (
        threading.Lock(), threading.Lock(), threading.Lock(), threading.Lock(), queue.Queue()
    )
    met = [threading.Barrier(2) for _ in range(3)]
    bell.acquire()
    lent.acquire()

    def first():
        with left.lock:
            met[0].wait()
            right.acquire()  # first

    def second():
        with right, right:
            met[0].wait()
            with left.lock:  # second
                pass

    def twice():
        with own:
            again()

    def again():
        with own:  # twice
            pass

    def joins():
        with right_too:
            met[1].wait()
            threads["joined"].join()  # joins

    def joined():
        met[1].wait()
        with right_too:  # joined
            pass

    def rings():
        bell.acquire()  # rings

    def lends():
        with lent:
            pass

    def borrows():
        with kept:
            kept.release()
            lent.acquire()  # borrows

    def gets():
        jobs.get()  # gets

    functions = [first, second, twice, joins, joined, rings, lends, borrows, gets]
    threads = {one.__name__: threading.Thread(target=one, name=one.__name__) for one in functions}
    for one in threads.values():
        one.start()
    threads["gets"].join()
    """)
# For each thread, the object of its wait, and the thread that holds the object.
WAITS = {
    "first": ("lock", "right", "second"),
    "second": ("lock", "Account.lock", "first"),
    "twice": ("lock", "own", "twice"),
    "joins": ("join", None, "joined"),
    "joined": ("lock", "right_too (Condition)", "joins"),
    "rings": ("lock", "bell", None),
    "lends": ("lock", "lent", None),
    "borrows": ("lock", "lent", None),
    "gets": ("semaphore", "jobs (Queue)", None),
}
CYCLES = {
    "deadlock": [{"first", "second"}, {"joins", "joined"}],
    "self-deadlock": [{"twice"}],
}


@pytest.mark.parametrize(
    "python",
    [
        pytest.param(python, marks=() if python == sys.executable else pytest.mark.slow)
        for python in interpreters()
    ],
)
def test_locks_have_names_and_holders(python: str, ptt: Ptt, tmp_path: Path) -> None:
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("PTT does not read frames of this version")
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM, encoding="utf-8")
    lines = PROGRAM.splitlines()
    with running(python, program) as pid:
        answer = asleep(ptt, pid, 10)
    threads = {thread["name"]: thread for thread in answer["threads"] if thread["name"] in WAITS}
    tids = {thread["tid"]: name for name, thread in threads.items()}
    assert threads.keys() == WAITS.keys()
    for name, (kind, what, holder) in WAITS.items():
        wait = threads[name]["waits_for"]
        assert wait["kind"] == kind, (name, wait)
        assert what is None or wait["name"] == what, (name, wait)
        assert tids.get(wait["owner_tid"]) == holder, (name, wait)
    cycles: dict[str, list[set[str]]] = {}
    for finding in answer["findings"]:
        members = {tids[tid] for tid in finding["threads"]}
        cycles.setdefault(finding["kind"], []).append(members)
        for member in members:
            line = next(n for n, text in enumerate(lines, 1) if text.endswith(f"# {member}"))
            assert f"(prog.py:{line})" in finding["message"]
    assert {kind: sorted(map(sorted, some)) for kind, some in cycles.items()} == {
        kind: sorted(map(sorted, some)) for kind, some in CYCLES.items()
    }


def _waits_for_lock(thread: dict[str, Any]) -> bool:
    return thread["waits_for"] is not None and thread["waits_for"]["kind"] == "lock"


def test_wait_and_frames_are_of_one_moment(ptt: Ptt) -> None:
    """A look at threads that run does not join an old wait and a new owner or function."""
    program = textwrap.dedent("""\
        import threading, time

        def work(lock):
            while True:
                with lock:
                    inside()
                time.sleep(0.0003)

        def inside():
            time.sleep(0.002)

        for lock in [threading.Lock() for _ in range(3)] * 3:
            threading.Thread(target=work, args=(lock,), daemon=True).start()
        print(flush=True)
        time.sleep(300)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            waiting: list[dict[str, Any]] = []
            for _ in range(15):
                answer = json.loads(ptt("hang", "--format", "json", str(process.pid)).stdout)
                waiting += [t for t in answer["threads"] if _waits_for_lock(t)]
                if len(waiting) >= 20:
                    break
        finally:
            process.kill()
    assert waiting
    assert not [t for t in waiting if t["waits_for"]["owner_tid"] == t["tid"]]
    # A thread may come back to its place while its functions are read.
    mixed = sum("inside (" in str(t["stack"]) for t in waiting)
    assert len(waiting) < 20 or mixed < len(waiting) / 4
