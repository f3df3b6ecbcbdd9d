"""Reads a stretch of a traceset on all processors: slices of time, each merged by itself."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
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

_SLICE = 1 << 17  # events, if they were spread evenly
_SLICE_PER_STREAM = 2048  # going to a slice costs something for each stream
_SLOT = 16
# What one turn of a slice may hold in memory, where events are not spread evenly.
_TURN = 8


class _Slice:
    """A part of the order of events, read in turns."""

    def __init__(self, source: Traceset, start: int, end: int | None, over: Event) -> None:
        self.cursor = libpttread.Cursor(source.reader)
        self._start, self._end, self._over = start, end, over
        self._begun = False
        self.done = False

    def turn(self, converter: Converter, fields: Sequence[str], size: int) -> list[pa.Table]:
        """Return the next tables; `done` is set with the last ones."""
        if not self._begun:
            self._begun = True
            self.cursor.seek_key(self._start)
            if self._end is not None:
                self.cursor.limit_key(self._end)
        tables: list[pa.Table] = []
        while len(tables) < _TURN and not self._over.is_set():
            buffer = ArrayBuffer(size)
            if not self.cursor.read(buffer):
                self.done = True
                break
            tables.append(converter.table(buffer, fields))
        self.cursor.reader.ensure_whole()
        return tables


def _slices(source: Traceset, start: int | None, end: int | None) -> list[tuple[int, int | None]]:
    """Return (first key, key behind) of the slices, the last one open where the stretch is."""
    found = source.reader.key_range()
    if found is None:
        return []
    first = found[0] if start is None else max(start, found[0])
    last = found[1] if end is None else min(end, found[1])
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
        start_ns: Begin here; None for the start.
        end_ns: End before this; None for the end.
        fields: Which of the events' own fields to add as columns.
        batch_size: Events a table, at most.
    """
    start, end = (
        None if t_ns is None else traceset.reader.key_of_time(t_ns) for t_ns in (start_ns, end_ns)
    )
    converter = Converter(traceset)
    workers = max(len(os.sched_getaffinity(0)), 1)
    waiting = deque(_slices(traceset, start, end))
    ahead: deque[tuple[_Slice, Future[list[pa.Table]]]] = deque()
    over = Event()
    with ThreadPoolExecutor(workers) as pool, ExitStack() as stack:
        stack.callback(over.set)  # nobody waits for what is read in vain
        while waiting or ahead:
            ensure_wanted()
            while waiting and len(ahead) < workers + 1:
                part = _Slice(traceset, *waiting.popleft(), over)
                ahead.append((part, pool.submit(part.turn, converter, fields, batch_size)))
            part, future = ahead.popleft()
            tables = future.result()
            if not part.done:
                # The rest of it is read while what there is is used.
                again = pool.submit(part.turn, converter, fields, batch_size)
                ahead.appendleft((part, again))
            yield from tables
