"""Drains: how the recorder brings the events of each handler to the trace."""

from __future__ import annotations

import time

from nptltrace._binding.libpttcollect import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from nptltrace._binding.libpttcollect import Collector
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.options import HandlerChoice
else:
    Protocol = object

__all__ = ["Drain", "NoDrain", "RingDrain"]

_SLEEP_MIN = 0.0005
_SLEEP_MAX = 0.2
# A pass that frees more than 1/8 of the buffers was late; less than 1/32, early.
_MUCH, _LITTLE = 1 / 8, 1 / 32


class Drain(Protocol):
    """Brings a handler's events to the trace while the program runs."""

    def arguments(self) -> list[str]:
        """Return the handler's arguments in `PTHREAD_NPTL_TRACE`."""

    def step(self, *, flush: bool) -> Stats:
        """Write the full buffers; with `flush`, all events. Return the counts so far."""

    def sleep(self, limit: float) -> None:
        """Sleep until the next step, a signal, or `limit` seconds are over."""

    def finish(self) -> Stats:
        """Write all remaining events after the end of the program, and return the counts."""


class RingDrain:
    """The `ring` handler: per-thread buffers in the session's segment.

    Args:
        collector: Drains the segment.
        session: The session directory.
    """

    def __init__(self, collector: Collector, session: SessionDir) -> None:
        self._collector = collector
        self._session = session
        self._pause = _SLEEP_MIN * 2

    def arguments(self) -> list[str]:
        """Return the arguments that lead to the session directory."""
        return self._session.arguments

    def step(self, *, flush: bool) -> Stats:
        """Drain once, and set the next sleep by the amount of freed buffers."""
        stats = self._collector.drain(flush=flush)
        if stats.freed_chunks > stats.chunks * _MUCH:
            self._pause = max(_SLEEP_MIN, self._pause / 2)
        elif stats.freed_chunks < stats.chunks * _LITTLE:
            self._pause = min(_SLEEP_MAX, self._pause * 2)
        return stats

    def sleep(self, limit: float) -> None:
        """Sleep; a writer without room wakes the recorder."""
        self._collector.wait(min(limit, self._pause))

    def finish(self) -> Stats:
        """Close the segment and drain the rest."""
        self._collector.close()
        return self._collector.finish()


class NoDrain:
    """A handler that writes its events itself.

    Args:
        choice: The handler.
    """

    def __init__(self, choice: HandlerChoice) -> None:
        self._choice = choice

    def arguments(self) -> list[str]:
        """Return the user's arguments."""
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
