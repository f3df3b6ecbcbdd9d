"""`pytest --ptt`: a session that is recorded, tests that hang, and contention by test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Result

    Run = Callable[..., Result]

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="for x86-64"),
    pytest.mark.usefixtures("native_in_process"),
]


@pytest.fixture
def run(ptt: Ptt, tmp_path: Path) -> Run:
    """Run pytest on a file of tests."""

    def get(tests: str, *options: str, status: int = 0) -> Result:
        (tmp_path / "test_it.py").write_text(f"import threading\n{tests}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "nptltrace.pytest_plugin", *options],
            env=ptt.environment({"PYTEST_ADDOPTS": None, "PYTEST_XDIST_WORKER": None}),
            cwd=tmp_path, check=False, capture_output=True, encoding="utf-8", timeout=120,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return get


CONTENDED = """
lock = threading.Lock()

def waiter(here):
    here.set()
    with lock:
        pass

def test_contended():
    here = threading.Event()
    thread = threading.Thread(target=waiter, args=(here,))
    with lock:
        thread.start()
        here.wait()
        path = f"/proc/self/task/{thread.native_id}/syscall"
        while not open(path).read().startswith("202 "):
            pass
    thread.join()

def test_alone():
    with lock:
        pass
"""
DEADLOCK = """
first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)

def take(one, other):
    with one:
        both.wait()
        with other:
            pass

def test_deadlock():
    thread = threading.Thread(target=take, args=(first, second))
    thread.start()
    take(second, first)

def test_after():
    pass
"""
LATE = """
import time

def test_late():
    time.sleep(0.6)

def test_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def test_in_time():
    pass
"""
DEAF = """
import signal

def test_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()
"""


def test_contention_is_reported_for_each_test(run: Run, tmp_path: Path) -> None:
    done = run(CONTENDED, "--ptt")
    summary = done.stdout.partition("contention by test")[2]
    # On a busy machine, the wait of the thread can be shorter than its start.
    [figure] = re.findall(
        r"^ *([\d.]+) (?:ns|us|ms|s) in \d+ waits?"
        r"  test_it.py::test_contended  longest at (?:waiter:7|test_contended:\d+)$",
        summary, re.MULTILINE,
    )  # fmt: skip
    assert float(figure) >= 1  # in a unit that fits the length
    assert "test_alone" not in summary
    with nptltrace.open(tmp_path / "pytest.ptt") as traces:
        said = traces.sql("select data from events where event = 'USER' and user_event = 1")
        names = [row["data"] for row in said.to_pylist()]
    assert names == ["test_it.py::test_contended", "test_it.py::test_alone"]


def test_a_deadlock_fails_only_its_own_test(run: Run) -> None:
    done = run(DEADLOCK, "--ptt=run", "--ptt-limit=1", status=1)
    assert "test_it.py::test_deadlock takes longer than 1 s" in done.stdout
    assert "error: deadlock at" in done.stdout
    assert "at take (test_it.py:9)" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_past_its_time_fails_and_names_a_lock_taken_twice(run: Run) -> None:
    done = run(LATE, "--ptt=run", "--ptt-limit=0.5", status=1)
    assert re.search(r"test_late takes longer than 0.5 s: it ended after \S+ s", done.stdout)
    # Another thread might still release the lock: the report only names the lock of the wait.
    said = done.stdout.partition("test_twice takes longer than 0.5 s")[2]
    assert re.search(
        r"waits for lock lock, held by an unknown thread\s+test_twice \(test_it.py:\d+\)", said
    )
    assert "2 failed, 1 passed" in done.stdout


@pytest.mark.slow
def test_a_stuck_session_ends(run: Run) -> None:
    done = run(DEAF, "--ptt", "--ptt-limit=1", status=2)
    assert "test_deaf takes longer than 1 s" in done.stderr
    assert "it cannot be interrupted: the session ends here" in done.stderr


def test_the_plugin_does_nothing_without_its_option(run: Run, tmp_path: Path) -> None:
    done = run(CONTENDED)
    assert "contention" not in done.stdout
    assert not (tmp_path / "pytest.ptt").exists()


def test_several_worker_processes_are_refused(run: Run) -> None:
    done = run(CONTENDED, "--ptt", "-n2", status=4)
    assert "--ptt records one process" in done.stderr
