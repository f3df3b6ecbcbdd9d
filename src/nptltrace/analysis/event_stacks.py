"""Call stacks of the events that prove findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread
from nptltrace._dataclasses import replace
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.symbols.frames import stack_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.findings.facts import Event
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Evidence"]

_AT_ONCE = 256
# Nobody reads more findings. Later events have their call sites only.
_MOST = 2000


class Evidence:
    """Finds the stacks of events in a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
    """

    def __init__(self, source: Traceset, symbols: Symbols | None) -> None:
        self._source, self._symbols = source, symbols
        self._cursor = libpttread.Cursor(source.reader)
        self._buffer = ArrayBuffer(_AT_ONCE)
        self._left = _MOST

    def of(self, process: int, events: Iterable[Event]) -> list[Event]:
        """Return events with their stacks.

        Args:
            process: Number of the process of the finding; other processes may have the same pid.
            events: The events, also events of other processes that share the object.
        """
        return [replace(event, stack=tuple(self.stack(process, event))) for event in events]

    def stack(self, process: int, event: Event, *, whole: bool = False) -> list[str]:
        """Return the stack of an event, or only its call site if no stack is known.

        Args:
            process: Number of the process of the finding.
            event: The event.
            whole: Whether to add the frames of wrappers inside the call site.
        """
        alone = [event.site] if event.site else []
        processes = self._source.processes
        images = {process}
        if processes[process].pid != event.pid:
            images = {number for number, image in enumerate(processes) if image.pid == event.pid}
        if self._symbols is None or self._left <= 0 or not any(processes[n].stacks for n in images):
            return alone
        self._left -= 1
        number, site, image = self._recorded(images, event)
        if not number:
            return alone
        sites = stack_sites(processes[image].stacks, number)
        return stack_texts(self._symbols, image, sites, site, whole=whole) or alone

    def _recorded(self, images: set[int], event: Event) -> tuple[int, int, int]:
        """Return stack number, call site and process of an event; zeros if it has no stack.

        Args:
            images: Numbers of the processes that may have the event.
            event: The event.
        """
        reader, threads = self._source.reader, self._source.thread_ids
        self._cursor.no_limit()
        self._cursor.seek_key(reader.key_of_time(event.ts_ns))
        self._cursor.limit_key(reader.key_of_time(event.ts_ns + 1))
        while self._cursor.read(self._buffer):
            for at in np.flatnonzero(self._buffer.column("stack")).tolist():
                thread = int(self._buffer.column("thread")[at])
                process, tid = threads[thread]
                if process in images and tid == event.tid:
                    stack, site = (int(self._buffer.column(n)[at]) for n in ("stack", "site"))
                    return stack, site, process
        return 0, 0, 0
