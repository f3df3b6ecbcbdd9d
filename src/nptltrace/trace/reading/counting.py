"""Counts the events of a window that pass a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread
from nptltrace.catalog import BY_ID, DOMAINS
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from nptltrace.trace.traceset import Traceset

__all__ = ["count_part"]

_BATCH = 1 << 16
_IDS = 1024


def count_part(
    source: Traceset, chosen: libpttread.Filter, begin_ns: int | None, end_ns: int | None
) -> tuple[list[libpttread.ThreadCount], list[libpttread.ObjectRow], list[libpttread.ThreadSpan]]:
    """Count events by thread and type, and by object, and find the span of each thread.

    Args:
        source: The opened traces.
        chosen: Count events that pass this filter.
        begin_ns: Count events from this time on; None for the start.
        end_ns: Count events before this time; None for the end.

    Returns:
        The counts by thread and type, the counts by object, and the spans by thread.
    """
    reader = source.reader
    threads = np.zeros((len(source.thread_ids), _IDS), np.int64)
    first = np.full(len(threads), 2**63 - 1, np.int64)
    last = np.full(len(threads), -(2**63), np.int64)
    process = np.array([owner for owner, _ in source.thread_ids], np.uint64)
    objects: dict[tuple[int, int, int], int] = {}
    cursor = libpttread.Cursor(reader)
    if begin_ns is not None:
        cursor.seek_key(reader.key_of_time(begin_ns))
    if end_ns is not None:
        cursor.limit_key(reader.key_of_time(end_ns))
    buffer = ArrayBuffer(_BATCH)
    while cursor.read(buffer):
        chosen.apply(reader, buffer)
        thread, number, ts = (buffer.column(name) for name in ("thread", "id", "ts"))
        np.add.at(threads, (thread, number), 1)
        own_event = ~_IS_SWITCH[number]
        np.minimum.at(first, thread[own_event], ts[own_event])
        np.maximum.at(last, thread[own_event], ts[own_event])
        kinds = process[thread] << np.uint64(8) | _DOMAIN[number]
        pairs, counts = np.unique(
            np.stack([kinds, buffer.column("object")]), axis=1, return_counts=True
        )
        for kind, address, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            key = (kind >> 8, kind & 0xFF, address)
            objects[key] = objects.get(key, 0) + count
    reader.ensure_whole()
    events = threads.sum(axis=1)
    return (
        [
            libpttread.ThreadCount(int(thread), int(number), int(threads[thread, number]))
            for thread, number in zip(*threads.nonzero(), strict=True)
        ],
        [(*key, count) for key, count in objects.items()],
        [
            libpttread.ThreadSpan(int(a), int(b), int(n))
            for a, b, n in zip(first, last, events, strict=True)
        ],
    )


# The kernel reports switches of any living thread. The span of a thread is from its own events.
_SWITCHES = frozenset({"SCHED_IN", "SCHED_OUT", "SCHED_PREEMPTED", "SCHED_LOST"})
_IS_SWITCH = np.zeros(_IDS, bool)
_DOMAIN = np.zeros(_IDS, np.uint64)
for _number, _event in BY_ID.items():
    _DOMAIN[_number] = DOMAINS[_event.domain]
    _IS_SWITCH[_number] = _event.name in _SWITCHES
