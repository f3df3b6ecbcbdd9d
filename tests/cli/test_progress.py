"""Long work says on a terminal how far it is, and takes the line away."""

from __future__ import annotations

import argparse
import io
import sys
import threading

import pytest

from nptltrace.cli.output import progress


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


@pytest.mark.parametrize(("verbosity", "shown"), [(0, True), (-1, False)])
def test_line_is_shown_and_taken_away(
    monkeypatch: pytest.MonkeyPatch, verbosity: int, *, shown: bool
) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    asked = threading.Event()

    def state() -> str:
        asked.set()
        return "5 MB written"

    with progress.Progress(argparse.Namespace(verbosity=verbosity), state):
        assert asked.wait(30 if shown else 0.1) is shown
    text = terminal.getvalue()
    assert ("5 MB written" in text) is shown
    assert text.endswith("\r\x1b[K") is shown
