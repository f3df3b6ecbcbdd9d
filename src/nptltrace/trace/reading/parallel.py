"""Reads a window of a traceset on all processors, in slices of time that are merged separately."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack
from threading import Event
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace.trace.reading.cancellation import ensure_wanted
from nptltrace.trace.reading.columns import ArrayBuffer, Converter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

    from nptltrace.trace.traceset import Traceset

__all__ = ["event_batches"]

_BATCH = 65536

_SLICE = 1 << 17  # events of a slice, if events are spread evenly
_SLICE_PER_STREAM = 2048  # least events per stream: to seek to a slice costs time for each stream
_SLOT = 16  # bytes
# Tables of one turn of a slice. They bound the memory if events are not spread evenly.
_TURN = 8


class _Slice:
    """A range of keys of events, read in turns."""

    def __init__(self, source: Traceset, start: int, end: int | None, stop: Event) -> None:
        self.cursor = libpttread.Cursor(source.reader)
        self._start, self._end, self._stop = start, end, stop
        self._begun = False
        self.done = False

    def turn(self, converter: Converter, fields: Sequence[str], size: int) -> list[pa.Table]:
        """Return the next tables, and set `done` with the last tables."""
        if not self._begun:
            self._begun = True
            self.cursor.seek_key(self._start)
            if self._end is not None:
                self.cursor.limit_key(self._end)
        tables: list[pa.Table] = []
        while len(tables) < _TURN and not self._stop.is_set():
            buffer = ArrayBuffer(size)
            if not self.cursor.read(buffer):
                self.done = True
                break
            tables.append(converter.table(buffer, fields))
        self.cursor.reader.ensure_whole()
        return tables


def _slices(source: Traceset, start: int | None, end: int | None) -> list[tuple[int, int | None]]:
    """Return (first key, end) of each slice. The last slice is open if the window is."""
    keys = source.reader.key_range()
    if keys is None:
        return []
    first = keys[0] if start is None else max(start, keys[0])
    last = keys[1] if end is None else min(end, keys[1])
    if first > last:
        return []
    size = sum(source.reader.trace_info(trace.number).bytes for trace in source.traces)
    events = max(_SLICE, _SLICE_PER_STREAM * source.reader.stream_count())
    step = max((last - first) // (size // (_SLOT * events) + 1) + 1, 1)
    edges = list(range(first, last + 1, step))
    return list(zip(edges, [*edges[1:], end], strict=True))


def event_batches(
    traceset: Traceset,
    start_ns: int | None = None,
    end_ns: int | None = None,
    *,
    fields: Sequence[str] = (),
    batch_size: int = _BATCH,
) -> Iterator[pa.Table]:
    """Yield the events of a window in order, as tables.

    Args:
        traceset: The opened traces.
        start_ns: Begin at this time; None for the start.
        end_ns: End before this time; None for the end.
        fields: The fields of events to add as columns.
        batch_size: The most events of a table.

    Raises:
        CancelledError: Another thread has cancelled the work.
    """
    start, end = (
        None if t_ns is None else traceset.reader.key_of_time(t_ns) for t_ns in (start_ns, end_ns)
    )
    converter = Converter(traceset)
    workers = max(len(os.sched_getaffinity(0)), 1)
    waiting = deque(_slices(traceset, start, end))
    ahead: deque[tuple[_Slice, Future[list[pa.Table]]]] = deque()
    stop = Event()
    if len(waiting) == 1:  # a small window: threads would cost more than they save
        part = _Slice(traceset, *waiting.pop(), stop)
        while not part.done:
            ensure_wanted()
            yield from part.turn(converter, fields, batch_size)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool, ExitStack() as stack:
        stack.callback(stop.set)  # if the caller stops early, the pool stops soon too
        while waiting or ahead:
            ensure_wanted()
            while waiting and len(ahead) < workers + 1:
                part = _Slice(traceset, *waiting.popleft(), stop)
                ahead.append((part, pool.submit(part.turn, converter, fields, batch_size)))
            part, future = ahead.popleft()
            tables = future.result()
            if not part.done:
                # Read the next turn of the slice while the caller uses these tables.
                again = pool.submit(part.turn, converter, fields, batch_size)
                ahead.appendleft((part, again))
            yield from tables
