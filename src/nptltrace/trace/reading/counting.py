"""Counts a part of the events: those in a window that a filter lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libpttread
from nptltrace.catalog import BY_ID, DOMAINS
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["count_part"]

_BATCH = 1 << 16
_IDS = 1024


def count_part(
    source: Traceset, chosen: libpttread.Filter, begin_ns: int | None, end_ns: int | None
) -> tuple[list[libpttread.ThreadCount], list[libpttread.ObjectCount], list[libpttread.ThreadSpan]]:
    """Count by thread and type, by object, and each thread's span.

    Args:
        source: The opened traces.
        chosen: Lets the events through.
        begin_ns: Those from this time on; None for the start.
        end_ns: Those before this time; None for the end.
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
        own = ~_IS_SWITCH[number]
        np.minimum.at(first, thread[own], ts[own])
        np.maximum.at(last, thread[own], ts[own])
        _add(objects, process[thread] << np.uint64(8) | _DOMAIN[number], buffer.column("object"))
    reader.ensure_whole()
    events = threads.sum(axis=1)
    return (
        [
            libpttread.ThreadCount(int(thread), int(number), int(threads[thread, number]))
            for thread, number in zip(*threads.nonzero(), strict=True)
        ],
        [
            libpttread.ObjectCount(owner, domain, address, count)
            for (owner, domain, address), count in objects.items()
        ],
        [
            libpttread.ThreadSpan(int(a), int(b), int(n))
            for a, b, n in zip(first, last, events, strict=True)
        ],
    )


# Context switches belong to a thread that lives; a thread begins and ends with events of its own.
_SWITCHES = frozenset({"SCHED_IN", "SCHED_OUT", "SCHED_PREEMPTED", "SCHED_LOST"})
_IS_SWITCH = np.zeros(_IDS, bool)
_DOMAIN = np.zeros(_IDS, np.uint64)
for _number, _event in BY_ID.items():
    _DOMAIN[_number] = DOMAINS[_event.domain]
    _IS_SWITCH[_number] = _event.name in _SWITCHES


def _add(
    objects: dict[tuple[int, int, int], int], owner: NDArray[np.uint64], address: NDArray[Any]
) -> None:
    """Add the events of a batch by object."""
    pairs, counts = np.unique(np.stack([owner, address]), axis=1, return_counts=True)
    for place, at, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        key = (place >> 8, place & 0xFF, at)
        objects[key] = objects.get(key, 0) + count
