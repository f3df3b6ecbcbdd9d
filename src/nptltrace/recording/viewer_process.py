"""The viewer beside a recording: another process that follows the trace.

The recording need not wait for the imports of the viewer, and the viewer goes on when the program
has ended. Its stdin is a pipe that nobody writes to. When the recorder ends, in whatever way, the
pipe closes. Then the viewer ends as soon as no page is open any more.
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
        """Start the viewer of a trace; it prints its address on stderr: stdout is the program's."""
        # In a new session, the viewer does not get the interrupts for the program.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nptltrace", "ui", "--follow", "--beside", "--", str(trace)],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            start_new_session=True,
        )

    def wait(self, waits: Callable[[], None]) -> None:
        """Wait until the viewer ends, or end it at SIGINT or SIGTERM.

        Args:
            waits: Called before the wait, if the viewer still runs.
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
