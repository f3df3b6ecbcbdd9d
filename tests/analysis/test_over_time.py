"""Locks over time: bins add up to the whole, and a change is found at its time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nptltrace._binding import libptttrack_sums
from nptltrace.analysis.model import Window, run_model
from nptltrace.analysis.report import over_time as over_time_module
from nptltrace.analysis.report.over_time import Place, over_time, significant_ends
from nptltrace.api import Traceset
from nptltrace.catalog import DOMAINS
from tests.trace.builder import Builder, Event
from tests.ui.made import MS, T0, A, B, free, process, taken, waits

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.report.over_time import LockOverTime

pytestmark = pytest.mark.usefixtures("native_in_process")
MUTEX = DOMAINS["mutex"]
END = 4000


def holder(lengths: list[int], lock: int) -> list[Event]:
    """Return a hold of a lock every 10 ms, each for so many ms."""
    return [
        event
        for n, length in enumerate(lengths)
        for event in (taken(10 * n, lock, 1), free(10 * n + length, lock, 2))
    ]


def found_in(
    trace: Path, edges: list[int], *locks: int, window: Window | None = None
) -> list[LockOverTime]:
    places = [Place(0, lock, MUTEX, 0) for lock in locks]
    return over_time(Traceset(trace), window or Window(), places, np.array(edges))


def traced(path: Path, *threads: list[Event]) -> Path:
    made = Builder(path)
    for tid, events in enumerate(threads, 1):
        made.thread(tid, events)
    made.processes = process(0, {})
    return made.write()


def test_a_change_is_found_at_its_time(tmp_path: Path) -> None:
    rng = random.Random(7)  # noqa: S311 -- lengths to try
    lengths = [rng.randint(1, 3) for _ in range(200)] + [rng.randint(6, 8) for _ in range(200)]
    steady = [rng.randint(1, 9) for _ in range(400)]
    trace = traced(tmp_path / "run.ptt", holder(lengths, A), holder(steady, B))
    changing, same = found_in(trace, [0, END * MS], A, B)
    (change,) = changing.changes
    assert (change.what, change.before, change.after) == ("hold", 200, 200)
    assert change.t_ns == 2000 * MS
    assert (change.before_ns, change.after_ns) == (2 * MS, 7 * MS)
    assert not same.changes


def test_a_change_and_its_reverse_are_two_changes(tmp_path: Path) -> None:
    lengths = [2, 3] * 60 + [8, 9] * 60 + [2, 3] * 60
    (lock,) = found_in(traced(tmp_path / "run.ptt", holder(lengths, A)), [0, END * MS], A)
    assert [change.t_ns for change in lock.changes] == [1200 * MS, 2400 * MS]
    assert [(c.before, c.after) for c in lock.changes] == [(120, 120), (120, 120)]


@pytest.mark.parametrize("neighbours", [0.0, 0.9, 0.99])
def test_correlated_lengths_are_no_change(neighbours: float) -> None:
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(30):
        logs = np.zeros(1000)
        for n in range(1, len(logs)):
            logs[n] = neighbours * logs[n - 1] + rng.normal(0, np.sqrt(1 - neighbours**2))
        found += len(significant_ends(logs / np.log(2))) > 2
    assert found <= 3


def test_few_holds_show_no_change(tmp_path: Path) -> None:
    lengths = [1] * 20 + [9] * 20
    (lock,) = found_in(traced(tmp_path / "run.ptt", holder(lengths, A)), [0, END * MS], A)
    assert not lock.changes


def test_bins_add_up_to_the_whole(tmp_path: Path) -> None:
    """A hold may lie over several bins, and a wait over an edge."""
    trace = traced(
        tmp_path / "run.ptt",
        [taken(0, A, 1), free(250, A, 2), taken(300, A, 1), free(310, A, 2)],
        [waits(50, A, 1, 3), taken(250, A, 3, 200), free(290, A, 4)],
    )
    (lock,) = found_in(trace, [0, 100 * MS, 200 * MS, 400 * MS], A)
    assert lock.holds.ns.tolist() == [100 * MS, 100 * MS, (50 + 10 + 40) * MS]
    assert lock.holds.count.tolist() == [0, 0, 3]
    assert lock.holds.p50_ns.tolist() == [0, 0, 40 * MS]
    assert lock.holds.p99_ns.tolist() == [0, 0, 250 * MS]
    assert lock.waits.ns.tolist() == [50 * MS, 100 * MS, 50 * MS]
    assert lock.waits.count.tolist() == [0, 0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_bins_of_a_random_part_have_its_sums(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 -- lengths to try
    lengths = [rng.randint(1, 9) for _ in range(300)]
    trace = traced(tmp_path / "run.ptt", holder(lengths, A))
    begin, end = sorted(rng.sample(range(3000 * MS), 2))
    edges = [begin + (end - begin) * n // 7 for n in range(8)]
    (lock,) = found_in(trace, edges, A, window=Window(begin, end))
    model = run_model(Traceset(trace), window=Window(begin, end))
    objects = model.table("objects")
    (whole,) = objects[(objects["address"] == A) & (objects["kind"] == MUTEX)]
    assert int(lock.holds.ns.sum()) == int(whole["hold_ns"])
    assert int(lock.holds.count.sum()) == int(whole["hold_n"])


def test_a_later_lock_at_the_address_is_another_lock(tmp_path: Path) -> None:
    def gone(ms: int) -> Event:
        return Event(T0 + ms * MS, "MUTEX_DESTROY", A, 1)

    later = [
        event
        for n in range(100)
        for event in (taken(1001 + 10 * n, A, 1), free(1009 + 10 * n, A, 2))
    ]
    trace = traced(tmp_path / "run.ptt", [*holder([1, 2] * 50, A), gone(1000), *later])
    (lock,) = found_in(trace, [0, END * MS], A)
    assert lock.holds.count.tolist() == [200]
    assert not lock.changes


def test_no_lock_is_asked_for(tmp_path: Path) -> None:
    assert not found_in(traced(tmp_path / "run.ptt", holder([1], A)), [0, END * MS])


def test_waits_at_a_barrier_are_compared_by_round() -> None:
    """A thread that comes later waits for less time: only the first of each round counts."""
    number = np.arange(12)[::-1]
    released = 100 * (number // 4 + 1)
    waits = over_time_module._Rows(
        object=np.ones(12, np.uint32),
        t_ns=10 * number,
        dur_ns=released - 10 * number + number % 4,
        waker_t_ns=np.where(number == 11, libptttrack_sums.NEVER, released),
        whole=np.ones(12, np.bool_),
    )
    rounds = over_time_module._rounds(waits)
    assert rounds.t_ns.tolist() == [0, 40, 80]
    assert rounds.dur_ns.tolist() == [100, 160, 220]
