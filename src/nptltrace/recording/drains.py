"""What the recorder does for each handler: where its events go, and what brings them there."""

from __future__ import annotations

import time

from nptltrace._binding.libpttcollect import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from nptltrace._binding.libpttcollect import Collector
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.options import HandlerChoice
else:
    Protocol = object

__all__ = ["Drain", "NoDrain", "RingDrain"]

_SLEEP_MIN = 0.0005
_SLEEP_MAX = 0.2
# A pass that frees more than the one part of all buffers came late, less than the other, early.
_MUCH, _LITTLE = 1 / 8, 1 / 32


class Drain(Protocol):
    """Brings a handler's events to the trace while the program runs."""

    def arguments(self) -> list[str]:
        """Return the handler's arguments in `PTHREAD_NPTL_TRACE`."""

    def step(self, *, flush: bool) -> Stats:
        """Write what is ready; with `flush`, everything that there is."""

    def sleep(self, limit: float) -> None:
        """Sleep until it is time for the next step, a signal comes, or `limit` seconds are over."""

    def finish(self) -> Stats:
        """Write all that is left: nobody writes any more."""


class RingDrain:
    """The `ring` handler: per-thread buffers in the session's segment.

    Args:
        collector: What drains the segment.
        session: The session directory.
    """

    def __init__(self, collector: Collector, session: SessionDir) -> None:
        self._collector = collector
        self._session = session
        self._pause = _SLEEP_MIN * 2

    def arguments(self) -> list[str]:
        """Return what the session directory says of itself."""
        return self._session.arguments

    def step(self, *, flush: bool) -> Stats:
        """Drain once, and choose how long to sleep from how much there was."""
        stats = self._collector.drain(flush=flush)
        if stats.freed_chunks > stats.chunks * _MUCH:
            self._pause = max(_SLEEP_MIN, self._pause / 2)
        elif stats.freed_chunks < stats.chunks * _LITTLE:
            self._pause = min(_SLEEP_MAX, self._pause * 2)
        return stats

    def sleep(self, limit: float) -> None:
        """Sleep; a writer that finds no room wakes the recorder."""
        self._collector.wait(min(limit, self._pause))

    def finish(self) -> Stats:
        """Close the segment and drain the rest."""
        self._collector.close()
        return self._collector.finish()


class NoDrain:
    """A handler that brings its events where they go by itself.

    Args:
        choice: The handler.
        session: The session directory, in which only level control pages are then.
    """

    def __init__(self, choice: HandlerChoice, session: Path) -> None:
        self._choice = choice
        self._session = session

    def arguments(self) -> list[str]:
        """Return what the user gave."""
        return list(self._choice.arguments)

    def step(self, *, flush: bool) -> Stats:  # noqa: ARG002 -- there is nothing to flush
        """Do nothing."""
        return Stats()

    def sleep(self, limit: float) -> None:
        """Sleep a little."""
        time.sleep(min(limit, _SLEEP_MAX / 2))

    def finish(self) -> Stats:
        """Do nothing."""
        return Stats()
