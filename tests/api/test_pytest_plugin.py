"""`pytest --ptt` and `--ptt-guard`: recorded sessions, tests that hang, contention by test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

import nptltrace
from nptltrace.pytest_plugin import pytest_configure

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


STOPPED = """
import os, signal, subprocess

def test_stopped():
    subprocess.Popen(["sh", "-c", f"sleep 4; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
"""
FORKS = """
import os, time

def test_forks():
    if child := os.fork():
        os.waitpid(child, 0); time.sleep(60)
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


HANGS = """
import subprocess
import time

import pytest

lock = threading.Lock()

def test_sleeps():
    time.sleep(1000)

def test_joins():
    lock.acquire()
    worker = threading.Thread(target=lock.acquire, name="worker")
    worker.start()
    worker.join()

@pytest.fixture
def slow():
    yield
    threading.Event().wait()

def test_tear_down(slow):
    pass

def test_waits_for_a_child():
    subprocess.run(["sleep", "1000"])

def test_in_time():
    pass
"""
LOOKED_AT = """
import os, time

def grandchildren():
    def children(pid):
        return open(f"/proc/{pid}/task/{pid}/children").read().split()
    return [g for child in children(os.getpid()) for g in children(child)]

def test_looked_at():
    while not grandchildren():
        time.sleep(0.01)
    while grandchildren():
        time.sleep(0.01)
"""
UNINTERRUPTED = """
import ctypes

def test_keeps_the_gil():
    mutex, library = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""


def test_each_hang_fails_with_its_threads(run: Run) -> None:
    done = run(HANGS, "--ptt-guard=1", status=1)
    assert "3 failed, 2 passed, 1 error" in done.stdout
    for what, site in (
        ("test_it.py::test_sleeps", "test_sleeps (test_it.py:11)"),
        ("test_it.py::test_joins", "test_joins (test_it.py:17)"),
        ("the tear-down of test_it.py::test_tear_down", "slow (test_it.py:22)"),
        ("test_it.py::test_waits_for_a_child", "test_waits_for_a_child (test_it.py:28)"),
    ):
        report = done.stdout.partition(f"{what} takes longer than 1 s\n")[2].partition("\n____")[0]
        assert site in report
        assert re.search(r"thread \d+ \(sleep\) sleeps in", report) or "child" not in what
    # Handlers of pytest, of readline and of the plugin itself wake no thread.
    joins = done.stdout.partition("test_joins takes longer")[2].partition("\n____")[0]
    assert "error: stuck in process" in joins


def test_workers_of_xdist_are_guarded(run: Run) -> None:
    done = run(HANGS, "--ptt-guard=1", "-n1", "-k", "sleeps or in_time", status=1)
    assert "1 failed, 1 passed" in done.stdout
    assert "test_sleeps (test_it.py:11)" in done.stdout


@pytest.mark.parametrize("then", ["fail", "kill"])
def test_a_test_that_keeps_the_gil_ends_the_session(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = run(UNINTERRUPTED, "--ptt-guard=1", f"--ptt-guard-then={then}", status=-9)
    ended = "it cannot be interrupted: the session ends here" in done.stderr
    assert ended == (then == "fail")
    assert "self-deadlock in process" in done.stderr
    assert "test_keeps_the_gil (test_it.py:8)" in done.stderr
    until_s = time.monotonic() + 60
    while [*tmp_path.glob("ptt-guard-*")]:
        assert time.monotonic() < until_s
        time.sleep(0.1)


def test_time_in_which_the_session_is_stopped_does_not_count(run: Run) -> None:
    assert "1 passed" in run(STOPPED, "--ptt-guard=2").stdout


def test_a_forked_child_leaves_the_guard_of_its_parent_alone(run: Run) -> None:
    done = run(FORKS, "--ptt-guard=1", status=1)
    assert "test_it.py::test_forks takes longer than 1 s" in done.stdout
    assert "test_forks (test_it.py:7)" in done.stdout


def test_a_reported_test_may_go_on(run: Run) -> None:
    done = run(LOOKED_AT, "--ptt-guard=0.2", "--ptt-guard-then=continue")
    assert "1 passed" in done.stdout
    assert "test_it.py::test_looked_at takes longer than 0.2 s" in done.stderr


def test_a_guard_needs_a_limit_above_0(run: Run) -> None:
    assert "argument --ptt-guard: invalid" in run(CONTENDED, "--ptt-guard=nan", status=4).stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"--ptt-guard-then": "kill"}, "--ptt-guard-then needs --ptt-guard SECONDS"),
        ({"--ptt": "run", "--ptt-guard": 1.0}, "use --ptt-limit SECONDS"),
        ({"--ptt-limit": 5.0, "--ptt-guard": 1.0}, "--ptt-limit SECONDS needs --ptt"),
    ],
)
def test_guards_that_make_no_sense_are_refused(options: dict[str, object], said: str) -> None:
    config = cast("pytest.Config", SimpleNamespace(getoption=options.get))
    with pytest.raises(pytest.UsageError, match=said):
        pytest_configure(config)
