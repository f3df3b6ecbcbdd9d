"""Locks that waiters hand from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.analysis.story import Story

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

LOCK = 0x1000
THREADS = (101, 102, 103)
US = 1000


def handed(
    tmp_path: Path, rounds: int, *, held_ns: int, free_ns: int, barges: int = 0
) -> list[Finding]:
    """Check three threads that take a lock by turns, each of them after a wait.

    Args:
        tmp_path: Where the trace goes.
        rounds: Number of hand-overs.
        held_ns: Length of each hold.
        free_ns: Time that the next thread takes to wake.
        barges: Every so many rounds, the holder takes the lock again before another thread wakes.
    """
    story = Story().create(*THREADS)
    story.lock(THREADS[0], LOCK)
    story.wait(THREADS[1], LOCK)
    for turn in range(rounds):
        has, following, last = (THREADS[(turn + n) % 3] for n in range(3))
        story.wait(last, LOCK)
        story.sleep(held_ns)
        story.unlock(has, LOCK)
        if barges and turn % barges == 0:
            story.lock(has, LOCK).unlock(has, LOCK)
        story.sleep(free_ns)
        story.waited(following, LOCK)
    has, last = THREADS[rounds % 3], THREADS[(rounds + 1) % 3]
    story.unlock(has, LOCK).waited(last, LOCK).unlock(last, LOCK)
    findings = story.ended_and_joined(*THREADS).exit().findings(tmp_path)
    return [finding for finding in findings if finding.kind == "convoy"]


def test_a_lock_that_is_free_while_threads_wake(tmp_path: Path) -> None:
    [found] = handed(tmp_path, 300, held_ns=2 * US, free_ns=40 * US)
    assert found.severity == "warning"
    assert "300 times in a row" in found.message
    assert set(found.threads) <= set(THREADS)
    assert len(found.events) == 2


def test_holds_longer_than_a_wake_up_are_no_convoy(tmp_path: Path) -> None:
    assert not handed(tmp_path, 300, held_ns=200 * US, free_ns=40 * US)


def test_a_short_row_of_hand_overs_is_no_convoy(tmp_path: Path) -> None:
    assert not handed(tmp_path, 60, held_ns=2 * US, free_ns=400 * US)


def test_takes_without_a_wait_now_and_then(tmp_path: Path) -> None:
    assert not handed(tmp_path, 300, held_ns=2 * US, free_ns=40 * US, barges=20)
