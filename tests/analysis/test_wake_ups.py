"""Which wake-up ends a wait, if there were several and some waiters gave up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.api import Traceset
from tests.analysis.story import HEAP, MAIN, A, Story

if TYPE_CHECKING:
    from pathlib import Path

TIMED_OUT = 110


def wakers(story: Story, path: Path) -> list[tuple[int, str, int]]:
    """Return the woken threads, the kind of each wake-up, and its time."""
    woken = model_tables(Traceset(story.write_to(path))).wakeups.to_pylist()
    return [(row["wakee_tid"], row["kind"], row["t_ns"]) for row in woken]


def wait(story: Story, tid: int) -> None:
    story.lock(tid, A).cond_in(tid, HEAP, A, timed=True)


def now(story: Story) -> int:
    """Return the time of the last event; the time of the trace begins with the first event."""
    return story.now - 1000


@pytest.mark.parametrize("give", ["signal", "broadcast"])
def test_a_given_up_wait_leaves_no_wake_up_for_later_waits(give: str, tmp_path: Path) -> None:
    """An unused wake-up is not for a thread that began to wait after it."""
    story = Story().create(1, 2)
    wait(story, 1)
    getattr(story, give)(MAIN, HEAP)
    wait(story, 2)
    story.cond_out(1, HEAP, A, result=TIMED_OUT, timed=True).unlock(1, A)
    story.signal(MAIN, HEAP)
    signalled = now(story)
    story.cond_out(2, HEAP, A, timed=True).unlock(2, A)
    assert wakers(story, tmp_path / "made.ptt") == [(2, "signal", signalled)]


def test_a_given_up_wait_leaves_its_wake_up_to_another_waiter(tmp_path: Path) -> None:
    """The wake-up goes to the other thread that waited then, whatever comes later."""
    story = Story().create(1, 2, 3)
    wait(story, 1)
    wait(story, 2)
    story.signal(MAIN, HEAP)
    first = now(story)
    wait(story, 3)
    story.cond_out(1, HEAP, A, result=TIMED_OUT, timed=True).unlock(1, A)
    story.signal(MAIN, HEAP)
    second = now(story)
    story.cond_out(3, HEAP, A, timed=True).unlock(3, A)
    story.cond_out(2, HEAP, A, timed=True).unlock(2, A)
    expected = [(3, "signal", second), (2, "signal", first)]
    assert wakers(story, tmp_path / "made.ptt") == expected
