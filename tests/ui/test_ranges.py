"""Sums of ranges come from the opened traces. The traces do not change meanwhile."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from nptltrace.ui import jobs
from nptltrace.ui.jobs import Jobs, NotReady
from nptltrace.ui.queries.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0


def test_traces_change_only_between_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_SOON_S", 0.01)
    begun, goes_on, changed, over = Event(), Event(), Event(), Event()
    order: list[str] = []
    ranges = Ranges(lambda: None)

    def work(_: Callable[[float], None]) -> None:
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        order.append("worked out")

    def change() -> None:
        with ranges.paused():
            order.append("changes")
            changed.set()
            assert over.wait(PATIENCE_S)
            order.append("changed")

    with pytest.raises(NotReady):
        ranges._jobs.ask("first", work)
    assert begun.wait(PATIENCE_S)
    changing = Thread(target=change)
    changing.start()
    assert not changed.wait(0.1)
    goes_on.set()
    assert changed.wait(PATIENCE_S)
    # A new question waits for the end of the change.
    begun.clear()
    with pytest.raises(NotReady):
        ranges._jobs.ask("second", work)
    assert not begun.is_set()
    over.set()
    assert begun.wait(PATIENCE_S)
    changing.join()
    ranges.close()
    assert order == ["worked out", "changes", "changed", "worked out"]


def test_an_answer_about_traces_that_changed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is computed again. Nobody gets the old answer."""
    monkeypatch.setattr(jobs, "_SOON_S", 0.01)
    begun, goes_on = Event(), Event()
    answers: list[str] = []
    asked = Jobs(lambda: None)

    def work(_: Callable[[float], None]) -> str:
        answers.append(f"number {len(answers)}")
        if len(answers) == 1:
            begun.set()
            assert goes_on.wait(PATIENCE_S)
        return answers[-1]

    with pytest.raises(NotReady):
        asked.ask("key", work)
    assert begun.wait(PATIENCE_S)
    asked.forget(0)
    goes_on.set()
    monkeypatch.setattr(jobs, "_SOON_S", PATIENCE_S)
    assert [asked.ask("key", work) for _ in range(2)] == ["number 1", "number 1"]
    asked.forget(0)
    assert asked.ask("key", work) == "number 2"
    asked.close()
