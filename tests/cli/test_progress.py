"""Long work shows its progress on a terminal, and then removes the line."""

from __future__ import annotations

import argparse
import io
import os
import pty
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.cli.output import progress
from nptltrace.recording import recorder
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        """Say that this is a terminal."""
        return True


class State:
    """The progress of some work.

    Attributes:
        asked: Set after the first call.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self) -> str:
        """Return the progress."""
        self.asked.set()
        return "5 MB written"


@pytest.mark.parametrize(("verbosity", "shown"), [(0, True), (-1, False)])
def test_the_line_appears_and_is_removed(
    monkeypatch: pytest.MonkeyPatch, verbosity: int, *, shown: bool
) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    state = State()
    with progress.Progress(argparse.Namespace(verbosity=verbosity), state):
        assert state.asked.wait(30 if shown else 0.1) is shown
    text = terminal.getvalue()
    assert ("5 MB written" in text) is shown
    assert text.endswith("\r\x1b[K") is shown


def test_work_that_fails_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that follows has a line of its own."""
    monkeypatch.setattr(progress, "_AFTER_S", 0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    terminal, state = Terminal(), State()
    monkeypatch.setattr(sys, "stderr", terminal)

    def work() -> None:
        with progress.Progress(argparse.Namespace(verbosity=0), state):
            assert state.asked.wait(30)
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        work()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_no_progress_is_shown_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file or in a pipe, each progress line would stay."""
    monkeypatch.setattr(progress, "_AFTER_S", 0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    file, state = io.StringIO(), State()
    monkeypatch.setattr(sys, "stderr", file)
    with progress.Progress(argparse.Namespace(verbosity=0), state):
        assert not state.asked.wait(0.1)
    assert file.getvalue() == ""


def test_a_reader_that_goes_away_ends_an_export(ptt: Ptt, trace_dir: Path) -> None:
    """SIGPIPE ends the export without a message, also on a terminal."""
    made = Builder(trace_dir)
    made.thread(1, [Event(10**12, "MUTEX_TAKEN", 64, 5), Event(10**12 + 20, "MUTEX_FREE", 64, 6)])
    export = ("export", "--format", "csv", "--table", "events", "-o", "-", made.write())
    reader, writer = os.pipe()
    os.close(reader)
    master, terminal = pty.openpty()
    with os.fdopen(writer, "wb") as stdout, os.fdopen(terminal, "wb") as stderr:
        done = subprocess.run(
            ptt.command(*export), env=ptt.environment(), stdout=stdout, stderr=stderr, check=False
        )
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):
            os.read(master, 1000)
    os.close(master)
    assert done.returncode == 128 + signal.SIGPIPE


STATS = SimpleNamespace(events=1, live_threads=2, bytes=3_000_000, lost=0)


@pytest.mark.parametrize(
    ("stream", "verbosity", "after_s", "shown"),
    [(Terminal, 0, 0, True), (io.StringIO, 0, 0, False), (Terminal, -1, 0, False),
     (Terminal, 0, 1000, False)],
)  # fmt: skip
def test_a_long_recording_shows_its_progress(
    monkeypatch: pytest.MonkeyPatch,
    stream: type[io.StringIO],
    verbosity: int,
    after_s: float,
    *,
    shown: bool,
) -> None:
    file = stream()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(recorder, "_PROGRESS_AFTER_S", after_s)
    options: Any = SimpleNamespace(verbosity=verbosity)
    line, stats = recorder._Progress(options), STATS
    for _ in range(2):
        line.show(stats)  # type: ignore[arg-type]
    line.clear()
    text = "\rptt: 0 s, 1 event, 2 threads, 3.0 MB, 0 lost\x1b[K"
    assert file.getvalue() == (2 * text + "\r\x1b[K") * shown
