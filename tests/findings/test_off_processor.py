"""Holders that had no processor while other threads waited for the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import MAIN, Story

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

LOCK = 0x1000
HOLDER, WAITER = 101, 102
MS = 1_000_000
KINDS = ("holder-preempted", "sleeping-holder")


def held(
    tmp_path: Path,
    ready_ns: int,
    slept_ns: int,
    *,
    waits: bool = True,
    times: int = 1,
    vague_ns: int = 0,
) -> list[Finding]:
    """Check a holder that was ready and slept for so long, with or without a waiter.

    Just before the hold, it had no processor for vague_ns; the same reading covers that time.
    """
    story = Story().create(HOLDER, WAITER)
    ran = ready = 0
    for slices in range(1, times + 1):
        site = 0x50
        story.do(HOLDER, "SCHED_READING", slices=2 * slices, ran_ns=ran, ready_ns=ready)
        start = story.now
        if vague_ns:
            story.sleep(vague_ns).do(HOLDER, "SCHED_RAN", ran_ns=ran + 1000)
        story.lock(HOLDER, LOCK, site=site)
        if waits:
            story.wait(WAITER, LOCK)
        story.sleep(ready_ns + slept_ns)
        ready += ready_ns
        # The holder ran for the rest of the time.
        ran += story.now + 1000 - start - ready_ns - slept_ns - vague_ns
        story.do(HOLDER, "SCHED_READING", slices=2 * slices + 1, ran_ns=ran, ready_ns=ready)
        story.unlock(HOLDER, LOCK)
        if waits:
            story.waited(WAITER, LOCK, wait_ns=ready_ns + slept_ns).unlock(WAITER, LOCK)
    findings = story.ended_and_joined(HOLDER, WAITER).exit().findings(tmp_path)
    return [finding for finding in findings if finding.kind in KINDS]


def test_a_holder_is_preempted_for_long(tmp_path: Path) -> None:
    [found] = held(tmp_path, 80 * MS, 0)
    assert (found.kind, found.severity) == ("holder-preempted", "warning")
    assert set(found.threads) == {HOLDER, WAITER}
    assert "waited 80 ms for it" in found.message


def test_a_holder_is_preempted_often(tmp_path: Path) -> None:
    [found] = held(tmp_path, 3 * MS, 0, times=30)
    assert found.kind == "holder-preempted"
    assert "waited 3 ms for it, 30 times for 1 ms or longer" in found.message


def test_a_holder_sleeps(tmp_path: Path) -> None:
    [found] = held(tmp_path, 0, 60 * MS)
    assert found.kind == "sleeping-holder"
    assert "slept while it held" in found.message
    assert "waited 60 ms for it meanwhile" in found.message


def test_a_holder_sleeps_often(tmp_path: Path) -> None:
    [found] = held(tmp_path, 0, 5 * MS, times=60)
    assert found.kind == "sleeping-holder"
    assert "waited 5 ms for it meanwhile, and 300 ms in 60 sleeps" in found.message
    assert not held(tmp_path, 0, 5 * MS, times=15)


@pytest.mark.parametrize(
    ("ready_ns", "slept_ns", "kind", "least"),
    [(80 * MS, 0, "holder-preempted", "79.6 ms"), (0, 60 * MS, "sleeping-holder", "60 ms")],
)
def test_a_finding_states_the_least_possible_time(
    ready_ns: int, slept_ns: int, kind: str, least: str, tmp_path: Path
) -> None:
    """The holder may have been ready or asleep before it took the lock."""
    [found] = held(tmp_path, ready_ns, slept_ns, vague_ns=400_000)
    assert found.kind == kind
    assert f"waited {least} for it" in found.message


@pytest.mark.parametrize(("ready_ns", "slept_ns"), [(20 * MS, 0), (0, 5 * MS)])
def test_short_times_are_nobodys_fault(tmp_path: Path, ready_ns: int, slept_ns: int) -> None:
    assert not held(tmp_path, ready_ns, slept_ns)


@pytest.mark.parametrize(
    ("times", "waited_first", "again"),
    [(60, True, False), (15, True, False), (60, False, False), (60, True, True)],
)
def test_a_waiter_holds_a_mutex_of_rust_until_it_wakes_the_next(
    tmp_path: Path, *, times: int, waited_first: bool, again: bool
) -> None:
    """A new wait ends the hold. For other threads, the begin of the hold is not known."""
    story = Story().create(HOLDER, WAITER)
    ran = 0

    def reading() -> None:
        nonlocal ran
        ran += 1000
        story.do(HOLDER, "SCHED_READING", slices=ran // 1000, ran_ns=ran, ready_ns=0)

    def waits(tid: int) -> None:
        story.do(tid, "FUTEX_WAIT_IN", LOCK, op=0, lock=1, expected=2, timeout_ns=-1)

    def wakes(tid: int, woken: int) -> None:
        story.do(tid, "FUTEX_WAKE", LOCK, site=0x60, op=1, count=1)
        story.do(woken, "FUTEX_WAIT_OUT", LOCK, result=0, wait_ns=1000)

    for _ in range(times):
        if waited_first:
            waits(HOLDER)
            wakes(MAIN, HOLDER)
        reading()
        waits(WAITER)
        story.sleep(5 * MS)
        reading()
        if again:
            waits(HOLDER)
            wakes(MAIN, HOLDER)
        wakes(HOLDER, WAITER)
    findings = story.ended_and_joined(HOLDER, WAITER).exit().findings(tmp_path)
    found = [finding for finding in findings if finding.kind in KINDS]
    if times < 60 or not waited_first or again:
        assert not found
        return
    assert [finding.kind for finding in found] == ["sleeping-holder"]
    assert "slept while it held rust-mutex" in found[0].message
    assert " ms in 60 sleeps" in found[0].message


def test_nobody_waits(tmp_path: Path) -> None:
    assert not held(tmp_path, 500 * MS, 500 * MS, waits=False)


@pytest.mark.parametrize("whole", [True, False])
def test_a_thread_that_computes_in_a_call_does_not_sleep(tmp_path: Path, *, whole: bool) -> None:
    """Some readings say only how long the thread has run."""
    story = Story().create(HOLDER, WAITER)

    def reading(ran_ns: int, ready_ns: int, slices: int) -> None:
        if whole:
            story.do(HOLDER, "SCHED_READING", ran_ns=ran_ns, ready_ns=ready_ns, slices=slices)
        else:
            story.do(HOLDER, "SCHED_RAN", ran_ns=ran_ns)

    reading(0, 0, 1)
    start = story.now
    story.lock(HOLDER, LOCK).wait(WAITER, LOCK).do(HOLDER, "SYS_CALL_IN", call=1)
    story.sleep(80 * MS)
    reading(story.now + 1000 - start - 500_000, 0, 2)
    story.do(HOLDER, "SYS_CALL_OUT", call=1, result=0, duration_ns=80 * MS)
    story.unlock(HOLDER, LOCK).waited(WAITER, LOCK, wait_ns=80 * MS).unlock(WAITER, LOCK)
    findings = story.ended_and_joined(HOLDER, WAITER).exit().findings(tmp_path)
    assert not [finding for finding in findings if finding.kind in KINDS]
