"""Reports of programs with a known contention, and of traces made by hand."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.model import Counted, Window, model_tables
from nptltrace.analysis.report.contention import contention
from nptltrace.api import Traceset
from nptltrace.trace.objects.chosen import Chosen
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder

T0 = 10**12
MS = 10**6
LOCK, OTHER, COND, SEM = 0x4040, 0x4080, 0x40C0, 0x4100


def report_of(trace: Path, **more: Any) -> Any:
    return contention(Traceset(trace), **more)


def taken(ts: int, lock: int = LOCK, *, waited: int | None = None, result: int = 0) -> Event:
    if waited is None:
        return Event(T0 + ts, "MUTEX_TAKEN", lock, 5)
    fields = {"result": result, "wait_ns": waited}
    return Event(T0 + ts, "MUTEX_TAKEN", lock, 5, variant="WAITED", fields=fields)


def free(ts: int, lock: int = LOCK) -> Event:
    return Event(T0 + ts, "MUTEX_FREE", lock, 6)


def wait(ts: int, lock: int = LOCK, owner: int = 0) -> Event:
    return Event(T0 + ts, "MUTEX_WAIT", lock, 7, fields={"owner": owner})


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace of threads, given as lists of events by tid."""

    def make(level: str = "2", **threads: list[Event]) -> Path:
        made = Builder(tmp_path / "made.ptt", session={"state": "complete", "level": level})
        for name, events in threads.items():
            made.thread(int(name[1:]), events)
        made.processes = [
            {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
            {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + n) for n in range(1, 20)}}},
        ]
        return made.write()

    return make


# ---- programs ----


def test_measured_by_the_program(program: Callable[[str], Path], ptt: Ptt, tmp_path: Path) -> None:
    """The figures of a report lie within the program's own bounds, however busy the machine is."""
    trace = tmp_path / "run.ptt"
    own = ptt("record", "-q", "-o", trace, "--", program("contention")).stdout
    out = json.loads(ptt("report", "--format", "json", trace).stdout)
    reported = {f"{item['kind']} {item['name']}": item["wait_ns"] for item in out["objects"]}
    lines = [line.rsplit(maxsplit=2) for line in own.splitlines()]
    assert len(lines) == 5
    for name, least, most in lines:
        assert 25 * MS < int(least) <= reported[name] <= int(most), name


def test_deadlock_is_reported(program: Callable[[str], Path], record: Recorder, ptt: Ptt) -> None:
    trace = record(program("deadlock"), "end", status=None)
    text = ptt("report", trace).stdout
    assert "DEADLOCK: thread" in text
    assert "waits for mutex second, held by thread" in " ".join(text.split())
    assert "which waits for mutex first, held by thread" in " ".join(text.split())
    assert "1 thread was still waiting for work at the end" in text
    out = json.loads(ptt("report", "--format", "json", trace).stdout)
    (cycle,) = out["deadlocks"]
    assert {item["object_name"] for item in cycle} == {"first", "second"}
    assert {item["owner_tid"] for item in cycle} == {item["tid"] for item in cycle}
    assert all(item["dur_ns"] > 300 * MS for item in cycle)
    assert max(map(len, text.splitlines()[1:])) <= 80


# ---- the command ----


@pytest.mark.parametrize("by", ["object", "thread", "site", "thread,object"])
def test_views(by: str, program: Callable[[str], Path], record: Recorder, ptt: Ptt) -> None:
    trace = record(program("sem"), status=None)
    text = ptt("report", "--by", by, trace).stdout
    assert max(map(len, text.splitlines()[1:])) <= 80
    rows = list(csv.reader(io.StringIO(ptt("report", "--by", by, "--format", "csv", trace).stdout)))
    assert len({len(row) for row in rows}) == 1
    assert {"waits", "wait_ns", "holds", "idle_ns"} <= set(rows[0])
    out = json.loads(ptt("report", "--by", by, "--format", "json", trace).stdout)
    assert {"elapsed_ns", "wait_ns", "objects", "threads"} <= set(out)
    key = {"site": "sites", "thread,object": "pairs"}.get(by, f"{by}s")
    assert len(out[key]) == len(rows) - 1


def test_filters(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(
        t1=[taken(0), free(10 * MS), taken(20 * MS, OTHER), free(30 * MS, OTHER)],
        t2=[
            wait(1 * MS, owner=1), taken(11 * MS, waited=10 * MS), free(12 * MS),
            wait(21 * MS, OTHER), taken(31 * MS, OTHER, waited=9 * MS), free(32 * MS, OTHER),
        ],
    )  # fmt: skip

    def wait_ns(*options: str) -> int:
        out = json.loads(ptt("report", "--format", "json", *options, trace).stdout)
        return int(out["wait_ns"])

    assert wait_ns() == 19 * MS
    assert wait_ns("--object", hex(LOCK)) == 10 * MS
    assert wait_ns("--tid", "1") == 0
    assert wait_ns("--tid", "2") == 19 * MS
    assert wait_ns("--site", "0x401007", "--object", hex(OTHER)) == 9 * MS
    assert wait_ns("--from", "15ms") == 9 * MS
    assert wait_ns("--to", "15ms") == 10 * MS
    ptt("report", "--pid", "x", trace, status=2)


@pytest.mark.parametrize("size", [0, 1, 100, 128, 150, 1000])
def test_half_written(size: int, build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(t1=[taken(0), free(10 * MS)] * 40, t2=[taken(1, OTHER), free(5, OTHER)])
    file = trace / "stream-00000"
    file.write_bytes(file.read_bytes()[:size])
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    assert [item["object"] for item in report["objects"]][:1] == [hex(OTHER)]


def test_empty(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build()
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    assert report["objects"] == report["threads"] == []
    assert "0 threads" in ptt("report", trace).stdout
    ptt("report", trace / "nothing", status=2)


# ---- rules ----


def test_blame_follows_the_holders(build: Callable[..., Path]) -> None:
    """A holds, then B; C waits for both."""
    trace = build(
        t1=[taken(0), free(100)],
        t2=[wait(20), taken(110, waited=90), free(200)],
        t3=[wait(50), taken(205, waited=155), free(300)],
    )
    (lock,) = report_of(trace).objects
    caused = {blame.thread.tid: blame.wait_caused_ns for blame in lock.blamed}
    assert caused == {1: 80 + 50, 2: 90}
    assert lock.figures.wait_ns == 90 + 155
    assert lock.figures.held_ns == 80 + 50 + 90
    assert lock.figures.wake_ns == 10 + 10 + 5
    assert lock.max_waiters == 2


def test_a_timeout_blames_nobody(build: Callable[..., Path]) -> None:
    gave_up = Event(T0 + 60, "MUTEX_WAIT_END", LOCK, 7, fields={"result": 110, "wait_ns": 40})
    trace = build(
        t1=[taken(0), free(100)], t2=[wait(20), gave_up], t3=[wait(50), taken(105, waited=55)]
    )
    (lock,) = report_of(trace).objects
    assert lock.figures.waits == 1
    assert lock.figures.other_ns["timeout"] == 40
    assert [blame.wait_caused_ns for blame in lock.blamed] == [50]


def test_a_new_lock_at_an_old_address_is_another_lock(build: Callable[..., Path]) -> None:
    def init(ts: int) -> Event:
        return Event(T0 + ts, "MUTEX_INIT", LOCK, 1)

    destroy = Event(T0 + 30, "MUTEX_DESTROY", LOCK, 2)
    trace = build(
        t1=[
            init(0),
            taken(10),
            free(20),
            destroy,
            taken(40),
            free(50),
            init(60),
            taken(70),
            free(80),
        ]
    )
    tables = model_tables(Traceset(trace))
    assert tables.objects["gen"].to_pylist() == [1, 2, 3]
    assert tables.holds["lock_id"].to_pylist() == [1, 2, 3]
    assert tables.holds["open"].to_pylist() == [False] * 3
    assert [item.generations for item in report_of(trace).objects] == [3]


@pytest.mark.parametrize("crowd", [0, 80])
def test_threads_are_counted_once_for_all_objects_of_an_address(
    build: Callable[..., Path], crowd: int
) -> None:
    """Two threads use the first lock; a third thread and one of the two use the second lock."""
    others = {f"t{tid}": [taken(tid, OTHER), free(tid, OTHER)] for tid in range(1000, 1000 + crowd)}
    destroy = Event(T0 + 10_000, "MUTEX_DESTROY", LOCK, 2)
    trace = build(
        **others,
        t2000=[taken(2000), free(2010), destroy],
        t2001=[taken(3000), free(3010), taken(20_000), free(20_010)],
        t2002=[taken(30_000), free(30_010)],
    )
    assert model_tables(Traceset(trace)).objects["threads"].to_pylist()[-2:] == [2, 2]
    lock = next(item for item in report_of(trace).objects if item.address == LOCK)
    assert (lock.generations, lock.threads) == (2, 3)
    (lock,) = report_of(trace, window=Window(15_000, None)).objects
    assert lock.threads == 2
    lock = next(
        item
        for item in report_of(trace, window=Window(None, 25_000)).objects
        if item.address == LOCK
    )
    assert lock.threads == 2


def test_two_kinds_at_one_address(build: Callable[..., Path]) -> None:
    post = Event(T0 + 30, "SEM_POST", LOCK, 3)
    trace = build(t1=[taken(0), free(10), post])
    assert sorted(model_tables(Traceset(trace)).objects["kind"].to_pylist()) == [
        "mutex", "semaphore",
    ]  # fmt: skip


def test_a_trace_of_waits_only(build: Callable[..., Path]) -> None:
    """A trace of level 1 has only waits."""
    trace = build(
        level="1",
        t1=[Event(T0, "THREAD_BEGIN", 0x7F01, fields={"serial": 1})],
        t2=[wait(10, owner=1), taken(100, waited=90)],
        t3=[wait(20, owner=1), taken(200, waited=180)],
    )
    (lock,) = report_of(trace).objects
    caused = {blame.thread.tid: blame.wait_caused_ns for blame in lock.blamed}
    assert caused == {1: 90 + 80, 2: 100}
    assert lock.figures.holds == 0


def test_a_wait_with_a_lost_beginning(build: Callable[..., Path]) -> None:
    trace = build(t1=[taken(1000, waited=300), free(1100)])
    (row,) = model_tables(Traceset(trace)).waits.to_pylist()
    assert (row["t_ns"], row["dur_ns"], row["class"]) == (-300, 300, "contended")


def cond_trace(build: Callable[..., Path], release: int) -> Path:
    fields = {"mutex": LOCK}
    return build(
        t1=[
            taken(0), Event(T0 + 10, "COND_WAIT_IN", COND, 8, fields=fields), free(11),
            taken(release + 5000),
            Event(T0 + release + 5010, "COND_WAIT_OUT", COND, 8,
                  fields={"result": 0, "wait_ns": release + 4998}),
        ],
        t2=[taken(50_000), Event(T0 + 60_000, "COND_SIGNAL", COND, 9), free(release)],
    )  # fmt: skip


def test_a_condition_wait_is_idle(build: Callable[..., Path]) -> None:
    report = report_of(cond_trace(build, 65_000))
    assert report.figures.waits == 0
    assert report.figures.other_waits["idle"] == 1
    assert report.figures.other_ns["idle"] == 69_998


def test_getting_the_mutex_back_is_contention(build: Callable[..., Path]) -> None:
    report = report_of(cond_trace(build, 200_000))
    assert report.figures.other_ns["idle"] == 60_000 - 10
    assert report.figures.wait_ns == 205_000 - 60_000
    lock = report.objects[0]
    assert (lock.figures.held_ns, lock.figures.wake_ns) == (140_000, 5_000)
    assert [(b.thread.tid, b.wait_caused_ns) for b in lock.blamed] == [(2, 140_000)]


def sem(ts: int, what: str, waited: int | None = None) -> Event:
    if waited is None:
        return Event(T0 + ts, f"SEM_{what}", SEM, 9)
    fields = {"result": 0, "wait_ns": waited}
    return Event(T0 + ts, "SEM_TAKEN", SEM, 9, variant="WAITED", fields=fields)


def units(value: int, shared: int = 0) -> Event:
    return Event(T0 - 1, "SEM_INIT", SEM, 9, fields={"value": value, "shared": shared})


def sems_of(trace: Path) -> tuple[list[Any], list[Any], dict[int, int]]:
    """Return waits, holds and the blamed threads."""
    tables = model_tables(Traceset(trace))
    waits = [
        (row["tid"], row["class"], row["held_ns"], row["owner_tid"], row["waker_tid"])
        for row in tables.waits.to_pylist()
    ]
    holds = [(row["tid"], row["dur_ns"]) for row in tables.holds.to_pylist()]
    (item,) = report_of(trace).objects
    caused = {blame.thread.tid: blame.wait_caused_ns for blame in item.blamed}
    assert item.figures.held_ns == sum(caused.values())
    return waits, holds, caused


def test_a_semaphore_as_a_lock(build: Callable[..., Path]) -> None:
    """A thread that takes the unit in between is a holder too."""
    trace = build(
        t1=[units(1), sem(0, "TAKEN"), sem(100, "POST")],
        t2=[sem(10, "WAIT"), sem(205, "", 195), sem(210, "POST")],
        t3=[sem(110, "TAKEN"), sem(200, "POST")],
    )
    waits, holds, caused = sems_of(trace)
    assert waits == [(2, "contended", 90 + 90, 1, 3)]
    assert sorted(holds) == [(1, 100), (2, 5), (3, 90)]
    assert caused == {1: 90, 3: 90}


NO_LOCK = {
    "initial value not known": None,
    "no unit at first": units(0),
    "shared by processes": units(1, shared=1),
}


@pytest.mark.parametrize("name", NO_LOCK)
def test_units_without_a_known_holder(name: str, build: Callable[..., Path]) -> None:
    first = NO_LOCK[name]
    trace = build(
        t1=[*([first] if first else []), sem(0, "TAKEN"), sem(100, "POST")],
        t2=[sem(10, "WAIT"), sem(105, "", 95)],
    )
    assert sems_of(trace) == ([(2, "unknown", None, None, 1)], [], {})


def test_a_unit_of_a_pool(build: Callable[..., Path]) -> None:
    trace = build(
        t1=[units(3), sem(0, "TAKEN"), sem(100, "POST")],
        t2=[sem(10, "WAIT"), sem(105, "", 95)],
    )
    assert sems_of(trace) == ([(2, "contended", 90, None, 1)], [], {1: 90})


def test_a_unit_that_another_thread_posts(build: Callable[..., Path]) -> None:
    """The thread that took the unit did not hold it; the hold before is no contention either."""
    trace = build(
        t1=[units(1), sem(0, "TAKEN"), sem(100, "POST")],
        t2=[sem(10, "WAIT"), sem(205, "", 195)],
        t3=[sem(110, "TAKEN")],
        t4=[sem(200, "POST")],
    )
    waits, holds, caused = sems_of(trace)
    assert waits == [(2, "unknown", None, None, 1)]
    assert holds == [(1, 100)]
    assert caused == {}


def test_a_thread_that_waits_for_its_own_unit(build: Callable[..., Path]) -> None:
    """Another thread hands the unit over, as to a waiter of a Python condition."""
    trace = build(
        t1=[units(1), sem(0, "TAKEN"), sem(10, "WAIT"), sem(105, "", 95), sem(110, "POST")],
        t2=[sem(100, "POST")],
    )
    assert sems_of(trace) == ([(1, "idle", None, None, 2)], [], {})


def test_a_unit_that_is_never_given_back(build: Callable[..., Path]) -> None:
    """Another thread may have to post it, unless the semaphore was used as a lock before."""
    others = {"t2": [sem(120, "WAIT")], "t3": [sem(300, "WAIT")]}
    waits, holds, caused = sems_of(build(t1=[units(1), sem(110, "TAKEN")], **others))
    assert {wait[:4] for wait in waits} == {(2, "unknown", None, None), (3, "unknown", None, None)}
    assert (holds, caused) == ([], {})

    used = [units(1), sem(0, "TAKEN"), sem(100, "POST"), sem(110, "TAKEN")]
    waits, holds, caused = sems_of(build(t1=used, **others))
    assert {wait[:4] for wait in waits} == {(2, "contended", 180, 1), (3, "contended", 0, 1)}
    assert holds == [(1, 100), (1, 190)]
    assert sum(caused.values()) == 180


def test_a_semaphore_that_hands_over_work(build: Callable[..., Path]) -> None:
    trace = build(t1=[sem(100, "POST")], t2=[sem(10, "WAIT"), sem(105, "", 95)])
    (item,) = report_of(trace).objects
    assert item.figures.waits == 0
    assert item.figures.other_ns["idle"] == 95
    assert [(b.thread.tid, b.count) for b in item.wakers] == [(1, 1)]


@pytest.mark.parametrize(("slices", "ready_ns"), [(2, 30_000), (3, None)])
def test_the_path_through_the_run_queue(
    slices: int, ready_ns: int | None, build: Callable[..., Path]
) -> None:
    """The time is known if the thread was given a processor once: at the end of the wait."""

    def reading(ts: int, slices: int, ran: int, ready: int) -> Event:
        fields = {"slices": slices, "ran_ns": ran, "ready_ns": ready}
        return Event(T0 + ts, "SCHED_READING", 0, fields=fields)

    trace = build(
        t1=[taken(0), free(100_000)],
        t2=[
            reading(5, 1, 0, 0), wait(10_000, owner=1), reading(149_999, slices, 12_000, 30_000),
            taken(150_000, waited=140_000), free(200_000),
        ],
    )  # fmt: skip
    parts = {part.thread.tid: part for part in report_of(trace).path.threads}
    assert (parts[2].run_ns, parts[2].latency_ns, parts[2].ready_ns) == (50_000, 50_000, ready_ns)


def test_edges_and_guards(build: Callable[..., Path]) -> None:
    gate = 0x4200
    trace = build(
        t1=[taken(0, gate), taken(1), taken(2, OTHER), free(3, OTHER), free(4), free(5, gate)],
        t2=[taken(10), taken(12, OTHER), free(13, OTHER), free(14)],
    )
    edges = {
        (row["held"], row["wanted"]): row for row in model_tables(Traceset(trace)).edges.to_pylist()
    }
    assert set(edges) == {(gate, LOCK), (gate, OTHER), (LOCK, OTHER)}
    assert edges[LOCK, OTHER]["count"] == 2
    assert edges[LOCK, OTHER]["guard_set"] == []
    assert not edges[LOCK, OTHER]["one_thread"]
    assert len(edges[gate, OTHER]["guard_set"]) == 1


def test_window_and_choice(build: Callable[..., Path]) -> None:
    trace = build(t1=[taken(0), free(10), taken(20), free(30)])
    assert report_of(trace, window=Window(15, None)).figures.holds == 1
    assert report_of(trace, counted=Counted(objects=[])).figures.holds == 0
    assert report_of(trace, counted=Counted(threads=[0])).figures.holds == 2


def test_waits_outside_the_choice_are_no_running_time(build: Callable[..., Path]) -> None:
    """A thread that waits for an object outside the choice does not run meanwhile."""
    trace = build(
        t1=[taken(0), taken(1, OTHER), free(40), free(70, OTHER), free(100)],
        t2=[
            wait(20),
            taken(41, waited=21),
            wait(50, OTHER),
            taken(71, OTHER, waited=21),
            free(100),
        ],
    )  # fmt: skip
    whole = report_of(trace)
    assert [t.running_ns for t in whole.threads] == [100, 38]
    only = contention(Traceset(trace), counted=Counted(objects=[Chosen(0, OTHER)]))
    assert [(t.figures.wait_ns, t.running_ns) for t in only.threads] == [(0, 100), (21, 38)]


def test_critical_path(build: Callable[..., Path]) -> None:
    """At 100, thread 1 releases the lock that thread 2 waits for; then thread 1 ends first."""
    trace = build(
        t1=[taken(0), free(100), taken(120, OTHER)],
        t2=[taken(5, OTHER), wait(20), taken(110, waited=90), free(500)],
    )
    path = report_of(trace).path
    parts = {part.thread.tid: (part.run_ns, part.latency_ns, part.open_ns) for part in path.threads}
    assert parts == {2: (390, 10, 0), 1: (100, 0, 0)}
    assert (path.start_ns, path.end_ns) == (0, 500)


def test_columns_of_threads_never_touch(build: Callable[..., Path], ptt: Ptt) -> None:
    """Times take ten characters at most, as 123.456 ms does."""
    signal = 123_456_000
    trace = build(
        t1=[
            taken(0), Event(T0 + 10, "COND_WAIT_IN", COND, 8, fields={"mutex": LOCK}), free(11),
            taken(signal + 50),
            Event(T0 + signal + 60, "COND_WAIT_OUT", COND, 8,
                  fields={"result": 0, "wait_ns": signal + 50}),
        ],
        t2=[Event(T0 + signal, "COND_SIGNAL", COND, 9)],
    )  # fmt: skip
    printed = ptt("report", trace).stdout.splitlines()
    head = next(n for n, line in enumerate(printed) if line.startswith("threads"))
    assert len(printed[head]) == 80
    row = next(line for line in printed[head + 1 :] if line.startswith("  1 "))
    assert row.split() == ["1", "123.456", "ms", "10", "ns", "-", "123.456", "ms", "-"]


def test_locks_without_a_name_are_told_apart_by_their_first_site(
    build: Callable[..., Path],
) -> None:
    def made(ts: int, site: int) -> list[Event]:
        return [
            Event(T0 + ts, "MUTEX_INIT", LOCK, site),
            taken(ts + 1),
            free(ts + 3),
            Event(T0 + ts + 4, "MUTEX_DESTROY", LOCK, 9),
        ]

    trace = build(t1=[*made(0, 1), *made(10, 1), *made(20, 2)])
    locks = {item.init_site: item for item in report_of(trace).objects}
    assert sorted((item.generations, item.figures.holds) for item in locks.values()) == [
        (1, 1),
        (2, 2),
    ]


def test_threads_and_waiters_of_a_barrier_are_counted(build: Callable[..., Path]) -> None:
    """The last thread at a barrier does not wait; the initializing thread does not use it."""

    def barrier(ts: int, what: str, waited: int = 0, result: int = 0) -> Event:
        fields = {"result": result, "wait_ns": waited} if what == "OUT" else {}
        return Event(T0 + ts, f"BARRIER_WAIT_{what}", LOCK, 1, fields=fields)

    init = Event(T0, "BARRIER_INIT", LOCK, 1, fields={"count": 3})
    trace = build(
        t1=[init],
        t2=[barrier(10, "IN"), barrier(32, "OUT", 22)],
        t3=[barrier(20, "IN"), barrier(33, "OUT", 13)],
        t4=[barrier(30, "IN"), barrier(31, "OUT", 1, -1)],
    )
    (item,) = report_of(trace).objects
    assert (item.figures.waits, item.max_waiters, item.threads) == (2, 2, 3)


def test_a_release_stamped_before_the_wait_has_a_site(build: Callable[..., Path]) -> None:
    """A release may be stamped before the wait that it ends is seen."""
    trace = build(t1=[taken(0), free(100)], t2=[wait(110), taken(120, waited=60)])
    (item,) = report_of(trace).objects
    (waker,) = item.wakers
    assert (waker.thread.tid, waker.site, waker.count) == (1, "0x401006", 1)


def test_a_refused_join_is_no_wait(build: Callable[..., Path]) -> None:
    def join(ts: int, what: str, **fields: int) -> Event:
        return Event(T0 + ts, f"THREAD_JOIN_{what}", LOCK, 1, fields=fields)

    trace = build(t1=[join(10, "IN"), join(20, "OUT", result=22)])
    report = report_of(trace)
    assert not any(report.figures.other_waits.values())
