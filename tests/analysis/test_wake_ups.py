"""Which wake-up ends a wait, where several were given and not all who waited went on by one."""

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
    """Return who was woken by what, and when."""
    woken = model_tables(Traceset(story.write_to(path))).wakeups.to_pylist()
    return [(row["wakee_tid"], row["kind"], row["t_ns"]) for row in woken]


def wait(story: Story, tid: int) -> None:
    story.lock(tid, A).cond_in(tid, HEAP, A, timed=True)


def now(story: Story) -> int:
    """Return when the last event was, in the time of the trace, which begins with the first."""
    return story.now - 1000


@pytest.mark.parametrize("give", ["signal", "broadcast"])
def test_a_wait_that_is_given_up_leaves_nothing(give: str, tmp_path: Path) -> None:
    """A wake-up that nobody has used is not for somebody who began to wait behind it."""
    story = Story().create(1, 2)
    wait(story, 1)
    getattr(story, give)(MAIN, HEAP)
    wait(story, 2)
    story.cond_out(1, HEAP, A, result=TIMED_OUT, timed=True).unlock(1, A)
    story.signal(MAIN, HEAP)
    signalled = now(story)
    story.cond_out(2, HEAP, A, timed=True).unlock(2, A)
    assert wakers(story, tmp_path / "made.ptt") == [(2, "signal", signalled)]


def test_a_wait_that_is_given_up_leaves_it_to_another(tmp_path: Path) -> None:
    """Who waited beside it when the wake-up was given goes on by that, whatever comes later."""
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
