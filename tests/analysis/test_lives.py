"""When threads end that record no end."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.model import Window, model_batches, model_tables
from nptltrace.api import Traceset
from nptltrace.trace.statistics import statistics
from tests.analysis.compare import assert_same
from tests.trace.builder import BOOT, Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

T0 = 10**12
MS = 10**6
LOCK = 0x404040
SEEN = 300
KILLED = 128 + 9


def at(ms: int, name: str, obj: int = 1, **fields: Any) -> Event:
    return Event(T0 + ms * MS, name, obj, 5, fields=fields)


def lives(source: Traceset, window: Window | None = None) -> dict[int, tuple[int, int]]:
    """Return when each thread begins and ends, in ms."""
    rows = model_tables(source, window=window).threads.to_pylist()
    return {
        row["tid"]: (row["start_ns"] // MS, row["last_ns"] // MS)
        for row in rows
        if row["start_ns"] is not None
    }


def made(path: Path, last: list[Event], exit_line: dict[str, Any] | None) -> Builder:
    """Return a process with an idle thread, a thread that ends, and a thread with last events."""
    built = Builder(path)
    built.thread(100, [at(0, "PROCESS_START", 100, ppid=1), *last], pid=100)
    built.thread(1, [at(10, "THREAD_BEGIN", 1, creator=100, serial=1)], pid=100)
    built.thread(
        2, [at(11, "THREAD_BEGIN", 2, creator=100, serial=2), at(20, "THREAD_END", 2)], pid=100
    )
    built.thread(900, [at(0, "PROCESS_START", 900, ppid=1), at(500, "MUTEX_TAKEN", LOCK)],
                 pid=900, process=1)  # fmt: skip
    for index, pid in ((0, 100), (1, 900)):
        built.processes.append(
            {"process": {"index": index, "pid": pid, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}}
        )
    if exit_line is not None:
        seen = BOOT + T0 + SEEN * MS
        built.processes.append({"exit": {"process": 0, "end_unix_ns": seen, **exit_line}})
    return built


TAKEN, LEFT = at(100, "MUTEX_TAKEN", LOCK), at(100, "PROCESS_EXIT", 0)
EXECUTED, FAILED = at(100, "PROCESS_EXEC", pid=100), at(101, "PROCESS_EXEC_FAILED", result=2)


@pytest.mark.parametrize(
    ("last", "exit_line", "end"),
    [
        # The process's own event of its end counts more than the time when the end was noticed.
        pytest.param([LEFT], {"status": 0}, 100, id="left"),
        pytest.param([LEFT], None, 100, id="left, end not noticed"),
        pytest.param([EXECUTED], {"status": None}, 100, id="executed"),
        pytest.param([EXECUTED, FAILED], {"status": 0}, SEEN, id="not executed"),
        # It does not count if the process was killed while it ended.
        pytest.param([LEFT], {"status": KILLED}, SEEN, id="killed while it left"),
        pytest.param([TAKEN], {"status": KILLED}, SEEN, id="killed"),
        pytest.param([TAKEN], {"status": 0}, SEEN, id="left without an event"),
        pytest.param([TAKEN], {"status": None}, SEEN, id="unknown status"),
        pytest.param([TAKEN], None, 500, id="end not noticed"),
    ],
)
def test_threads_without_an_end_live_until_the_process_ends(
    last: list[Event], exit_line: dict[str, Any] | None, end: int, tmp_path: Path, ptt: Ptt
) -> None:
    trace = made(tmp_path / "x.ptt", last, exit_line).write()
    whole = {100: (0, end), 1: (10, end), 2: (11, 20), 900: (0, 500)}
    assert lives(Traceset(trace)) == whole
    # The same holds in a part that ends before or after that time.
    for limits in ((5, 60), (15, 250), (50, 400)):
        window = Window(*(ms * MS for ms in limits))
        expected = {
            tid: (max(limits[0], first), min(limits[1], last_ms))
            for tid, (first, last_ms) in whole.items()
            if first < limits[1] and last_ms > limits[0]
        }
        assert lives(Traceset(trace), window) == expected, limits
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    reported = {t["tid"]: t["end_ns"] // MS for p in stat["processes"] for t in p["threads"]}
    assert reported == {tid: last_ms for tid, (_, last_ms) in whole.items()}


def test_a_lost_end_lies_before_the_next_thread_with_the_number(tmp_path: Path) -> None:
    """A thread with a lost end does not live beside the later thread with its number."""
    built = Builder(tmp_path / "x.ptt")
    built.thread(100, [at(0, "PROCESS_START", 100, ppid=1), at(100, "PROCESS_EXIT", 0)], pid=100)
    built.thread(7, [
        at(10, "THREAD_BEGIN", 1, creator=100, serial=1), at(20, "MUTEX_TAKEN", LOCK),
        at(50, "THREAD_BEGIN", 2, creator=100, serial=2), at(60, "MUTEX_FREE", LOCK),
    ], pid=100)  # fmt: skip
    rows = model_tables(Traceset(built.write())).threads.to_pylist()
    lived = [(r["start_ns"] // MS, r["last_ns"] // MS) for r in rows if r["tid"] == 7]
    assert lived == [(10, 20), (50, 100)]


WORKERS = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void *idle(void *unused) { (void)unused; for (;;) pause(); }
int main(int argc, char **argv)
{
	pthread_t thread;
	pid_t child = argc > 1 ? fork() : 0;
	(void)argv;
	if (child) {
		usleep(400000);
		kill(child, SIGKILL);
		usleep(100000);
		return 0;
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, idle, NULL);
	usleep(argc > 1 ? 10000000 : 200000);
	exit(0);
}
"""


@pytest.mark.parametrize("arguments", [(), ("killed",)])
def test_idle_threads(arguments: tuple[str, ...], compile_c: Compiler, record: Recorder) -> None:
    """Threads that do nothing more live on; no event shows how the child of a child ended."""
    trace = record(compile_c(WORKERS), *arguments)
    rows = model_tables(Traceset(trace)).threads.to_pylist()
    idle = [r for r in rows if r["start_ns"] is not None and r["creator_tid"]]
    assert len(idle) == 3
    for row in idle:
        assert 100 * MS < row["last_ns"] - row["start_ns"] < 60_000 * MS


def test_time_for_idle_threads_is_linear(tmp_path: Path) -> None:
    """Eight times as many threads take about eight times as long, not more."""
    took = []
    for count in (1000, 8000):
        built = Builder(tmp_path / f"{count}")
        built.thread(100, [at(0, "PROCESS_START", 100, ppid=1)], pid=100)
        for tid in range(101, 101 + count):
            built.thread(tid, [at(tid, "MUTEX_TAKEN", LOCK)], pid=100)
        built.processes.append(
            {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}}
        )
        source = Traceset(built.write())
        rounds = []
        for _ in range(3):
            began = time.process_time()
            stat = statistics(source)
            rounds.append(time.process_time() - began)
        took.append(min(rounds))
        ends = {thread.end_ns for process in stat.processes for thread in process.threads}
        assert ends == {(count + 100) * MS}
    assert took[1] < 16 * took[0]


def test_a_thread_that_waited_when_its_process_was_replaced(tmp_path: Path) -> None:
    """The thread does not live after that, in any part of the trace."""
    built = made(tmp_path / "x.ptt", [EXECUTED], {"status": None})
    built.thread(3, [
        at(12, "THREAD_BEGIN", 3, creator=100, serial=3), at(30, "MUTEX_WAIT", LOCK, owner=100),
    ], pid=100)  # fmt: skip
    trace = built.write()
    assert lives(Traceset(trace), Window(90 * MS, 400 * MS))[3] == (90, 100)
    assert set(lives(Traceset(trace), Window(150 * MS, 400 * MS))) == {900}


def test_an_ended_thread_keeps_its_lock(tmp_path: Path, ptt: Ptt) -> None:
    """The lock stays held: in each part, the sums by thread, by lock and in total are equal."""
    built = Builder(tmp_path / "x.ptt")
    built.thread(100, [at(0, "PROCESS_START", 100, ppid=1), at(100, "PROCESS_EXIT", 0)], pid=100)
    built.thread(7, [
        at(10, "THREAD_BEGIN", 1, creator=100, serial=1), at(20, "MUTEX_TAKEN", LOCK),
        at(30, "THREAD_END", 1),
    ], pid=100)  # fmt: skip
    trace = built.write()
    for begin, end, held in ((0, 25, 5), (25, 60, 35), (60, 100, 40)):
        part = ["--from", f"{begin}ms", "--to", f"{end}ms"]
        report = json.loads(ptt("report", "--format", "json", *part, trace).stdout)
        sums = [report, *report["objects"], *report["threads"]]
        assert [row["hold_ns"] // MS for row in sums if row["holds"]] == [held] * 3, begin
        [thread] = [row for row in report["threads"] if row["tid"] == 7]
        assert thread["end_ns"] - thread["start_ns"] == max(0, min(30, end) - max(10, begin)) * MS


def test_context_switches_before_the_first_event(tmp_path: Path, ptt: Ptt) -> None:
    """A thread begins with an event of its own, for `stat` as for `report`."""
    built = Builder(tmp_path / "x.ptt")
    built.thread(100, [at(5, "PROCESS_START", 100, ppid=1), at(100, "PROCESS_EXIT", 0)], pid=100)
    switches = [at(0, "SCHED_IN"), at(2, "SCHED_PREEMPTED"), at(3, "SCHED_IN")]
    built.thread(100, [*switches, at(101, "SCHED_OUT")], pid=100)
    trace = built.write()
    for part in ([], ["--pid", "100"]):
        stat = json.loads(ptt("stat", "--format", "json", *part, trace).stdout)
        report = json.loads(ptt("report", "--format", "json", *part, trace).stdout)
        [thread] = stat["processes"][0]["threads"]
        assert (stat["events"], thread["events"]) == (6, 6)
        assert (thread["start_ns"], thread["end_ns"]) == (5 * MS, 100 * MS)
        assert stat["duration_ns"] == report["elapsed_ns"] == 95 * MS


@pytest.mark.parametrize("joined", [False, True])
def test_a_thread_without_its_last_events_waits_until_its_end(
    tmp_path: Path, *, joined: bool
) -> None:
    """Thread 2 ends, or thread 1 joins it. The trace lacks the end of its wait."""
    join = [at(21, "THREAD_JOIN_IN", 2), at(40, "THREAD_JOIN_OUT", 2, result=0)]
    built = Builder(tmp_path / "run.ptt")
    holds = [at(0, "NEW_THREAD_CREATED", 2), at(5, "MUTEX_TAKEN", LOCK)]
    built.thread(1, [*holds, *(join if joined else []), at(60, "MUTEX_TAKEN", LOCK + 64)])
    begin = at(1, "THREAD_BEGIN", 2, creator=1)
    last = [] if joined else [at(40, "THREAD_END", 2)]
    built.thread(2, [begin, at(10, "MUTEX_WAIT", LOCK, owner=1), *last])
    built.thread(3, [at(20, "MUTEX_WAIT", LOCK, owner=1)])
    built.processes = [{"process": {"index": 0, "pid": 100, "exe": "/bin/x"}}]
    source = Traceset(built.write())
    waits = model_tables(source).waits.to_pylist()
    found = {row["tid"]: (row["dur_ns"], row["held_ns"]) for row in waits if row["open"]}
    assert found == {2: (30 * MS, 30 * MS), 3: (40 * MS, 40 * MS)}
    pieces = (table for name, table in model_batches(source, ("states",)) if name == "states")
    ends = [(r["t_ns"] + r["dur_ns"], r["tid"]) for piece in pieces for r in piece.to_pylist()]
    ended = {tid: ns // MS for ns, tid in sorted(ends)}
    assert ended == {tid: end for tid, (_, end) in lives(source).items()}
    if shutil.which("babeltrace2"):
        assert_same(tmp_path / "run.ptt")
