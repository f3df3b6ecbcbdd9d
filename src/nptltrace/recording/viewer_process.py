"""The viewer beside a recording: a process of its own that follows the trace.

It imports what a recording does not want to wait for, and goes on when the program has ended. Its
stdin is a pipe that nothing is written to: when the recorder is gone, however it ended, so is that,
and the viewer ends as soon as no page is open any more.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Beside"]


class Beside:
    """Starts the viewer, and waits for its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, trace: Path) -> None:
        """Start the viewer of a trace; its address goes to stderr, for stdout is the program's."""
        # An interrupt is the program's: the viewer is out of its reach.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nptltrace", "ui", "--follow", "--beside", "--", str(trace)],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            start_new_session=True,
        )

    def wait(self, waits: Callable[[], None]) -> None:
        """Wait until the viewer ends, or end it when a signal comes.

        Args:
            waits: Called if there is something to wait for.
        """
        if self._process is None or self._process.poll() is not None:
            return
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            waits()
            self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            self._process.wait()
        finally:
            signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
