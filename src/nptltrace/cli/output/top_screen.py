"""The screen of `ptt top`, and its keys."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from nptltrace.cli.output.text.top_text import lines

if TYPE_CHECKING:
    from nptltrace.analysis.report.live_contention import LiveContention
    from nptltrace.cli.output.text.top_text import Line

__all__ = ["Screen"]

_STYLES = {"head": "bold reverse", "alarm": "bold", "faint": "dim", "": ""}
_VIEWS = {"o": "object", "t": "thread", "s": "site"}
_HELP = "o objects  t threads  s call sites  space stop and go on  q quit"
_POLL_S = 0.2


class Screen:
    """A full screen that shows the last snapshot, and reads keys.

    Args:
        name: The traces.
        by: The first table.

    Attributes:
        closed: The user has pressed q.
    """

    def __init__(self, name: str, by: str) -> None:
        self.closed = False
        self._name, self._by = name, by
        self._stopped = False
        self._shown: LiveContention | None = None
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Switch the terminal to a full screen."""
        before = termios.tcgetattr(sys.stdin)
        self._stack.callback(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, before)
        tty.setcbreak(sys.stdin)
        self._stack.enter_context(self._live)
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal."""
        self._stack.close()

    def show(self, snapshot: LiveContention) -> None:
        """Show a snapshot."""
        self._shown = snapshot
        self._draw()

    def leave(self, snapshot: LiveContention) -> None:
        """Print the last snapshot on the terminal, after the screen is closed."""
        for line in lines(snapshot, name=self._name, by=self._by, top=10):
            self._console.print(_styled(line))

    def wait(self, seconds: float) -> bool:
        """Read keys for some time, longer while the screen is paused; return `closed`."""
        end = time.monotonic() + seconds
        while not self.closed and (self._stopped or time.monotonic() < end):
            left = max(0.0, min(_POLL_S, end - time.monotonic()) if not self._stopped else _POLL_S)
            if select.select([sys.stdin], [], [], left)[0]:
                self._keys(os.read(sys.stdin.fileno(), 64))
        return self.closed

    def _keys(self, typed: bytes) -> None:
        for key in typed.decode(errors="ignore") or "q":  # no bytes: the terminal was closed
            self.closed |= key in "qQ"
            self._stopped ^= key == " "
            self._by = _VIEWS.get(key.lower(), self._by)
        self._draw()

    def _draw(self) -> None:
        height = max(self._console.height - 2, 4)
        if self._shown is None:
            body = [Text(self._name), Text("  reading …")]
        else:
            rows = lines(self._shown, name=self._name, by=self._by, top=height)
            body = [_styled(line) for line in rows][:height]
        body += [Text("")] * (height - len(body))
        stopped = "stopped: " if self._stopped else ""
        foot = Text(f" {stopped}{_HELP}", style="reverse", no_wrap=True, overflow="ellipsis")
        self._live.update(Group(*body, foot), refresh=True)


def _styled(line: Line) -> Text:
    return Text(line.text, style=_STYLES[line.style], no_wrap=True, overflow="ellipsis")
