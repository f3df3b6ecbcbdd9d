"""`ptt top`: on a running program, on a finished trace, and on a terminal."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Compiler, Ptt

T0 = 10**12
PATIENCE_S = 60

# The first thread holds `gate` until its input ends; two others wait for `gate`.
HOLDER = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *wait(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}
int main(void)
{
	pthread_t first, second;
	pthread_mutex_lock(&gate);
	pthread_create(&first, NULL, wait, "first");
	pthread_create(&second, NULL, wait, "second");
	while (getchar() != EOF)
		;
	pthread_mutex_unlock(&gate);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	return 0;
}
"""


class Held:
    """A live recording of HOLDER until a call of `end`."""

    def __init__(self, ptt: Ptt, program: Path, trace: Path) -> None:
        self.trace = trace
        self.recorder = subprocess.Popen(
            ptt.command("record", "-o", trace, "--", program),
            env=ptt.environment(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = 0

    def begin(self) -> None:
        """Wait for the program, the only child of its recorder."""
        children = Path(f"/proc/{self.recorder.pid}/task/{self.recorder.pid}/children")
        log = self.trace / "info" / "processes.jsonl"
        wait_for(lambda: log.exists() and log.read_text() != "")
        (self.pid,) = map(int, children.read_text().split())

    def end(self) -> None:
        """End the program, and so its recording."""
        assert self.recorder.stdin
        self.recorder.stdin.close()
        assert self.recorder.wait(PATIENCE_S) == 0


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def held(ptt: Ptt, compile_c: Compiler, trace_dir: Path) -> Iterator[Held]:
    run = Held(ptt, compile_c(HOLDER), trace_dir)
    try:
        run.begin()
        yield run
    finally:
        if run.recorder.poll() is None:
            run.end()


def snapshot_with(ptt: Ptt, what: str, enough: Callable[[Any], bool]) -> Any:
    """Return the first snapshot of `ptt top` that fulfils a condition."""
    command = ptt.command("top", "--count", "0", "--interval", "50ms", "--format", "json", what)
    with subprocess.Popen(command, env=ptt.environment(), stdout=subprocess.PIPE) as top:
        assert top.stdout
        for line in top.stdout:
            found = json.loads(line)
            if enough(found):
                top.terminate()
                return found
    raise AssertionError("the recording ended")


def test_top_names_waiters_and_holders(ptt: Ptt, held: Held) -> None:
    found = snapshot_with(ptt, str(held.pid), lambda found: found["waiting"] == 2)
    (gate,) = found["objects"]
    assert (gate["name"], gate["kind"], gate["waiters"]) == ("gate", "mutex", 2)
    assert gate["holder_tid"] == held.pid
    assert "main" in gate["holder_site"]
    waiting = {t["name"]: t for t in found["threads"] if t["waits_for"]}
    assert waiting.keys() == {"first", "second"}
    wanted = [t["waits_for"] for t in waiting.values()]
    assert {(w["name"], w["object"], w["owner_tid"]) for w in wanted} == {
        ("gate", gate["object"], held.pid)
    }
    # Open waits count with their length so far.
    assert gate["total_wait_ns"] == sum(wait["dur_ns"] for wait in wanted)
    # All time of the waits is held time, also of open waits.
    assert (gate["total_held_ns"], gate["total_wake_ns"]) == (gate["total_wait_ns"], 0)
    assert sum(site["waiters"] for site in found["sites"]) == 2


def test_by_the_process_of_the_recorder_and_by_trace(ptt: Ptt, held: Held) -> None:
    for what in (str(held.recorder.pid), str(held.trace)):
        assert snapshot_with(ptt, what, lambda found: found["waiting"] == 2)["running"]


def test_top_of_a_finished_recording_equals_the_report(ptt: Ptt, held: Held) -> None:
    snapshot_with(ptt, str(held.pid), lambda found: found["waiting"] == 2)
    held.end()
    found = json.loads(ptt("top", "--format", "json", held.trace).stdout)
    report = json.loads(ptt("report", "--format", "json", held.trace).stdout)
    assert not found["running"]
    assert (found["waits"], found["wait_ns"]) == (report["waits"], report["wait_ns"])
    sums = ("waits", "wait_ns", "held_ns", "wake_ns")
    for rows, key in (("objects", "object"), ("threads", "tid")):
        assert {item[key]: [item[f"total_{name}"] for name in sums] for item in found[rows]} == {
            item[key]: [item[name] for name in sums]
            for item in report[rows]
            if item["wait_ns"] or rows == "threads"
        }


def test_top_follows_to_the_end_of_the_recording(ptt: Ptt, held: Held) -> None:
    command = ptt.command("top", "--count", "0", "--interval", "20ms", held.trace)
    with subprocess.Popen(
        command, env=ptt.environment(), stdout=subprocess.PIPE, encoding="utf-8"
    ) as top:
        assert top.stdout
        while "gate" not in (line := top.stdout.readline()):
            assert line
        held.end()
        assert "the recording has ended" in top.stdout.read()
        assert top.wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("held")
def test_a_process_that_is_not_recorded_is_an_error(ptt: Ptt) -> None:
    done = ptt("top", str(os.getpid()), status=2)
    assert done.stderr == (
        f"ptt: error: process {os.getpid()} is not being recorded: "
        f"ptt attach {os.getpid()} records it\n"
    )


# ---- finished traces, made up ----


def trace_of(path: Path, *, name: bytes = b"") -> Path:
    made = Builder(path)
    made.uuid = uuid4()
    taken = {"result": 0, "wait_ns": 80}
    made.thread(1, [Event(T0, "MUTEX_TAKEN", 64, 5), Event(T0 + 100, "MUTEX_FREE", 64, 6)])
    named = [Event(T0 + 1, "THREAD_NAME", 0, fields={"name": name})] if name else []
    made.thread(
        2,
        [
            *named,
            Event(T0 + 20, "MUTEX_WAIT", 64, 7, fields={"owner": 1}),
            Event(T0 + 100, "MUTEX_TAKEN", 64, 7, variant="WAITED", fields=taken),
        ],
    )
    made.processes = [
        {"process": {"index": 0, "pid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
        {"sites": {"process": 0, "sites": {"5": "0x500", "6": "0x600", "7": "0x700"}}},
    ]
    return made.write()


def test_csv_starts_with_the_most_contended(ptt: Ptt, trace_dir: Path) -> None:
    trace_of(trace_dir)
    for by, keys in (
        ("object", {"kind": "mutex", "object": "0x40", "total_wait_ns": "80", "waiters": "0"}),
        ("thread", {"tid": "2", "wait_ns": "80", "held": "1"}),
        ("site", {"site": "0x700", "wait_ns": "80", "waits": "1"}),
    ):
        done = ptt("top", "--format", "csv", "--by", by, trace_dir)
        first, *_ = csv.DictReader(io.StringIO(done.stdout))
        assert keys.items() <= first.items()


@pytest.mark.parametrize("by", ["object", "thread", "site"])
def test_text_has_80_columns(ptt: Ptt, trace_dir: Path, by: str) -> None:
    trace_of(trace_dir)
    lines = ptt("top", "--by", by, trace_dir).stdout.splitlines()
    assert max(map(len, lines[1:])) <= 80
    assert "contended: 80 ns, 1 wait ended" in lines[2]


def test_a_trace_without_contention_says_so(ptt: Ptt, trace_dir: Path) -> None:
    made = Builder(trace_dir)
    made.thread(1, [Event(T0, "MUTEX_TAKEN", 64, 5), Event(T0 + 100, "MUTEX_FREE", 64, 6)])
    made.write()
    assert "nothing was contended" in ptt("top", trace_dir).stdout


# ---- on a terminal ----


def test_the_screen_obeys_its_keys(ptt: Ptt, held: Held) -> None:
    pid, master = pty.fork()
    if pid == 0:
        command = ptt.command("top", "--interval", "50ms", str(held.pid))
        environment = ptt.environment({"TERM": "xterm", "COLUMNS": "80", "LINES": "24"})
        os.execvpe(command[0], command, environment)  # noqa: S606 -- there is no shell
    shown = ""

    def read_until(pattern: str) -> None:
        nonlocal shown
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, shown):
            assert time.monotonic() < end, shown[-2000:]
            if select.select([master], [], [], 1)[0]:
                shown += os.read(master, 65536).decode(errors="replace")
        shown = ""

    try:
        read_until(r"mutex gate +2 ")
        os.write(master, b"t")
        read_until("waits .* for mutex gate, held by")
        os.write(master, b"s")
        read_until("call sites")
        os.write(master, b" ")
        read_until("stopped")
        os.write(master, b"q")
        # The last output may come after the process has ended; then the terminal has no other end.
        with contextlib.suppress(OSError):
            while select.select([master], [], [], PATIENCE_S)[0]:
                shown += os.read(master, 65536).decode(errors="replace")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        # `ptt top` restores the terminal and leaves the last snapshot on it.
        assert "\x1b[?1049l" in shown
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(master)
