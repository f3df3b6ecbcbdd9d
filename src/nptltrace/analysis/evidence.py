"""Call stacks of the events that prove findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread
from nptltrace.trace.places.stack import stack_sites
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.symbols.frames import stack_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.findings.facts import Event
    from nptltrace.trace.source import Source
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["Evidence"]

_AT_ONCE = 256
# More findings than anybody reads: the rest have their call sites alone.
_MOST = 2000


class Evidence:
    """Finds the stacks of events in a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
    """

    def __init__(self, source: Source, symbols: Symbols | None) -> None:
        self._source, self._symbols = source, symbols
        self._cursor = libpttread.Cursor(source.reader)
        self._buffer = ArrayBuffer(_AT_ONCE)
        self._left = _MOST

    def of(self, process: int, events: Iterable[Event]) -> list[Event]:
        """Return events with their stacks.

        Args:
            process: Number of the process that they are of.
            events: The events.
        """
        return [replace(event, stack=tuple(self._stack(process, event))) for event in events]

    def _stack(self, process: int, event: Event) -> list[str]:
        alone = [event.site] if event.site else []
        stacks = self._source.processes()[process].stacks
        if self._symbols is None or not stacks or self._left <= 0:
            return alone
        self._left -= 1
        number, site = self._recorded(process, event)
        if not number:
            return alone
        return stack_texts(self._symbols, process, stack_sites(stacks, number), site) or alone

    def _recorded(self, process: int, event: Event) -> tuple[int, int]:
        """Return number of the stack, and call site, of the event of that time and thread."""
        reader, threads = self._source.reader, self._source.threads()
        self._cursor.no_limit()
        self._cursor.seek_key(reader.key_of_time(event.ts_ns))
        self._cursor.limit_key(reader.key_of_time(event.ts_ns + 1))
        while self._cursor.read(self._buffer):
            for at in np.flatnonzero(self._buffer.column("stack")).tolist():
                thread = int(self._buffer.column("thread")[at])
                if threads[thread] == (process, event.tid):
                    stack, site = (int(self._buffer.column(n)[at]) for n in ("stack", "site"))
                    return stack, site
        return 0, 0
