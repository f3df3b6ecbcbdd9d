"""A figure has the same value in reports and in SQL, if it has the same name."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.checking.checker import checked
from nptltrace.analysis.model import model_tables
from nptltrace.analysis.recording_state import ended_ns
from nptltrace.analysis.report.contention import contention
from nptltrace.analysis.report.live_contention import Follower
from nptltrace.api import Traceset
from nptltrace.errors import PttError
from nptltrace.trace.reading.watermark import Settled
from nptltrace.trace.statistics import statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

FIGURES = ("waits", "wait_ns", "held_ns", "wake_ns", "idle_ns", "holds", "hold_ns")
GREATEST = ("wait_max_ns", "hold_max_ns", "max_waiters", "threads", "generations")
CLASSES = ("wait_ns", "idle_ns", "join_ns", "timeout_ns", "cancelled_ns", "unknown_ns",
           "gil_ns")  # fmt: skip

# Three processes of one program; the threads of each process contend for three locks.
FORKS = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;

static void *work(void *unused)
{
	struct timespec rest = {0, 300000};

	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&hot);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(&hot);
		pthread_mutex_lock(&cold);
		pthread_mutex_unlock(&cold);
		pthread_spin_lock(&spin);
		nanosleep(&rest, NULL);
		pthread_spin_unlock(&spin);
	}
	return unused;
}

static void run(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			run();
			_exit(0);
		}
	run();
	while (wait(NULL) > 0)
		;
	return 0;
}
"""

# A lock with a name and a lock without a name. The program initializes each lock at one place, then
# at another, then at the first again. Each time, new threads use both locks; one thread lives from
# the start.
AGAIN = r"""
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t named;

static void *use(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return lock;
}

static void use_by(pthread_mutex_t *lock, int threads)
{
	pthread_t thread;

	use(lock);
	for (int i = 0; i < threads; i++) {
		pthread_create(&thread, NULL, use, lock);
		pthread_join(thread, NULL);
	}
	pthread_mutex_destroy(lock);
}

__attribute__((noinline)) static void make(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

__attribute__((noinline)) static void remake(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

int main(void)
{
	pthread_mutex_t *unnamed = malloc(sizeof(*unnamed));

	for (int i = 0; i < 3; i++) {
		(i == 1 ? remake : make)(&named);
		use_by(&named, 12);
		(i == 1 ? remake : make)(unnamed);
		use_by(unnamed, 12);
	}
	free(unnamed);
	return 0;
}
"""


@pytest.fixture(params=["mix", "forks", "deadlock", "window", "again"])
def trace(
    request: pytest.FixtureRequest, record: Recorder, program: Any, compile_c: Compiler
) -> tuple[Path, list[str]]:
    """A recording, and the options that choose a part of the recording."""
    if request.param == "forks":
        return record(compile_c(FORKS)), []
    if request.param == "again":
        return record(compile_c(AGAIN)), []
    if request.param == "deadlock":
        return record(program("deadlock"), "end", status=None), []
    part = ["--from", "10ms", "--to", "40ms"] if request.param == "window" else []
    return record(program("mix"), "3", "80", options=("-l", "3")), part


def asked(ptt: Ptt, trace: tuple[Path, list[str]], query: str) -> Any:
    path, part = trace
    return json.loads(ptt("sql", "--format", "json", *part, path, query).stdout)


def report(ptt: Ptt, trace: tuple[Path, list[str]], *options: str) -> Any:
    path, part = trace
    return json.loads(ptt("report", "--format", "json", *options, *part, path).stdout)


def added(rows: Iterable[Mapping[str, Any]], key: tuple[str, ...], names: Iterable[str]) -> Any:
    """Return the sums of rows by a key, without sums of 0."""
    sums: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        mine = sums.setdefault(tuple(row[name] for name in key), Counter())
        for name in names:
            mine[name] += row[name] or 0
    return {at: +found for at, found in sums.items() if +found}


def test_objects_have_the_same_figures(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    rows = asked(ptt, trace, "select *, address(object) as at from contention_by_object")
    rows = [row | {"object": row["at"]} for row in rows]
    reported = report(ptt, trace)["objects"]
    key = ("object", "pid", "kind", "init_site")
    found = {tuple(row[name] for name in key): row for row in rows}
    assert len(found) == len(rows)
    assert added(rows, key, FIGURES) == added(reported, key, FIGURES)
    for item in reported:
        row = found[tuple(item[name] for name in key)]
        assert {name: row[name] or 0 for name in GREATEST} == {n: item[n] for n in GREATEST}
        if item["waits"]:
            for name in ("wait_p50_ns", "wait_p99_ns"):
                assert row[name] == item[name], name


@pytest.mark.parametrize("trace", ["again"], indirect=True)
def test_objects_with_one_name_are_one_object(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    """Its threads are the threads of all of them; objects without a name stay apart."""
    query = (
        "select if(starts_with(name, '0x'), '', name) as name, generations, threads, holds "
        "from contention_by_object where kind = 'mutex'"
    )
    rows = [tuple(row.values()) for row in asked(ptt, trace, query)]
    assert sorted(rows) == [("", 1, 13, 13), ("", 2, 25, 26), ("named", 3, 37, 39)]
    reported = report(ptt, trace)["objects"]
    names = ("name", "generations", "threads", "holds")
    assert Counter(rows) == Counter(
        tuple(item[name] for name in names) for item in reported if item["kind"] == "mutex"
    )


def test_threads_have_the_same_figures(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    rows = asked(ptt, trace, "from idle_vs_contended")
    reported = report(ptt, trace)["threads"]
    key = ("pid", "tid")
    names = (*CLASSES, "running_ns")
    assert added(rows, key, names) == added(reported, key, names)


def test_call_sites_have_the_same_figures(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    rows = asked(ptt, trace, "from contention_by_site")
    reported = report(ptt, trace, "--by", "site")["sites"]
    names = ("waits", "wait_ns", "held_ns", "wake_ns")
    assert added(rows, ("site", "pid"), names) == added(reported, ("site", "pid"), names)


def test_holders_have_the_same_figures(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    query = "select address(object) as object, pid, owner_tid as tid, owner_site as site, {}"
    rows = asked(ptt, trace, query.format("waits, wait_max_ns, wait_caused_ns") + " from blame")
    rows = [row | {"site": row["site"] or ""} for row in rows]
    reported = report(ptt, trace)
    blamed = [
        {"object": item["object"], "pid": item["pid"], **{k: b[k] for k in ("tid", "site")},
         "wait_caused_ns": b["wait_caused_ns"]}
        for item in reported["objects"]
        for b in item["blamed"]
    ]  # fmt: skip
    key, names = ("object", "pid", "tid", "site"), ("wait_caused_ns",)
    assert added(rows, key, names) == added(blamed, key, names)
    # Each wait with a known holder counts once, for any function that called the wait.
    held = "select count(*) as n, max(dur_ns) as most from waits where class = 'contended'"
    [waits] = asked(ptt, trace, held + " and owner_tid is not null")
    assert sum(row["waits"] for row in rows) == waits["n"]
    assert max((row["wait_max_ns"] or 0 for row in rows), default=None) == waits["most"]
    # Together, the holders caused all held time of the waits.
    assert sum(row["wait_caused_ns"] for row in rows) == reported["held_ns"]
    assert reported["wait_ns"] == reported["held_ns"] + reported["wake_ns"]


def test_wakers_have_the_same_figures(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    query = (
        "select address(object) as object, pid, waker_tid as tid, coalesce(waker_site, '') as site,"
        " count(*) as count, sum(dur_ns)::bigint as blocked_ns from named_waits "
        "where waker_tid is not null and op <> 'join' group by all"
    )
    rows = asked(ptt, trace, query)
    wakers = [
        {"object": item["object"], "pid": item["pid"], **waker}
        for item in report(ptt, trace)["objects"]
        for waker in item["wakers"]
    ]
    key, names = ("object", "pid", "tid", "site"), ("count", "blocked_ns")
    assert added(rows, key, names) == added(wakers, key, names)


def test_lengths_are_the_same(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    """Lengths of the run, of processes, of threads, and of waits that never end."""
    path, part = trace
    if part:
        return  # for a part, `ptt stat` counts events only in that part
    reported = report(ptt, trace)
    stat = json.loads(ptt("stat", "--format", "json", path).stdout)
    top = json.loads(ptt("top", "-n", "0", "--format", "json", path).stdout)
    lives = Counter(
        (process["pid"], thread["tid"], thread["start_ns"], thread["end_ns"])
        for process in stat["processes"]
        for thread in process["threads"]
    )
    assert lives == Counter(
        (item["pid"], item["tid"], item["start_ns"], item["end_ns"]) for item in reported["threads"]
    )
    rows = asked(
        ptt, trace, "select pid, tid, start_ns, last_ns from threads where tid is not null"
    )
    assert lives == Counter(tuple(row.values()) for row in rows)
    ends = asked(
        ptt, trace,
        "select distinct p.end_ns - max(t.last_ns) over (partition by t.process) as late "
        "from processes p join threads t using (run_id, process)",
    )  # fmt: skip
    assert [row["late"] for row in ends] == [0]
    assert reported["elapsed_ns"] == stat["duration_ns"] == top["ts_ns"] - top["since_ns"]
    assert (top["total_waits"], top["total_wait_ns"], top["total_held_ns"]) == (
        reported["waits"] - sum(wait["class"] == "contended" for wait in _open(reported)),
        reported["wait_ns"],
        reported["held_ns"],
    )


def test_silence_of_threads_is_the_same(ptt: Ptt, trace: tuple[Path, list[str]]) -> None:
    """A report and a check agree on the time that threads made no event."""
    path, part = trace
    if part:
        return  # a check follows the whole trace
    lives = checked(Traceset(path)).lives()
    assert all(isinstance(life.silent_ns, int) for life in lives)
    assert Counter(lives) == Counter(
        (thread["pid"], thread["end_ns"] - thread["start_ns"], thread["silent_ns"])
        for thread in report(ptt, trace)["threads"]
    )


def _open(reported: Any) -> list[Any]:
    return list(reported["never_ended"])


# Two threads wait for a lock that the first thread holds until its input ends.
HOLDS = r"""
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *ask(void *unused)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	char end;

	pthread_mutex_lock(&gate);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, ask, NULL);
	while (read(0, &end, 1) > 0)
		;
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@pytest.mark.usefixtures("native_in_process")
def test_a_live_recording_has_the_same_figures(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open waits last until now, and all commands give the same length."""
    trace = tmp_path / "live.ptt"
    command = ptt.command("record", "-o", trace, "--", compile_c(HOLDS))
    with subprocess.Popen(command, env=ptt.environment(), stdin=subprocess.PIPE) as recorder:
        assert recorder.stdin is not None
        try:
            source = _with_waits(trace, 2)
            now_ns = source.start_unix_ns + (source.end_ns() or 0) + 3_000_000_000
            stopped = SimpleNamespace(time_ns=lambda: now_ns, monotonic=time.monotonic)
            monkeypatch.setattr("nptltrace.trace.reading.watermark.time", stopped)
            until_ns = Settled(source).until_ns()
            report = contention(source)
            follower = Follower(source)
            follower.read(until_ns)
            top = follower.present()
            stat = statistics(source, ended_ns=ended_ns(source))
            rows = model_tables(source).waits.to_pylist()
        finally:
            recorder.stdin.close()
    opened = report.open_waits
    assert {wait.t_ns + wait.dur_ns for wait in opened} == {until_ns}
    assert report.figures.wait_ns == sum(wait.dur_ns for wait in opened) > 2_000_000_000
    assert report.figures.wait_ns == top.figures.wait_ns == sum(row["dur_ns"] for row in rows)
    assert report.figures.held_ns == top.figures.held_ns == report.figures.wait_ns
    assert report.last_ns == stat.last_ns == top.now_ns == until_ns
    assert report.first_ns == stat.first_ns == top.since_ns


def _with_waits(trace: Path, count: int) -> Traceset:
    """Return a live recording as soon as it has so many open waits."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with suppress(PttError):
            source = Traceset(trace)
            if sum(row["open"] for row in model_tables(source).waits.to_pylist()) == count:
                return source
        time.sleep(0.05)
    raise AssertionError("no such waits")
