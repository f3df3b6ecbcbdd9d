"""Level 1 has only releases that threads sleep for: nothing follows from releases that it lacks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.analysis.report.contention import contention
from nptltrace.analysis.verify import verify
from nptltrace.api import Traceset
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from tests.analysis.compare import assert_same
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.verify import Verdict

T0 = 10**12
MS = 10**6
LOCK, OTHER = 0x4040, 0x5050


def wait(ms: float, owner: int, lock: int = LOCK) -> Event:
    return Event(T0 + int(ms * MS), "MUTEX_WAIT", lock, 7, fields={"owner": owner})


def taken(ms: float, waited_ms: float, lock: int = LOCK) -> Event:
    fields = {"result": 0, "wait_ns": int(waited_ms * MS)}
    return Event(T0 + int(ms * MS), "MUTEX_TAKEN", lock, 5, variant="WAITED", fields=fields)


def free(ms: float, lock: int = LOCK) -> Event:
    return Event(T0 + int(ms * MS), "MUTEX_FREE_AWAITED", lock, 6)


def traced(path: Path, *threads: list[Event]) -> Traceset:
    made = Builder(path / "run.ptt", session={"state": "complete", "level": "1", "lost": {}})
    for tid, events in enumerate(threads, 1):
        made.thread(tid, events)
    made.processes = [{"process": {"index": 0, "pid": 100, "exe": "/bin/x"}}]
    made.write()
    if shutil.which("babeltrace2"):
        assert_same(path / "run.ptt")
    return Traceset(path / "run.ptt")


def deadlocks(ts: Traceset) -> tuple[list[str], int]:
    """Return the kinds of findings, and the number of deadlocks in the report."""
    return ts.findings()["kind"].to_pylist(), len(contention(ts).deadlocks)


def judged(ts: Traceset) -> Verdict:
    return verify(ts, Symbols(ts, read_aliases([]), []))


def test_unseen_releases_break_no_promise(tmp_path: Path) -> None:
    """Thread 1 releases the mutex unseen, and later takes it again unseen."""
    ts = traced(
        tmp_path,
        [wait(1, 3), taken(2, 1), free(10)],
        [wait(4, 1), taken(5, 1), wait(9, 1), taken(11, 2)],
    )
    assert not judged(ts).violations
    assert not sum(judged(ts).checked.values())


def test_a_waiter_may_find_the_mutex_taken_again(tmp_path: Path) -> None:
    """Thread 1 releases the mutex, and a thread takes it unseen and keeps it."""
    later = Event(T0 + 60_000 * MS, "THREAD_NAME", 0x1000)
    ts = traced(tmp_path, [free(10), later], [wait(9, 1)])
    assert not judged(ts).violations


def test_an_earlier_release_hides_no_deadlock(tmp_path: Path) -> None:
    ts = traced(
        tmp_path,
        [free(10), wait(100, 2, OTHER)],
        [wait(9, 1), taken(11, 2), wait(101, 1)],
    )
    assert deadlocks(ts) == (["deadlock"], 1)


def test_a_released_lock_is_no_deadlock(tmp_path: Path) -> None:
    """Thread 1 gives the mutex to thread 3. Then it waits for thread 2, which waits for 3."""
    ts = traced(
        tmp_path,
        [free(10), wait(100, 2, OTHER)],
        [wait(9, 1)],
        [wait(8, 1), taken(11, 3)],
    )
    assert deadlocks(ts) == ([], 0)
    (owner,) = (w.owner for w in contention(ts).open_waits if w.thread.tid == 2)
    assert owner is not None
    assert owner.tid == 3


def test_acquisitions_between_two_waiters_are_unseen(tmp_path: Path) -> None:
    """A fourth thread has the lock most of the time, between two waiters of a queue."""
    turns: list[list[Event]] = [[wait(9.7, 9)], [wait(9.8, 9)], [wait(9.9, 9)]]
    since = [9.7, 9.8, 9.9]
    for turn in range(150):
        ms, thread = 10 + turn, turn % 3
        turns[thread] += [taken(ms, ms - since[thread]), free(ms + 0.05)]
        if turn < 147:
            since[thread] = ms + 0.1
            turns[thread].append(wait(ms + 0.1, 4))
    ts = traced(tmp_path, *turns)
    assert "convoy" not in ts.findings()["kind"].to_pylist()


@pytest.mark.parametrize(("released_ms", "waker"), [(10, 1), (5, None)])
def test_an_old_release_woke_nobody(tmp_path: Path, released_ms: int, waker: int | None) -> None:
    """Thread 2 does not sleep: it waits while a thread has the mutex and releases it unseen."""
    ts = traced(tmp_path, [free(released_ms)], [wait(8, 3), taken(11, 3)])
    (row,) = model_tables(ts).waits.to_pylist()
    assert (row["owner_tid"], row["waker_tid"]) == (3, waker)


def test_an_old_release_names_no_owner(tmp_path: Path) -> None:
    ts = traced(tmp_path, [free(1)], [wait(8, 0), taken(11, 3)])
    (row,) = model_tables(ts).waits.to_pylist()
    assert row["owner_tid"] is None
