"""Waits that name an owner before an event of the owner says that it has the lock."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.analysis.report.contention import contention
from nptltrace.api import Traceset
from tests.analysis.compare import assert_same
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

T0 = 10**12
LOCK = 0x4040
US = 1000
BASE = 0x401000

# Call sites, named after the call there.
TAKES, FREES, WAITS, TAKES_AGAIN = 5, 6, 7, 8


def taken(us: int, site: int = TAKES, waited_us: int | None = None) -> Event:
    fields = {} if waited_us is None else {"result": 0, "wait_ns": waited_us * US}
    return Event(
        T0 + us * US, "MUTEX_TAKEN", LOCK, site, variant="WAITED" if fields else "", fields=fields
    )


def free(us: int) -> Event:
    return Event(T0 + us * US, "MUTEX_FREE", LOCK, FREES)


def wait(us: int, owner: int) -> Event:
    return Event(T0 + us * US, "MUTEX_WAIT", LOCK, WAITS, fields={"owner": owner})


# Events of thread 1, the site of its hold, and how long it held the lock, both as thread 2 finds.
# Thread 2 waits from 10 us on and takes the lock at 100 us.
CASES: dict[str, tuple[list[Event], int, int]] = {
    "an acquisition stamped later": ([taken(11), free(90)], TAKES, 79),
    "two holds": ([taken(1), free(5), taken(11, TAKES_AGAIN), free(90)], TAKES_AGAIN, 79),
    "a release just before": ([taken(1), free(9)], TAKES, 0),
    "a hold from before the trace": ([free(90)], 0, 80),
    "two holds, one from before the trace": ([free(50), taken(60), free(90)], 0, 40 + 30),
}


# Events of thread 2 before it waits: none, or a hold, which shows that holds are recorded.
BEFORE: dict[str, list[Event]] = {"first event": [], "holds before": [taken(-1, 9), free(0)]}


def traced(path: Path, first: list[Event], before: list[Event] = BEFORE["holds before"]) -> Path:
    made = Builder(path)
    made.thread(1, first)
    made.thread(2, [*before, wait(10, 1), taken(100, 9, 90), free(110)])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": "/bin/x"}},
        {"sites": {"process": 0, "sites": {str(n): hex(BASE + n) for n in range(1, 20)}}},
    ]
    return made.write()


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("case", CASES)
def test_a_wait_has_the_site_of_the_hold_it_waited_for(
    case: str, before: str, tmp_path: Path
) -> None:
    events, site, held_us = CASES[case]
    trace = traced(tmp_path / "run.ptt", events, BEFORE[before])
    (row,) = model_tables(Traceset(trace)).waits.to_pylist()
    assert (row["owner_tid"], row["owner_site"]) == (1, site and BASE + site)
    assert (row["held_ns"], row["wake_ns"]) == (held_us * US, (90 - held_us) * US)
    (lock,) = contention(Traceset(trace)).objects
    assert {blame.thread.tid for blame in lock.blamed if blame.thread} <= {1}
    assert sum(blame.wait_caused_ns for blame in lock.blamed) == held_us * US


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("case", CASES)
def test_the_reference_agrees(case: str, before: str, tmp_path: Path) -> None:
    assert_same(traced(tmp_path / "run.ptt", CASES[case][0], BEFORE[before]))


def test_an_owner_that_the_trace_names_is_known(tmp_path: Path) -> None:
    trace = traced(tmp_path / "run.ptt", CASES["an acquisition stamped later"][0])
    (lock,) = contention(Traceset(trace)).objects
    assert [blame.site for blame in lock.blamed] == [hex(BASE + TAKES)]


# ---- no owner is named: the owner has no event of the lock yet ----


def nobody_named(path: Path) -> Path:
    """Thread 2 releases the lock and wants it back; meanwhile thread 1 has taken it."""
    made = Builder(path)
    made.thread(1, [taken(-20), free(-15), taken(11, TAKES_AGAIN), free(90)])
    made.thread(2, [taken(-1, 9), free(0), wait(10, 0), taken(100, 9, 90), free(110)])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": "/bin/x"}},
        {"sites": {"process": 0, "sites": {str(n): hex(BASE + n) for n in range(1, 20)}}},
    ]
    return made.write()


def test_no_thread_waits_for_itself(tmp_path: Path) -> None:
    (row,) = model_tables(Traceset(nobody_named(tmp_path / "run.ptt"))).waits.to_pylist()
    assert (row["tid"], row["owner_tid"], row["owner_site"]) == (2, 1, BASE + TAKES_AGAIN)
    assert row["held_ns"] == 79 * US


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")
def test_the_reference_agrees_if_no_owner_is_named(tmp_path: Path) -> None:
    assert_same(nobody_named(tmp_path / "run.ptt"))


# ---- a wait that never ends: nobody holds a lock that was released ----

# Events of thread 1, and whether it holds the lock when the trace ends.
NEVER_ENDS: dict[str, tuple[list[Event], bool]] = {
    "a release during the wait": ([taken(1), free(50)], False),
    "a release just before": ([taken(1), free(9)], False),
    "the release of a hold from before the trace": ([free(50)], False),
    "a release and a new hold": ([taken(1), free(50), taken(60)], True),
    "a hold from before the trace to its end": ([], True),
}


@pytest.mark.parametrize("case", NEVER_ENDS)
def test_a_free_lock_has_no_holder(case: str, tmp_path: Path) -> None:
    events, held = NEVER_ENDS[case]
    made = Builder(tmp_path / "run.ptt")
    # Thread 1 waits for thread 2 in the end.
    other = Event(T0 + 70 * US, "MUTEX_WAIT", LOCK + 64, WAITS, fields={"owner": 2})
    made.thread(1, [*events, other])
    keeps = Event(T0 - 2 * US, "MUTEX_TAKEN", LOCK + 64, TAKES)
    made.thread(2, [keeps, wait(10, 1)])
    report = contention(Traceset(made.write()))
    (owner,) = (wait.owner for wait in report.open_waits if wait.thread.tid == 2)
    assert (owner is not None, len(report.deadlocks)) == (held, held)
    if shutil.which("babeltrace2"):
        assert_same(tmp_path / "run.ptt")


# ---- the named owner still waits for the lock: its event comes later ----

FOR_LONG = 12


def waits(us: int, owner: int) -> Event:
    return Event(T0 + us * US, "MUTEX_WAIT", LOCK, FOR_LONG, fields={"owner": owner})


def gives_up(us: int, waited_us: int) -> Event:
    fields = {"result": 110, "wait_ns": waited_us * US}
    return Event(T0 + us * US, "MUTEX_WAIT_END", LOCK, WAITS, fields=fields)


# Events of thread 3, and the time that thread 1 is blamed for.
# Thread 1 has the lock from 20 us on; its event and its blame begin at 60 us.
LATER: dict[str, tuple[list[Event], int]] = {
    "a wait until the end": ([wait(30, 1), taken(91, 9, 61), free(95)], 30),
    "a wait given up after the owner's event": ([wait(30, 1), gives_up(70, 40)], 0),
    "a wait given up before the owner's event": ([wait(30, 1), gives_up(50, 20)], 0),
}


def handed_over(path: Path, third: list[Event]) -> Path:
    made = Builder(path)
    made.thread(1, [waits(5, 2), taken(60, waited_us=55), free(90)])
    made.thread(2, [taken(0, 9), free(20)])
    made.thread(3, third)
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": "/bin/x"}},
        {"sites": {"process": 0, "sites": {str(n): hex(BASE + n) for n in range(1, 20)}}},
    ]
    return made.write()


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")
@pytest.mark.parametrize("case", LATER)
def test_a_named_owner_with_a_later_event(case: str, tmp_path: Path) -> None:
    third, blamed_us = LATER[case]
    trace = handed_over(tmp_path / "run.ptt", third)
    assert_same(trace)
    (lock,) = contention(Traceset(trace)).objects
    blamed = {(b.thread.tid if b.thread else 0, b.site): b.wait_caused_ns for b in lock.blamed}
    expected = {(1, hex(BASE + TAKES)): blamed_us * US, (2, hex(BASE + 9)): 15 * US}
    assert blamed == {who: ns for who, ns in expected.items() if ns}


def test_a_later_wait_names_another_owner(tmp_path: Path) -> None:
    """A waiter names the next hold of the owner, not a later hold."""
    made = Builder(tmp_path / "run.ptt")
    made.thread(1, [taken(11), free(15), waits(31, 3), taken(32, 8, 1), free(35)])
    made.thread(2, [taken(-1, 9), free(0), wait(10, 1), taken(40, 9, 30), free(41)])
    made.thread(3, [taken(20, 9), free(30)])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "exe": "/bin/x"}},
        {"sites": {"process": 0, "sites": {str(n): hex(BASE + n) for n in range(1, 20)}}},
    ]
    rows = model_tables(Traceset(made.write())).waits.to_pylist()
    (row,) = [row for row in rows if row["tid"] == 2]
    assert (row["owner_tid"], row["owner_site"]) == (1, BASE + TAKES)
