"""When events are recorded: from a delay after the start of the program, for a while."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from nptltrace.errors import PttError
from nptltrace.recording.control import control_pages
from nptltrace.recording.settings.levels import Levels

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.recording.settings.options import RecordOptions

__all__ = ["Schedule"]

_OFF = Levels(0)
_LOOK_NS = 20_000_000  # the least time between two looks for new processes


class Schedule:
    """Sets the levels of all processes of a session when the time has come.

    Args:
        options: With the delay, the duration and the levels meanwhile.
        session: The directory of the session.
    """

    def __init__(self, options: RecordOptions, session: Path) -> None:
        self._levels, self._session = options.levels, session
        self._begin = time.monotonic_ns() + options.delay_ns
        self._end = None if options.duration_ns is None else self._begin + options.duration_ns
        # Processes are born with the levels in their environment.
        self._now = self._born_with = _OFF if options.delay_ns else options.levels
        # Control pages that have the levels of now, by name and inode: exec() makes another one.
        self._set: set[tuple[str, int]] = set()
        self._looked = 0

    def step(self) -> None:
        """Set the levels of processes that do not have the levels of now."""
        now = time.monotonic_ns()
        off = now < self._begin or (self._end is not None and now >= self._end)
        levels = _OFF if off else self._levels
        if levels is not self._now:
            self._now = levels
            self._set.clear()
        elif levels is self._born_with or now < self._looked + _LOOK_NS:
            return
        self._looked = now
        for key, page in control_pages(self._session):
            if key not in self._set:
                with suppress(PttError):  # the process has not finished the page, or has ended
                    page.write(levels)
                    self._set.add(key)
