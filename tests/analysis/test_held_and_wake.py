"""The parts of a contended wait: while other threads held the lock, and until the waiter woke."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.analysis.report.contention import contention
from nptltrace.api import Traceset
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

T0 = 10**12
LOCK, COND, BARRIER = 0x4040, 0x5050, 0x6060
US = 1000
MS = 1_000_000


def event(ns: int, name: str, object_: int = LOCK, **fields: int) -> Event:
    variant = "WAITED" if name.endswith("TAKEN") and fields else ""
    return Event(T0 + ns, name, object_, 5, variant=variant, fields=fields)


def taken(ns: int, waited: int | None = None) -> Event:
    fields = {} if waited is None else {"result": 0, "wait_ns": waited}
    return event(ns, "MUTEX_TAKEN", **fields)


def free(ns: int) -> Event:
    return event(ns, "MUTEX_FREE")


def wait(ns: int, owner: int = 0) -> Event:
    return event(ns, "MUTEX_WAIT", owner=owner)


def cond_in(ns: int) -> Event:
    return event(ns, "COND_WAIT_IN", COND, mutex=LOCK)


def cond_out(ns: int, waited: int) -> Event:
    return event(ns, "COND_WAIT_OUT", COND, result=0, wait_ns=waited)


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    def make(*threads: list[Event], level: str = "2") -> Path:
        made = Builder(tmp_path / "run.ptt", session={"state": "complete", "level": level})
        for number, events in enumerate(threads, 1):
            made.thread(number, events)
        made.processes = [{"process": {"index": 0, "pid": 100, "exe": "/bin/x"}}]
        return made.write()

    return make


def waits_of(trace: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = model_tables(Traceset(trace)).waits.to_pylist()
    return [row for row in rows if row["class"] == "contended"]


def test_a_thread_that_wakes_late(build: Callable[..., Path], ptt: Ptt) -> None:
    """The processor had other work: nobody is to blame for that time."""
    trace = build([taken(0), free(10 * MS)], [wait(2 * MS, 1), taken(40 * MS, 38 * MS)])
    (row,) = waits_of(trace)
    assert (row["dur_ns"], row["held_ns"], row["wake_ns"]) == (38 * MS, 8 * MS, 30 * MS)
    report = json.loads(ptt("report", "--by", "site", "--format", "json", trace).stdout)
    threads = [thread for thread in report["threads"] if thread["waits"]]
    for part in (
        report,
        report["objects"][0],
        *threads,
        *(s for s in report["sites"] if s["waits"]),
    ):
        assert (part["wait_ns"], part["held_ns"], part["wake_ns"]) == (38 * MS, 8 * MS, 30 * MS)
    assert [blame["wait_caused_ns"] for blame in report["objects"][0]["blamed"]] == [8 * MS]
    text = " ".join(ptt("report", trace).stdout.split())
    assert "8.000 ms while thread 1 held it" in text
    assert "8.000 ms waited while it was held, 30.000 ms until awake" in text
    assert "mostly until awake: 30.000 ms of that went by after the lock was free" in text


def test_most_of_the_time_the_lock_was_held(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build([taken(0), free(30 * MS)], [wait(2 * MS, 1), taken(50 * MS, 48 * MS)])
    assert "mostly until awake" not in ptt("report", trace).stdout


def test_a_thread_that_another_thread_overtakes(build: Callable[..., Path]) -> None:
    """Between two holds nobody has the lock."""
    trace = build(
        [taken(0), free(100), taken(300), free(350)], [wait(20, 1), taken(500, waited=480)]
    )
    (row,) = waits_of(trace)
    assert (row["held_ns"], row["wake_ns"]) == (80 + 50, 200 + 150)


def test_short_holds_do_not_delay_a_thread_that_wakes_late(build: Callable[..., Path]) -> None:
    """The thread wakes late; short holds of other threads meanwhile do not delay it."""
    short = [e for n in range(30) for e in (taken(n * MS + 100), free(n * MS + 600))]
    trace = build(
        [taken(0), cond_in(10), free(11), taken(40 * MS), cond_out(40 * MS + 10, 40 * MS)],
        [taken(50), event(60, "COND_SIGNAL", COND), free(70), *short],
    )
    assert waits_of(trace) == []


def test_a_woken_thread_that_finds_the_mutex_taken(build: Callable[..., Path]) -> None:
    trace = build(
        [taken(0), cond_in(10), free(11), taken(9 * MS), cond_out(9 * MS + 10, 9 * MS)],
        [taken(50 * US), event(60 * US, "COND_SIGNAL", COND), free(100 * US)],
    )
    (row,) = waits_of(trace)
    assert (row["t_ns"], row["dur_ns"]) == (60 * US, 9 * MS - 60 * US)
    assert (row["held_ns"], row["owner_tid"]) == (40 * US, 2)


@pytest.mark.parametrize("threads", [3, 200])
def test_a_herd(build: Callable[..., Path], threads: int) -> None:
    """All threads are woken at once, and each has the mutex in turn: the blame adds up."""
    went, step = 100 * US, 50 * US
    herd = []
    for n in range(threads):
        got = went + 20 * US + n * step
        herd.append(
            [taken(n * 20), cond_in(n * 20 + 5), free(n * 20 + 6), taken(got),
             cond_out(got + 100, got + 100 - n * 20 - 5), free(got + 40 * US)]
        )  # fmt: skip
    trace = build(
        [taken(50 * US), event(went - 10 * US, "COND_BROADCAST", COND), free(went)], *herd
    )
    rows = waits_of(trace)
    # The first thread has waited for the broadcaster only, for too short a time.
    assert len(rows) == threads - 1
    assert [row["held_ns"] for row in rows] == [
        10 * US + n * 40 * US for n in range(1, threads)
    ]  # fmt: skip
    (lock, _) = contention(Traceset(trace)).objects
    assert lock.figures.held_ns == sum(row["held_ns"] for row in rows)
    assert sum(blame.wait_caused_ns for blame in lock.blamed) == lock.figures.held_ns
    held = dict.fromkeys(range(2, threads + 2), 40 * US) | {1: 10 * US}
    for blame in lock.blamed:
        assert blame.thread is not None
        assert blame.wait_caused_ns <= held[blame.thread.tid] * lock.max_waiters


def test_a_barrier(build: Callable[..., Path]) -> None:
    def at(ns: int, out: int) -> list[Event]:
        return [
            event(ns, "BARRIER_WAIT_IN", BARRIER),
            event(out, "BARRIER_WAIT_OUT", BARRIER, result=0, wait_ns=out - ns),
        ]

    init = event(0, "BARRIER_INIT", BARRIER, count=2, shared=0)
    trace = build([init, *at(100, 1000)], at(700, 710))
    (row,) = waits_of(trace)
    assert (row["dur_ns"], row["held_ns"], row["wake_ns"]) == (900, 600, 300)


def test_the_last_thread_at_a_barrier_is_to_blame(build: Callable[..., Path]) -> None:
    """The last thread to arrive is to blame, also if the count of the barrier is not known."""
    trace = build(
        [
            event(100, "BARRIER_WAIT_IN", BARRIER),
            event(1000, "BARRIER_WAIT_OUT", BARRIER, result=0, wait_ns=900),
            event(1100, "BARRIER_WAIT_IN", BARRIER),
            event(1900, "BARRIER_WAIT_OUT", BARRIER, result=0, wait_ns=800),
        ],
        [event(50, "BARRIER_ARRIVE", BARRIER), event(1200, "BARRIER_ARRIVE", BARRIER)],
        [event(600, "BARRIER_ARRIVE", BARRIER), event(1600, "BARRIER_ARRIVE", BARRIER)],
    )
    first, second = waits_of(trace)
    assert (first["dur_ns"], first["held_ns"], first["wake_ns"]) == (900, 500, 400)
    assert (second["dur_ns"], second["held_ns"], second["wake_ns"]) == (800, 500, 300)
    assert first["waker_tid"] == second["waker_tid"] == 3


def test_the_first_thread_that_leaves_destroys_the_barrier(
    build: Callable[..., Path], ptt: Ptt
) -> None:
    """The waits end all the same, although another barrier may be at that address by then."""
    made = event(0, "BARRIER_INIT", BARRIER, count=2, shared=0)
    signalled = event(2000, "COND_SIGNAL", COND)
    trace = build(
        [
            made,
            event(100, "BARRIER_WAIT_IN", BARRIER),
            event(1000, "BARRIER_WAIT_OUT", BARRIER, result=0, wait_ns=900),
            taken(1100), cond_in(1200), free(1300), taken(2700), cond_out(2800, 1600), free(2900),
        ],
        [
            event(700, "BARRIER_WAIT_IN", BARRIER),
            event(710, "BARRIER_WAIT_OUT", BARRIER, result=-1, wait_ns=10),
            event(720, "BARRIER_DESTROY", BARRIER),
            event(730, "BARRIER_INIT", BARRIER, count=2, shared=0),
            taken(1900), signalled, free(2100), event(2200, "COND_DESTROY", COND),
        ],
    )  # fmt: skip
    assert [(row["kind"], row["dur_ns"]) for row in waits_of(trace)] == [("barrier", 900)]
    report = ptt("report", trace).stdout
    assert "idle 1.600 us (1)" in report
    assert "still waiting at the end" not in report


def test_the_last_thread_at_a_barrier_waits_for_nobody(build: Callable[..., Path]) -> None:
    trace = build(
        [
            event(100, "BARRIER_WAIT_IN", BARRIER),
            event(110, "BARRIER_WAIT_OUT", BARRIER, result=0, wait_ns=10),
        ],
        [event(50, "BARRIER_ARRIVE", BARRIER)],
    )
    assert waits_of(trace) == []


def test_a_wait_for_an_unknown_holder(build: Callable[..., Path], ptt: Ptt) -> None:
    """A spin lock does not name its holder, and only the wait was recorded."""
    late = Event(T0 + 500, "SPIN_TAKEN", LOCK, 5, variant="WAITED", fields={"wait_ns": 400})
    trace = build([event(0, "SPIN_WAIT")], [event(100, "SPIN_WAIT"), late], level="1")
    (lock,) = json.loads(ptt("report", "--format", "json", trace).stdout)["objects"]
    assert lock["held_ns"] == sum(blame["wait_caused_ns"] for blame in lock["blamed"]) > 0
    assert [blame["tid"] for blame in lock["blamed"]] == [None]
    assert "for which nobody is known" in ptt("report", trace).stdout


def test_report_tables_and_views_agree(build: Callable[..., Path], ptt: Ptt) -> None:
    """The report, the tables and the views agree; nobody is blamed for a wait that was given up."""
    gave_up = event(60, "MUTEX_WAIT_END", result=110, wait_ns=40)
    trace = build(
        [taken(0), free(100)],
        [wait(10, 1), taken(130, waited=120), free(400)],
        [wait(20, 1), gave_up, wait(150, 2), taken(420, waited=270)],
    )
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    caused = {b["tid"]: b["wait_caused_ns"] for b in report["objects"][0]["blamed"]}
    assert caused == {1: 90, 2: 250}
    assert {t["tid"]: t["wait_caused_ns"] for t in report["threads"]} == {**caused, 3: 0}
    query = "select owner_tid, wait_caused_ns from blame order by 1"
    assert ptt("sql", "--format", "csv", trace, query).stdout.splitlines()[1:] == ["1,90", "2,250"]
    query = "select held_ns, wait_ns - wake_ns from contention_by_object"
    assert ptt("sql", "--format", "csv", trace, query).stdout.splitlines()[1:] == ["340,340"]
    query = "select sum(held_ns), sum(held_ns) filter (class <> 'contended') from waits"
    assert ptt("sql", "--format", "csv", trace, query).stdout.splitlines()[1:] == ["340,"]
