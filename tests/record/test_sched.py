"""Times without a processor: what scheduler readings say about holds, waits and threads."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace import Traceset
    from tests.support import Ptt

MS = 1_000_000

# Threads that start and end as fast as they can.
CHURN = """
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *use(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}
int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 4000; i++)
		if (pthread_create(&thread, NULL, use, NULL) || pthread_join(thread, NULL))
			abort();
	return 0;
}
"""


def recorded(
    ptt: Ptt, program: Callable[[str], Path], trace: Path, what: str
) -> tuple[list[list[str]], Traceset]:
    """Record a part of the program with readings; skip if readings are not available."""
    done = ptt("record", "--sched", "auto", "-o", trace, "--", program("sched"), what, status=None)
    if done.returncode == 77:
        pytest.skip("this kernel has no schedstat")
    assert done.returncode == 0, done.stderr
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    if stat["sched"] != "schedstat":
        pytest.skip(f"no readings here: {stat['sched']}")
    return [line.split() for line in done.stdout.splitlines()], nptltrace.open(trace)


def near(found: int, planted: int) -> bool:
    """Return whether a time equals the program's own measure within 5 % or 200 us."""
    return abs(found - planted) <= max(planted // 20, 200_000)


@pytest.mark.usefixtures("native_in_process")
def test_holds_and_waits_beside_a_competitor(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    message, traces = recorded(ptt, program, trace_dir, "competitor")
    planted = {name: int(number) for name, number in message}
    holds = [row for row in traces.table("holds").to_pylist() if row["dur_ns"] > 10 * MS]
    assert [row["ran_ns"] is not None for row in holds] == [True] * 3
    computes, sleeps, both = holds
    for name, row in zip(("computes", "sleeps", "both"), holds, strict=True):
        assert near(row["ran_ns"], planted[name]), (name, row, planted)
        assert row["ran_ns"] + row["off_ns"] == row["dur_ns"]
    # Beside the competitor the thread was runnable all the time, and slept as long as it said.
    assert near(computes["off_ns"], computes["ready_ns"])
    assert sleeps["off_ns"] - sleeps["ready_ns"] > 29 * MS
    assert both["off_ns"] - both["ready_ns"] > 19 * MS
    [wait] = [row for row in traces.table("waits").to_pylist() if row["class"] == "contended"]
    assert near(wait["ready_ns"], planted["waiter"])
    checked = json.loads(ptt("check", "--format", "json", trace_dir, status=1).stdout)
    assert "sleeping-holder" in {found["kind"] for found in checked["findings"]}
    assert wait["held_ns"] + wait["wake_ns"] == wait["dur_ns"]


@pytest.mark.usefixtures("native_in_process")
def test_a_kernel_that_does_not_tell_when_threads_sleep_in_calls(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    """As on Linux 6.19 and newer: figures of waits and awaited holds are right, others unknown."""
    as_there = {"PTT_TEST_READINGS": "partial"}
    command = ("record", "--sched", "auto", "-o", trace_dir, "--", program("sched"), "competitor")
    done = ptt(*command, status=None, env=as_there)
    if done.returncode == 77:
        pytest.skip("this kernel has no schedstat")
    planted = {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    if stat["sched"] == "none":
        pytest.skip("no readings here")
    assert stat["sched"] == "partial"
    assert "times without a processor: only around waits" in ptt("stat", trace_dir).stdout
    traces = nptltrace.open(trace_dir)
    holds = [row for row in traces.table("holds").to_pylist() if row["dur_ns"] > 10 * MS]
    # The competitor interrupts the first hold, calls bound the second, and a thread waits for
    # the last.
    assert [row["ran_ns"] is not None for row in holds] == [True] * 3
    for name, row in zip(("computes", "sleeps", "both"), holds, strict=True):
        assert abs(row["ran_ns"] - planted[name]) <= row["dur_ns"] // 64 + MS // 5, (name, row)
        assert row["ran_ns"] + row["off_ns"] == row["dur_ns"]
    [wait] = [row for row in traces.table("waits").to_pylist() if row["class"] == "contended"]
    assert near(wait["ready_ns"], planted["waiter"])
    # Also of the main thread, which has its last reading where the process ends.
    threads = traces.table("threads").to_pylist()
    assert [thread["ready_ns"] is not None for thread in threads] == [True] * len(threads)
    assert all(thread["cpu_ns"] <= thread["last_ns"] - thread["start_ns"] for thread in threads)
    assert sum(thread["cpu_ns"] for thread in threads) >= planted["computes"] + planted["both"]
    # Nobody knows whether a thread ran between two events.
    states = traces.table("states").to_pylist()
    assert sum(row["dur_ns"] for row in states if row["state"] == "running") < MS
    checked = json.loads(ptt("check", "--format", "json", trace_dir, status=1).stdout)
    assert "sleeping-holder" in {found["kind"] for found in checked["findings"]}


@pytest.mark.usefixtures("native_in_process")
def test_states_add_up_to_lives(ptt: Ptt, program: Callable[[str], Path], trace_dir: Path) -> None:
    _, traces = recorded(ptt, program, trace_dir, "competitor")
    states = traces.table("states").to_pylist()
    for thread in traces.table("threads").to_pylist():
        mine = sorted((r["t_ns"], r["dur_ns"]) for r in states if r["tid"] == thread["tid"])
        assert mine[0][0] == thread["start_ns"]
        assert all(t + dur == after for (t, dur), (after, _) in pairwise(mine))
        assert sum(dur for _, dur in mine) == thread["last_ns"] - thread["start_ns"]
        assert thread["cpu_ns"] is not None
    reported = json.loads(ptt("report", "--format", "json", trace_dir).stdout)["threads"]
    table = {
        (row["tid"], row["cpu_ns"], row["ready_ns"]) for row in traces.table("threads").to_pylist()
    }
    assert {(row["tid"], row["cpu_ns"], row["ready_ns"]) for row in reported} == table
    shown = ptt("report", "--by", "thread", trace_dir).stdout
    assert shown.count("on a processor for ") == len(table)
    # A thread that slept 30 ms with the lock did not run meanwhile, nor did the waiting thread.
    main = traces.table("threads").to_pylist()[0]
    running = sum(r["dur_ns"] for r in states if (r["tid"], r["state"]) == (main["tid"], "running"))
    assert running <= main["cpu_ns"] + MS
    assert {row["state"] for row in states} >= {"running", "blocked", "unknown"}


@pytest.mark.usefixtures("native_in_process")
def test_without_readings_all_but_waits_and_sleeps_is_unknown(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    ptt("record", "--sched", "none", "-o", trace_dir, "--", program("sched"), "competitor")
    assert json.loads(ptt("stat", "--format", "json", trace_dir).stdout)["sched"] == "none"
    traces = nptltrace.open(trace_dir)
    states = {row["state"] for row in traces.table("states").to_pylist()}
    assert states == {"asleep", "blocked", "unknown"}
    assert {row["ran_ns"] for row in traces.table("holds").to_pylist()} == {None}
    assert {row["ready_ns"] for row in traces.table("waits").to_pylist()} == {None}
    assert {row["cpu_ns"] for row in traces.table("threads").to_pylist()} == {None}


@pytest.mark.usefixtures("native_in_process")
def test_times_are_unknown_after_a_program_uses_rseq_itself(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    _, traces = recorded(ptt, program, trace_dir, "rseq")
    types = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)["event_types"]
    assert types["SCHED_UNKNOWN"] == 1
    known = [row["ran_ns"] is not None for row in traces.table("holds").to_pylist()]
    assert known == [True, False, False]


@pytest.mark.usefixtures("native_in_process")
def test_the_programs_descriptors_stay_its_own(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    message, traces = recorded(ptt, program, trace_dir, "numbers")
    assert message[-1] == ["lost", "0,", "in", "the", "child", "0"]
    holds = traces.table("holds").to_pylist()
    assert holds[0]["ran_ns"] is not None
    # Its file was gone, and no number was free for another: the time it ran is still known.
    assert holds[0]["ready_ns"] is not None
    assert near(holds[1]["ran_ns"], MS)
    assert holds[1]["off_ns"] >= 2 * MS
    assert holds[1]["ready_ns"] is None


@pytest.mark.usefixtures("native_in_process")
def test_a_constantly_interrupted_thread_has_few_full_readings(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    """Most readings ask the kernel little; after long times and waits the readings are complete."""
    message, traces = recorded(ptt, program, trace_dir, "interrupted")
    planted = {name: int(number) for name, number in message}
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    types = stat["event_types"]
    # Each interruption that meets a holder leads to a reading that says at least how long it ran.
    asked = types["SCHED_READING"] + types["SCHED_RAN"]
    assert asked >= planted["holding"]
    assert asked + types["SCHED_SWITCHED"] >= planted["interrupted"]
    assert asked <= planted["holding"] + 4 * (64 + 8) + 4 * stat["duration_ns"] // MS
    assert types["SCHED_READING"] <= 2 * (64 + 8) + 4 * stat["duration_ns"] // MS
    holds = [row for row in traces.table("holds").to_pylist() if row["dur_ns"] > 29 * MS]
    outer, slept = sorted(holds, key=itemgetter("t_ns"))[:2]
    for name, row in (("outer", outer), ("slept", slept)):
        assert near(row["ran_ns"], planted[name]), (name, row, planted)
        assert row["off_ns"] > 29 * MS
    assert outer["ready_ns"] is not None
    [wait] = [row for row in traces.table("waits").to_pylist() if row["class"] == "contended"]
    assert wait["ready_ns"] is not None


@pytest.mark.usefixtures("native_in_process")
def test_every_wait_has_its_times(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    """Even of thousands of waits; the condition's mutex is taken back before the wait is over."""
    _, traces = recorded(ptt, program, trace_dir, "turns")
    waits = traces.table("waits").to_pylist()
    assert len(waits) > 3000
    # If the mutex had to be waited for, only that wait has the times.
    again = [row for row in waits if row["class"] == "contended"]
    assert all(row["ready_ns"] is not None for row in again)
    assert sum(row["ready_ns"] is None for row in waits) <= len(again)
    holds = traces.table("holds").to_pylist()
    unknown = sum(row["ready_ns"] is None for row in holds)
    assert unknown * 100 <= len(holds), (unknown, len(holds))


@pytest.mark.usefixtures("native_in_process")
def test_brief_waits_have_times_from_the_next_reading(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    """If a thread lost its processor before that reading, its next waits have readings at once."""
    message, traces = recorded(ptt, program, trace_dir, "contended")
    waits = traces.table("waits").to_pylist()
    contended = [row["ready_ns"] for row in waits if row["class"] == "contended"]
    assert len(contended) == 4000
    events = traces.table("events").to_pylist()
    of_thread = sorted(events, key=itemgetter("tid", "ts_ns"))
    pairs = Counter((a["event"], b["event"]) for a, b in pairwise(of_thread))
    # With 64 readings at once and one per millisecond, at least one wait has no own reading.
    assert pairs["SCHED_RAN", "MUTEX_TAKEN"]
    assert pairs["SCHED_KEPT", "MUTEX_WAIT"]
    # At most one of 33 waits that lost the processor, and the last waits of a packet.
    unknown = sum(ready is None for ready in contended)
    assert unknown <= 4 + len(contended) / 20, (unknown, len(contended))
    assert sum(ready or 0 for ready in contended) <= int(message[-1][1]) + MS
    assert all(row["off_ns"] is not None for row in traces.table("holds").to_pylist())


def test_the_environment_sets_the_default(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    wrong = ptt("record", "--", program("sched"), status=2, env={"PTT_SCHED": "always"})
    assert wrong.stderr == "ptt: error: $PTT_SCHED must be auto, perf or none, not 'always'\n"
    ptt("record", "-o", trace_dir, "--", program("sched"), "rseq", env={"PTT_SCHED": None})
    facts = json.loads((trace_dir / "info" / "session.json").read_text())
    assert facts["sched"] == "auto"


def test_threads_that_come_and_go_fast_are_not_slowed_down_by_readings(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path
) -> None:
    ptt("record", "--sched", "auto", "-o", trace_dir, "--", compile_c(CHURN, name="churn"))
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    if stat["sched"] != "schedstat":
        pytest.skip(f"no readings here: {stat['sched']}")
    types = stat["event_types"]
    assert types["THREAD_BEGIN"] == types["THREAD_END"] == 4000
    # All threads lost the processor before they began; few know how long they were ready.
    assert types["SCHED_READING"] + types.get("SCHED_RAN", 0) >= 4000
    whole = "event in ('SCHED_READING', 'SCHED_KEPT')"
    query = f"select count(*) as n from events where {whole} and tid <> pid"  # noqa: S608
    [count] = json.loads(ptt("sql", trace_dir, query, "--format", "json").stdout)
    assert 0 < count["n"] <= 4 * (256 + stat["duration_ns"] // MS)


# An area of the C library with another signature: RSEQ_SIG belongs to the C library.
OWN_RSEQ = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char own[64] __attribute__((aligned(64)));

static void *hold(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(int argc, char **argv)
{
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    pthread_t thread;

    pthread_create(&thread, NULL, hold, NULL);
    hold(NULL);
    if (syscall(SYS_rseq, area, 32, 1, RSEQ_SIG) &&
        syscall(SYS_rseq, area, __rseq_size, 1, RSEQ_SIG))
        return 77;
    if (syscall(SYS_rseq, argc > 1 ? own : area, 32, 0, 0x11111111))
        return 78;
    hold(NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""


@pytest.mark.parametrize("arguments", [(), ("own",)], ids=["signature", "area"])
def test_a_program_that_registers_rseq_itself(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path, arguments: tuple[str, ...]
) -> None:
    program = compile_c(OWN_RSEQ, name="own_rseq")
    if subprocess.run([program, *arguments], check=False).returncode:
        pytest.skip("the C library registers no rseq area, or an area of another size")
    ptt("record", "--sched", "auto", "-o", trace_dir, "--", program, *arguments)
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    query = "select count(*) as n from threads where cpu_ns is not null"
    [count] = json.loads(ptt("sql", trace_dir, query, "--format", "json").stdout)
    assert stat["event_types"].get("SCHED_UNKNOWN", 0) > 0 or "SCHED_RAN" not in stat["event_types"]
    assert count["n"] == 0


# Prints which descriptors are open besides the first three and the directory's own descriptor.
DESCRIPTORS = """
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(int argc, char **argv)
{
    struct rlimit limit = {atoi(argv[1]), atoi(argv[1])};
    pthread_t thread[40];
    struct dirent *entry;
    DIR *all;

    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < 40; i++)
        pthread_create(&thread[i], NULL, hold, NULL);
    hold(NULL);
    all = opendir("/proc/self/fd");
    while ((entry = readdir(all)))
        if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(all))
            printf("%s ", entry->d_name);
    for (int i = 0; i < 40; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
"""


@pytest.mark.parametrize("limit", [31, 64, 256])
def test_few_descriptors_are_used(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path, limit: int
) -> None:
    program = compile_c(DESCRIPTORS, name="descriptors")
    done = ptt("record", "--sched", "auto", "-o", trace_dir, "--", program, str(limit))
    used = [int(number) for number in done.stdout.split()]
    assert all(number >= limit - limit // 32 for number in used)
