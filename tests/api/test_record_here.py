"""`nptltrace.record_here()`: a Python program that records itself for a while."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

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
    """Run a script in its own directory, and insist on exit status 0."""

    def get(script: str, *command: str, status: int = 0) -> Result:
        path = tmp_path / "script.py"
        path.write_text(f"import nptltrace, os, sys, threading\n{script}")
        done = subprocess.run(
            [*command, sys.executable, path], env=ptt.environment(), cwd=tmp_path, check=False,
            capture_output=True, encoding="utf-8", timeout=120,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done

    return get


def facts_of(trace: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((trace / "info" / "session.json").read_text())
    return facts


# One thread starts before the recording. Another starts later and waits for the main thread's lock.
CONTENDED = """
def before(go, done):
    go.wait()
    nptltrace.user_event("of a thread that was there")
    done.set()

def waiter(lock, here):
    here.set()
    with lock:
        pass

go, done = threading.Event(), threading.Event()
old = threading.Thread(target=before, args=(go, done))
old.start()
nptltrace.user_event("before")
with nptltrace.record_here("run.ptt") as run:
    assert nptltrace.is_traced()
    lock, here = threading.Lock(), threading.Event()
    new = threading.Thread(target=waiter, args=(lock, here))
    with lock:
        new.start()
        here.wait()
        # until it sleeps
        path = f"/proc/self/task/{new.native_id}/syscall"
        while not open(path).read().startswith("202 "):
            pass
    new.join()
    go.set()
    done.wait()
nptltrace.user_event("after")
assert not nptltrace.is_traced()
old.join()
assert run.lost == 0
with run.open() as traces:
    assert traces.stat()["events"] == run.events
"""


def test_running_and_new_threads_are_recorded(run: Run, trace_dir: Path) -> None:
    run(CONTENDED)
    assert facts_of(trace_dir)["attached"]["left"]
    with nptltrace.open(trace_dir) as traces:
        said = traces.sql("select data from events where event = 'USER'").to_pylist()
        assert [event["data"] for event in said] == ["of a thread that was there"]
        waits = traces.sql("select function, line from named_waits where class = 'contended'")
        places = [(row["function"], row["line"]) for row in waits.to_pylist()]
    assert ("waiter", 10) in places


def test_a_program_can_record_itself_again(run: Run, tmp_path: Path) -> None:
    run("""
for name in ("first", "second", "third"):
    threads = len(os.listdir("/proc/self/task"))
    with nptltrace.record_here(name):
        nptltrace.user_event(name)
    # the kernel has yet to take away the thread of the tracer
    while len(os.listdir("/proc/self/task")) != threads:
        pass
""")
    for name in ("first", "second", "third"):
        with nptltrace.open(tmp_path / name) as traces:
            said = traces.sql("select data from events where event = 'USER'").to_pylist()
        assert [event["data"] for event in said] == [name]


def test_an_exception_ends_the_recording(run: Run, trace_dir: Path) -> None:
    done = run(
        """
with nptltrace.record_here("run.ptt"):
    raise SystemExit("enough")
""",
        status=1,
    )
    assert done.stderr == "enough\n"
    assert facts_of(trace_dir)["state"] == "complete"
    assert facts_of(trace_dir)["attached"]["left"]


def test_a_program_that_ends_leaves_a_whole_trace(run: Run, trace_dir: Path) -> None:
    run("""
recorder = nptltrace.record_here("run.ptt")
nptltrace.user_event("the last")
os._exit(0)
""")
    # nobody waits for the recorder
    while facts_of(trace_dir)["state"] != "complete":
        pass
    with nptltrace.open(trace_dir) as traces:
        said = traces.sql("select data from events where event = 'USER'").to_pylist()
    assert [event["data"] for event in said] == ["the last"]


def test_two_recordings_at_once_are_refused(run: Run, trace_dir: Path) -> None:
    done = run("""
with nptltrace.record_here("run.ptt"):
    try:
        nptltrace.record_here("other.ptt")
    except nptltrace.UsageError as error:
        print(error)
    assert nptltrace.is_traced()
assert not os.path.exists("other.ptt")
""")
    assert done.stdout == "this process is being recorded already, into run.ptt\n"
    assert facts_of(trace_dir)["state"] == "complete"


def test_a_program_under_ptt_record_stays_alone(run: Run, ptt: Ptt, trace_dir: Path) -> None:
    done = run(
        """
try:
    nptltrace.record_here("inner.ptt")
except nptltrace.UsageError as error:
    print(error)
assert nptltrace.is_traced()
assert not os.path.exists("inner.ptt")
""",
        *ptt.command("record", "-o", trace_dir, "--"),
    )
    assert done.stdout == "this process is being recorded already, by ptt record or ptt attach\n"


def test_wrong_arguments_are_errors(run: Run, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    done = run("""
for arguments in (dict(output="full"), dict(output="new", level=99), dict(output="new", stacks=3)):
    try:
        nptltrace.record_here(**arguments)
    except nptltrace.UsageError as error:
        print(error)
assert not nptltrace.is_traced()
with nptltrace.record_here("new"):
    pass
""")
    first, second, third = done.stdout.splitlines()
    assert "full is not empty" in first
    assert "level" in second
    assert third == "stacks must be one of 0, 8, 16, 64, all, not 3"


def test_the_program_does_not_see_the_recorder_as_a_child(run: Run, trace_dir: Path) -> None:
    """A child that leaves the block does not end the recording either."""
    run("""
with nptltrace.record_here("run.ptt") as recording:
    try:
        os.wait()
    except ChildProcessError:
        pass
    else:
        raise AssertionError
    child = os.fork()
    if child == 0:
        recording.stop()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert nptltrace.is_traced()
    nptltrace.user_event("after the child")
""")
    with nptltrace.open(trace_dir) as traces:
        said = traces.sql("select data from events where event = 'USER'").to_pylist()
    assert [event["data"] for event in said] == ["after the child"]


def test_a_recorder_that_is_killed_is_an_error(run: Run) -> None:
    run("""
import glob, json, signal
recording = nptltrace.record_here("run.ptt")
recorder = json.load(open("run.ptt/info/session.json"))["recorder"]["pid"]
os.kill(recorder, signal.SIGKILL)
try:
    recording.stop()
except nptltrace.PttError as error:
    assert "ptt recover run.ptt" in str(error), error
else:
    raise AssertionError
""")


# The steps of IPython for a cell that begins with %%ptt; the cell waits for a lock.
CELL = """
class Shell:
    def register_magic_function(self, func, magic_kind, magic_name):
        assert (magic_kind, magic_name) == ("cell", "ptt")
        self.magic = func

    def run_cell(self, raw_cell):
        assert nptltrace.is_traced()
        exec(raw_cell, globals())

shell = Shell()
nptltrace.load_ipython_extension(shell)
shell.magic("one.ptt -n 5", '''
lock, here = threading.Lock(), threading.Event()

def waiter():
    here.set()
    with lock:
        pass

thread = threading.Thread(target=waiter)
with lock:
    thread.start()
    here.wait()
    path = f"/proc/self/task/{thread.native_id}/syscall"
    while not open(path).read().startswith("202 "):
        pass
thread.join()
''')
assert not nptltrace.is_traced()
shell.magic("--gil", "pass")
shell.magic("one.ptt --no-such-option", "pass")
"""


def test_a_cell_of_a_notebook_is_recorded(run: Run, tmp_path: Path) -> None:
    said = run(CELL).stdout
    assert "contended for" in said
    assert "semaphore Lock of <module> (<string>:2)" in said
    assert (tmp_path / "cell.ptt" / "metadata").is_file()
    assert "--no-such-option" in said
