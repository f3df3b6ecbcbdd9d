"""Context switches recorded by the kernel: their threads, states, and lost switches."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace.ui.viewer import Viewer
from tests.ui.reference import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace import Traceset
    from tests.support import Ptt

MS = 1_000_000
# A competitor that also competes with other programs shows nothing.
pytestmark = pytest.mark.alone


def with_switches(ptt: Ptt, trace: Path, *command: str | Path) -> tuple[str, Traceset]:
    """Record a program with its context switches; skip if the kernel does not allow it."""
    done = ptt("record", "--sched", "perf", "-o", trace, "--", *command, status=None)
    if done.returncode == 77:
        pytest.skip("this kernel has no schedstat")
    assert done.returncode == 0, done.stderr
    if "cannot record context switches" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert json.loads(ptt("stat", "--format", "json", trace).stdout)["sched"] == "perf"
    return done.stdout, nptltrace.open(trace)


def check_lives(traces: Traceset) -> None:
    """Assert that a thread's states follow one another without gaps and cover its life."""
    states = traces.table("states").to_pylist()
    for thread in traces.table("threads").to_pylist():
        me = (thread["process"], thread["tid"])
        mine = sorted(
            (row["t_ns"], row["dur_ns"]) for row in states if (row["process"], row["tid"]) == me
        )
        assert mine[0][0] == thread["start_ns"]
        assert all(t + dur == after for (t, dur), (after, _) in pairwise(mine))
        assert sum(dur for _, dur in mine) == thread["last_ns"] - thread["start_ns"]


@pytest.mark.usefixtures("native_in_process")
def test_states_beside_a_competitor(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    message, traces = with_switches(ptt, trace_dir, program("sched"), "competitor")
    planted = {line.split()[0]: int(line.split()[1]) for line in message.splitlines()}
    check_lives(traces)
    holds = [row for row in traces.table("holds").to_pylist() if row["dur_ns"] > 10 * MS]
    states = [r for r in traces.table("states").to_pylist() if r["t_ns"] >= holds[0]["t_ns"]]
    # By then all threads are bound to one processor.
    assert len({row["cpu"] for row in states if row["cpu"] is not None}) == 1
    assert {row["state"] for row in states if row["cpu"] is not None} == {"running"}
    for name, hold in zip(("computes", "sleeps", "both"), holds, strict=True):
        spent: dict[str, int] = {}
        for row in states:
            if row["tid"] == hold["tid"] and hold["t_ns"] <= row["t_ns"]:
                part = min(row["t_ns"] + row["dur_ns"], hold["t_ns"] + hold["dur_ns"]) - row["t_ns"]
                spent[row["state"]] = spent.get(row["state"], 0) + max(part, 0)
        assert abs(spent["running"] - planted[name]) <= max(planted[name] // 20, MS), (name, spent)
        slept = {"computes": 0, "sleeps": 30 * MS, "both": 20 * MS}[name]
        assert spent.get("asleep", 0) >= slept, (name, spent)
        # The run delay agrees with the readings.
        ready = spent.get("preempted", 0) + spent.get("ready", 0)
        assert abs(ready - hold["ready_ns"]) <= max(ready // 20, MS // 2), (name, spent, hold)
        if name == "computes":
            assert spent["preempted"] > 10 * MS, spent
    # The threads take turns on the processor: two of them never run at once.
    ran = sorted((r["t_ns"], r["t_ns"] + r["dur_ns"]) for r in states if r["state"] == "running")
    together = sum(max(0, end - after) for (_, end), (after, _) in pairwise(ran))
    assert together <= MS // 2, together


@pytest.mark.usefixtures("native_in_process")
def test_threads_of_all_processes_have_states(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    message, traces = with_switches(ptt, trace_dir, program("switches"), "processes")
    ran = {int(tid): int(ns) for tid, ns in (line.split() for line in message.splitlines())}
    assert len(ran) == 36
    check_lives(traces)
    states = traces.table("states").to_pylist()
    # A thread belongs to its image of the process.
    threads = {(row["process"], row["tid"]): row for row in traces.table("threads").to_pylist()}
    assert {(row["process"], row["tid"]) for row in states} == set(threads)
    for (_, tid), thread in threads.items():
        if tid not in ran:
            continue
        mine = [row for row in states if row["tid"] == tid]
        running = sum(row["dur_ns"] for row in mine if row["state"] == "running")
        assert abs(running - ran[tid]) <= MS, (running, ran[tid], mine)
        # Five naps in calls that the tracer does not hook.
        asleep = [row["dur_ns"] for row in mine if row["state"] == "asleep"]
        assert sum(dur >= 3 * MS for dur in asleep) == 5, asleep
        assert thread["last_ns"] - thread["start_ns"] >= 20 * MS
    # Parts of the trace add up to the whole.
    query = "select process, tid, state, sum(dur_ns) as ns from states group by all order by all"
    middle = f"{(traces.start + traces.end) // 2}ns"
    options: tuple[list[str], ...] = ([], ["--to", middle], ["--from", middle])
    whole, *parts = (
        {
            (row["process"], row["tid"], row["state"]): row["ns"]
            for row in json.loads(ptt("sql", "--format", "json", *of, trace_dir, query).stdout)
        }
        for of in options
    )
    assert whole == {key: sum(part.get(key, 0) for part in parts) for key in whole}


@pytest.mark.usefixtures("native_in_process")
def test_the_viewer_draws_processors_as_the_states_are(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    _, traces = with_switches(ptt, trace_dir, program("switches"), "processes")
    ran: dict[int, int] = {}
    for state in traces.table("states").to_pylist():
        if state["cpu"] is not None:
            ran[state["cpu"]] = ran.get(state["cpu"], 0) + state["dur_ns"]
    assert ran
    viewer = Viewer([trace_dir])
    viewer.start()
    viewer.wait_ready()
    try:
        rows = ask(viewer, "rows", by="processor", limit=1000).to_pylist()
    finally:
        viewer.close()
    assert {row["row"] - 1: row["hold_ns"] for row in rows} == ran


@pytest.mark.usefixtures("native_in_process")
def test_other_readers_read_the_streams(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path, tmp_path: Path
) -> None:
    _, traces = with_switches(ptt, trace_dir, program("switches"))
    types = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)["event_types"]
    names = ("SCHED_IN", "SCHED_OUT", "SCHED_PREEMPTED")
    assert types["SCHED_IN"] >= 13
    copy = tmp_path / "copy"
    ptt("cut", "--from", "0ns", "-o", copy, trace_dir)
    again = json.loads(ptt("stat", "--format", "json", copy).stdout)["event_types"]
    assert [again.get(name) for name in names] == [types.get(name) for name in names]
    ptt("verify", trace_dir)
    assert not json.loads(ptt("check", "--format", "json", trace_dir).stdout)["findings"]
    assert traces.table("waits").num_rows
    if shutil.which("babeltrace2") is None:
        pytest.skip("babeltrace2 is not installed")
    done = subprocess.run(["babeltrace2", trace_dir], capture_output=True, text=True, check=True)
    assert "WARNING" not in done.stderr
    assert [done.stdout.count(f" {name}: ") for name in names] == [types.get(n, 0) for n in names]


def until_drained(pid: int) -> None:
    """Wait until a recorder has emptied the buffers.

    Two recorder threads poll and sleep in turn; wait until both have slept several times more.
    """

    def sleeps() -> dict[str, int]:
        counts = {}
        for task in Path(f"/proc/{pid}/task").iterdir():
            text = (task / "status").read_text(encoding="utf-8")
            counts[task.name] = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return counts

    before = sleeps()
    while sorted(now - before.get(tid, 0) for tid, now in sleeps().items())[-2] < 10:
        time.sleep(0.02)


@pytest.mark.usefixtures("native_in_process")
def test_states_are_unknown_where_switches_were_lost(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    with_switches(ptt, trace_dir, program("switches"))  # or skip the test
    command = ("record", "--force", "--sched", "perf", "-o", trace_dir, "--", program("switches"))
    with subprocess.Popen(
        ptt.command(*command, "many"), env=ptt.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as recorder:  # fmt: skip
        assert recorder.stdout is not None
        assert recorder.stdin is not None
        assert recorder.stdout.readline() == "ready\n"
        until_drained(recorder.pid)
        recorder.send_signal(signal.SIGSTOP)
        recorder.stdin.write("\n")
        recorder.stdin.flush()
        assert recorder.stdout.readline() == "done\n"
        recorder.send_signal(signal.SIGCONT)
        # When the kernel has room again, its next record says how many switches it dropped.
        until_drained(recorder.pid)
        recorder.stdin.write("\n")
        recorder.stdin.close()
        assert recorder.wait(timeout=60) == 0
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    # The kernel's buffers hold at most 16384 switches a processor.
    assert stat["event_types"]["SCHED_LOST"]
    assert stat["lost"] > 0
    traces = nptltrace.open(trace_dir)
    check_lives(traces)
    states = traces.table("states").to_pylist()
    assert sum(row["dur_ns"] for row in states if row["state"] == "unknown") > 0


def test_without_permission_there_are_readings(
    ptt: Ptt, program: Callable[[str], Path], compile_c: Callable[..., Path], trace_dir: Path
) -> None:
    refuses = compile_c(
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdarg.h>
        #include <sys/syscall.h>
        long syscall(long number, ...)
        {
            static long (*real)(long, ...);
            long a[6];
            va_list list;
            va_start(list, number);
            for (int i = 0; i < 6; i++)
                a[i] = va_arg(list, long);
            va_end(list);
            if (number == SYS_perf_event_open) {
                errno = EACCES;
                return -1;
            }
            if (!real)
                real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
            return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        }
        """,
        "-shared",
        "-fPIC",
    )
    command = ("record", "--sched", "perf", "-o", trace_dir, "--", program("switches"))
    done = ptt(*command, env={"LD_PRELOAD": str(refuses)})
    [reported] = [line for line in done.stderr.splitlines() if "context switches" in line]
    assert reported.startswith("ptt: cannot record context switches: Permission denied (")
    assert "perf_event" in reported
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["sched"] != "perf"
    assert "SCHED_IN" not in stat["event_types"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--stream-full-policy", "loop"), "--sched perf needs --stream-full-policy flush"),
        (("--max-file-size", "1M"), "--sched perf cannot be combined with --max-file-size"),
        (("--handler", "shared"), "--sched perf needs handler ring, not shared"),
    ],
)
def test_incompatible_options_are_refused(ptt: Ptt, options: tuple[str, str], reason: str) -> None:
    done = ptt("record", "--sched", "perf", *options, "--", "true", status=2)
    assert done.stderr.startswith(f"ptt: error: {reason}")
