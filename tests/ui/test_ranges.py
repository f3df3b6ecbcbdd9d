"""Sums of ranges: the traces may change at any moment while they are being opened."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from nptltrace.ui.answers import ranges

if TYPE_CHECKING:
    import pytest


def test_traces_that_change_while_they_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened serves the answer that wanted it, and none that comes later."""
    sums = ranges.Ranges([], cast("Any", SimpleNamespace(of=lambda source: source)), lambda: None)
    opened: list[str] = []

    def open_traces() -> str:
        opened.append(f"number {len(opened)}")
        if len(opened) == 1:
            sums.forget()
        return opened[-1]

    monkeypatch.setattr(ranges, "Traceset", open_traces)
    assert [str(sums._opened()) for _ in range(3)] == ["number 0", "number 1", "number 1"]
    sums.forget()
    assert str(sums._opened()) == "number 2"
