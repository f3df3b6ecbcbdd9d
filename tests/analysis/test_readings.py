"""Readings of the scheduler: whole readings divide the times of partial readings exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

T0 = 10**12
MS = 10**6
OUTER, FIRST, SECOND, SHORT, LAST = (0x404000 + 64 * n for n in range(5))


def event(ms: float, name: str, obj: int = 0, **fields: int) -> Event:
    return Event(T0 + int(ms * MS), name, obj, 5, fields=fields)


def whole(ms: float, slices: int, ran: float, ready: float, name: str = "SCHED_READING") -> Event:
    fields = {"slices": slices, "ran_ns": int(ran * MS), "ready_ns": int(ready * MS)}
    return event(ms, name, **fields)


def kept(ms: float, slices: int, ran: float, ready: float) -> Event:
    return whole(ms, slices, ran, ready, "SCHED_KEPT")


def ran(ms: float, ran: float) -> Event:
    return event(ms, "SCHED_RAN", ran_ns=int(ran * MS))


def opened(tmp_path: Path, *packets: list[Event]) -> nptltrace.Traceset:
    """Return a trace of one thread."""
    made = Builder(tmp_path / "made.ptt")
    made.thread(1, [event(0, "THREAD_BEGIN", 0x1000), *packets[0]], *packets[1:])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
    ]
    return nptltrace.open(made.write())


def tables(tmp_path: Path, *events: Event) -> tuple[dict[int, dict[str, Any]], dict[str, Any]]:
    """Return the holds of a thread by lock, and the thread."""
    traces = opened(tmp_path, list(events))
    [thread] = traces.table("threads").to_pylist()
    at = {row["lock_id"]: row["addr"] for row in traces.table("objects").to_pylist()}
    return {at[row["lock_id"]]: row for row in traces.table("holds").to_pylist()}, thread


def times(row: dict[str, Any]) -> tuple[float | None, ...]:
    """Return the parts of a hold in ms: on the processor, off it, and ready."""
    names = ("ran_ns", "off_ns", "ready_ns")
    return tuple(None if row[name] is None else row[name] / MS for name in names)


def test_a_later_whole_reading_divides_the_outer_hold(tmp_path: Path) -> None:
    holds, thread = tables(
        tmp_path,
        whole(1, 1, 0, 0), event(1, "MUTEX_TAKEN", OUTER), event(1, "MUTEX_TAKEN", FIRST),
        ran(11, 4), event(11, "MUTEX_FREE", FIRST),
        event(12, "MUTEX_TAKEN", SHORT), event(14, "MUTEX_FREE", SHORT),
        event(21, "MUTEX_TAKEN", SECOND), whole(31, 4, 21, 5), event(31, "MUTEX_FREE", SECOND),
        event(32, "MUTEX_TAKEN", LAST), whole(42, 5, 31, 6), event(42, "MUTEX_FREE", LAST),
        event(43, "MUTEX_FREE", OUTER), whole(44, 5, 33, 6), event(44, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[OUTER]) == (32, 10, 6)
    # The reading has the ready time of both holds together.
    assert times(holds[FIRST]) == (4, 6, None)
    assert times(holds[SECOND]) == (7, 3, None)
    assert times(holds[SHORT]) == (2, 0, 0)
    assert times(holds[LAST]) == (9, 1, 1)
    assert (thread["cpu_ns"], thread["ready_ns"]) == (33 * MS, 6 * MS)


def test_a_thread_without_whole_readings(tmp_path: Path) -> None:
    holds, thread = tables(
        tmp_path,
        ran(1, 0), event(1, "MUTEX_TAKEN", OUTER), ran(11, 4), event(11, "MUTEX_TAKEN", FIRST),
        event(14, "MUTEX_FREE", FIRST), ran(20, 12), event(20, "MUTEX_FREE", OUTER),
        # From here on the thread has whole readings; they say nothing about the time before.
        event(21, "MUTEX_TAKEN", SECOND), whole(31, 4, 21, 5), event(31, "MUTEX_FREE", SECOND),
        event(32, "MUTEX_TAKEN", LAST), whole(42, 5, 31, 6), event(42, "MUTEX_FREE", LAST),
        ran(50, 33), event(50, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[OUTER]) == (12, 7, None)
    assert times(holds[FIRST]) == (3, 0, 0)
    assert times(holds[SECOND]) == (8, 2, None)
    assert times(holds[LAST]) == (9, 1, 1)
    assert (thread["cpu_ns"], thread["ready_ns"]) == (33 * MS, None)


def test_signals_take_no_time(tmp_path: Path) -> None:
    """The clocks are read one after the other: a time that seems to be lost is not lost."""
    holds, _ = tables(
        tmp_path,
        whole(1, 1, 0, 0), event(1, "MUTEX_TAKEN", OUTER), ran(2, 0.9999), ran(3, 2.0001),
        event(3, "MUTEX_TAKEN", FIRST), ran(4, 2.9998), event(4, "MUTEX_FREE", FIRST),
        whole(5, 1, 3.9997, 0), event(5, "MUTEX_FREE", OUTER), event(6, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[OUTER]) == (4, 0, 0)
    assert holds[FIRST]["off_ns"] == 300


@pytest.mark.parametrize("state", ["switched", "lost"])
def test_an_unknown_state_leaves_holds_undivided(state: str, tmp_path: Path) -> None:
    broken = (
        event(15, "SCHED_SWITCHED")
        if state == "switched"
        else event(15, "EVENTS_LOST", count=1, cause=0)
    )
    holds, _ = tables(
        tmp_path,
        whole(1, 1, 0, 0), event(1, "MUTEX_TAKEN", OUTER), ran(11, 4), broken,
        event(15, "MUTEX_TAKEN", FIRST), whole(31, 4, 21, 5), event(31, "MUTEX_FREE", FIRST),
        event(32, "MUTEX_FREE", OUTER), event(33, "THREAD_END", 0x1000),
    )  # fmt: skip
    # The readings around the outer hold have the sum, whatever was left out in between.
    assert times(holds[OUTER]) == ((22, 9, 5) if state == "switched" else (None, None, None))
    assert times(holds[FIRST]) == (None, None, None)


def test_a_reading_older_than_the_reading_of_a_signal_handler(tmp_path: Path) -> None:
    """The reading had its numbers when the handler came, which recorded newer numbers first."""
    holds, _ = tables(
        tmp_path,
        whole(1, 1, 0, 0),
        event(1, "MUTEX_TAKEN", OUTER),
        ran(11, 4),
        event(12, "MUTEX_TAKEN", FIRST),
        event(13, "MUTEX_FREE", FIRST),
        whole(14, 2, 3, 6),
        event(14, "MUTEX_TAKEN", SECOND),
        event(16, "MUTEX_FREE", SECOND),
        whole(20, 3, 11, 8),
        event(20, "MUTEX_FREE", OUTER),
        event(21, "THREAD_END", 0x1000),
    )
    assert times(holds[OUTER]) == (11, 8, 8)
    assert times(holds[SECOND]) == (2, 0, 0)


def waited(tmp_path: Path, *packets: list[Event]) -> float | None:
    """Return how long the thread was ready in its first wait, in ms."""
    wait = opened(tmp_path, *packets).table("waits").to_pylist()[0]
    return None if wait["ready_ns"] is None else wait["ready_ns"] / MS


# The thread has waited from 1 to 4 ms, was ready for 1 ms of that, and holds the lock for 2 ms.
BEFORE = [whole(1, 1, 1, 0), event(1, "MUTEX_WAIT", OUTER, owner=2), ran(4, 1)]
TAKEN = [
    Event(T0 + 4 * MS, "MUTEX_TAKEN", OUTER, 5, variant="WAITED", fields={"wait_ns": 3 * MS}),
]
HELD = [event(5, "MUTEX_TAKEN", FIRST), event(6, "MUTEX_FREE", OUTER)]


@pytest.mark.parametrize(
    "between", [[], [event(5, "USER")], [event(5, "MUTEX_TAKEN", FIRST)] * 2000], ids=len
)
def test_a_later_event_completes_a_partial_reading(between: list[Event], tmp_path: Path) -> None:
    """The thread may do anything meanwhile, in the same packet."""
    assert waited(tmp_path, [*BEFORE, *TAKEN, *between, kept(6, 2, 3, 1)]) == 1


@pytest.mark.parametrize(
    "behind",
    [
        [whole(6, 2, 3, 1)],
        [ran(5, 2), kept(6, 2, 3, 1)],
        [event(5, "SCHED_SWITCHED"), kept(6, 2, 3, 1)],
        [event(5, "EVENTS_LOST", count=1, cause=0), kept(6, 2, 3, 1)],
        # The newer reading of a signal handler came in between.
        [kept(6, 2, 0.5, 0)],
        [],
    ],
    ids=["lost", "another", "unknown", "gap", "older", "none"],
)
def test_unrelated_readings_do_not_complete_each_other(behind: list[Event], tmp_path: Path) -> None:
    assert waited(tmp_path / "1", [*BEFORE, *TAKEN, *HELD, *behind]) is None
    assert waited(tmp_path / "2", [*BEFORE, *TAKEN], [*HELD, kept(6, 2, 3, 1)]) is None


def test_a_repeated_reading_counts_once(tmp_path: Path) -> None:
    events = [BEFORE[0], event(1, "MUTEX_TAKEN", LAST), *BEFORE[1:], *TAKEN, *HELD]
    events += [kept(6, 2, 3, 1), event(6, "MUTEX_FREE", LAST), kept(7, 2, 4, 1)]
    traces = opened(tmp_path, [*events, event(7, "THREAD_END", 0x1000)])
    [thread] = [row for row in traces.table("threads").to_pylist() if row["tid"] == 1]
    assert (thread["cpu_ns"], thread["ready_ns"]) == (4 * MS, MS)
    [hold] = [row for row in traces.table("holds").to_pylist() if row["t_ns"] == MS]
    assert times(hold) == (2, 3, 1)


def switched(ms: float) -> Event:
    return event(ms, "SCHED_SWITCHED")


def test_a_time_left_out_before_a_hold_is_subtracted(tmp_path: Path) -> None:
    """The thread slept for nearly all of the time that the reading before the hold left out."""
    holds, thread = tables(
        tmp_path,
        whole(1, 1, 0, 0), event(1.01, "MUTEX_TAKEN", SHORT),
        event(1.02, "MUTEX_FREE", SHORT), switched(3), event(3, "MUTEX_TAKEN", FIRST),
        whole(13, 3, 0.05, 9), event(13, "MUTEX_FREE", FIRST), event(14, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[SHORT]) == (0.01, 0, 0)
    # 12 ms between the readings, 0.05 of them on the processor: at least 9.97 ms in the hold.
    ran_ms, off_ms, ready_ms = times(holds[FIRST])
    assert off_ms == pytest.approx(9.97)
    assert ran_ms == pytest.approx(0.03)
    assert ready_ms is None
    assert thread["cpu_ns"] == 1.05 * MS


def test_a_time_left_out_that_may_belong_to_a_hold_is_unknown(tmp_path: Path) -> None:
    """The thread may have lost its processor before the hold, in the hold, or both."""
    holds, _ = tables(
        tmp_path,
        whole(1, 1, 0, 0), switched(6), event(6, "MUTEX_TAKEN", FIRST), switched(11),
        event(11, "MUTEX_FREE", FIRST), event(11, "MUTEX_TAKEN", SECOND),
        event(12, "MUTEX_FREE", SECOND), event(12, "MUTEX_TAKEN", LAST),
        whole(21, 3, 15, 2), event(21, "MUTEX_FREE", LAST), event(22, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[FIRST]) == (None, None, None)
    assert times(holds[SECOND]) == (1, 0, 0)
    assert times(holds[LAST]) == (None, None, None)


def test_a_thread_that_kept_its_processor_gets_the_numbers_later(tmp_path: Path) -> None:
    """A hold ran all the time, although the reading in it has the sum of the time before it."""
    holds, thread = tables(
        tmp_path,
        whole(1, 1, 0, 0), switched(6), event(6, "MUTEX_TAKEN", OUTER), kept(8, 2, 3, 1),
        event(9, "MUTEX_FREE", OUTER), event(9, "THREAD_END", 0x1000),
    )  # fmt: skip
    assert times(holds[OUTER]) == (3, 0, 0)
    assert (thread["cpu_ns"], thread["ready_ns"]) == (4 * MS, MS)


def partial(ms: float, slices: int, ran: float, ready: float) -> list[Event]:
    """A reading where the kernel does not tell when threads sleep in calls."""
    return [event(ms, "SCHED_PARTIAL"), whole(ms + 0.001, slices, ran, ready)]


def test_partial_readings_bound_what_may_have_been_slept(tmp_path: Path) -> None:
    holds, thread = tables(
        tmp_path,
        *partial(1, 1, 0, 0), event(1.01, "MUTEX_TAKEN", FIRST),
        *partial(11, 5, 4, 1), event(11.02, "MUTEX_FREE", FIRST),
        event(12, "MUTEX_TAKEN", SECOND), event(13, "MUTEX_FREE", SECOND),
        *partial(30, 6, 10, 2), event(30.01, "THREAD_END", 0x1000),
    )  # fmt: skip
    ran_ms, off_ms, ready_ms = times(holds[FIRST])
    assert off_ms == pytest.approx(6)
    assert ready_ms == 1
    assert ran_ms == pytest.approx(4.01)
    assert times(holds[SECOND]) == (None, None, None)
    assert (thread["cpu_ns"], thread["ready_ns"]) == (10 * MS, 2 * MS)
