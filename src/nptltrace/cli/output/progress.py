"""Shows the progress of long work on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

__all__ = ["Progress"]

_AFTER_S = 2.0  # shorter work shows no progress
_EVERY_S = 0.5


class Progress:
    """Updates a line on stderr during work, if stderr is a terminal.

    Args:
        args: The parsed arguments, with the verbosity.
        state: Returns the progress as text; called in another thread.
    """

    def __init__(self, args: argparse.Namespace, state: Callable[[], str]) -> None:
        self._state = state
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        if args.verbosity >= 0 and sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the line."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        began = time.monotonic()
        if self._end.wait(_AFTER_S):
            return
        while not self._end.wait(_EVERY_S):
            text = f"\rptt: {time.monotonic() - began:.0f} s, {self._state()}\x1b[K"
            print(text, end="", file=sys.stderr, flush=True)
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
