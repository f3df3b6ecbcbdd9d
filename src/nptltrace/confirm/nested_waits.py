"""Waits of threads that hold a lock, which the thread needs that ends the wait.

In a run that went well, that thread took and released the lock first. In another order, the waiter
has the lock already: a deadlock through the end of a thread, a condition, a semaphore or a barrier.
The same happens to a reader that reads again, if a writer comes to wait in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nptltrace.confirm.lock_events import LockEvents, ids, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["NestedWait", "nested_waits"]

_READS, _WRITES = ids("RWLOCK_TAKEN_READ"), ids("RWLOCK_TAKEN_WRITE")
_TAKEN = [*ids("MUTEX_TAKEN"), *_READS, *_WRITES]
_FREED = ids("MUTEX_FREE", "MUTEX_FREE_AWAITED", "RWLOCK_FREE")
(_COND_WAIT,), (_BEGIN,), (_JOIN,) = ids("COND_WAIT_IN"), ids("THREAD_BEGIN"), ids("THREAD_JOIN_IN")
# The waits, each with the events that end it.
_ENDED_BY = (
    ([_COND_WAIT], ids("COND_SIGNAL", "COND_BROADCAST")),
    (ids("SEM_TAKEN"), ids("SEM_POST")),
    (ids("BARRIER_WAIT_IN"), ids("BARRIER_WAIT_IN")),
)
_WANTED = {_BEGIN, _JOIN, *_TAKEN, *_FREED}.union(*(part for pair in _ENDED_BY for part in pair))


class NestedWait(NamedTuple):
    """A wait with a lock, and a thread that took the lock before it ended such a wait.

    Attributes:
        process: Number of the process.
        held_site: Where the reader has the lock already, for a reader that reads again; else 0.
        lock_site: Where the other thread, or the reader, asks for the lock.
        wait_site: Where the waiter waits, with the lock; for a reader, where a writer asks.
        same_place: Whether the waiter took its lock at `lock_site`, too.
    """

    process: int
    held_site: int
    lock_site: int
    wait_site: int
    same_place: bool


class _Hold(NamedTuple):
    """A wait with a lock: all numbers, as the columns of the events have them."""

    process: int
    thread: int
    waited: int
    wait_site: int
    lock: int
    lock_site: int
    reads: int


class _Waker(NamedTuple):
    """A thread that ends waits.

    Attributes:
        thread: Number of the thread.
        woken: Address of the object that others wait for.
        end: Place of the event that ends a wait last.
    """

    thread: int
    woken: int
    end: int


def nested_waits(source: Traceset) -> dict[NestedWait, int]:
    """Return the waits with locks of a traceset, each with the number of the waits that show it.

    Args:
        source: The opened traces.
    """
    events = LockEvents(source, _WANTED)
    taken = events.places(_TAKEN)
    ends = events.ends(taken, events.places(_FREED))
    found: dict[NestedWait, int] = {}
    for waits, wakes in _ENDED_BY:
        holds = list(_holds(events, taken, ends, events.places(waits)))
        last = _last_of(events, events.places(wakes), {hold.waited for hold, _ in holds})
        for (thread, woken), place in last.items():
            for key, count in _needed(events, taken, holds, _Waker(thread, woken, place)):
                found[key] = found.get(key, 0) + count
    holds = list(_holds(events, taken, ends, events.places([_JOIN])))
    begins = events.places([_BEGIN])
    for place in begins[np.isin(events.item[begins], [hold.waited for hold, _ in holds])].tolist():
        joined = _Waker(int(events.thread[place]), int(events.item[place]), len(events.event))
        for key, count in _needed(events, taken, holds, joined):
            found[key] = found.get(key, 0) + count
    for key, count in _readers(events, taken, ends):
        found[key] = found.get(key, 0) + count
    return found


def _needed(
    events: LockEvents, taken: NDArray[np.intp], holds: list[tuple[_Hold, int]], waker: _Waker
) -> Iterator[tuple[NestedWait, int]]:
    """Yield the waits with a lock that a thread takes before it ends them, each with its number.

    Args:
        events: The events.
        taken: Places of acquisitions.
        holds: The waits with locks.
        waker: The thread that ends waits.
    """
    thread, woken, end = waker
    first, last = np.searchsorted(events.thread, [thread, thread + 1])
    own = taken[np.searchsorted(taken, first) : np.searchsorted(taken, min(int(last), end))]
    own = own[np.isin(events.item[own], [hold.lock for hold, _ in holds if hold.waited == woken])]
    rows = rows_of(
        events.process[own], events.item[own], events.site[own], np.isin(events.event[own], _READS)
    )
    for (process, lock, site, reads), _ in _counted(rows):
        for hold, count in holds:
            if (hold.process, hold.waited, hold.lock) != (process, woken, lock):
                continue
            if hold.thread != thread and not (hold.reads and reads):
                same = hold.lock_site == site
                yield NestedWait(process, 0, site, hold.wait_site, same), count


def _last_of(
    events: LockEvents, wakes: NDArray[np.intp], objects: set[int]
) -> dict[tuple[int, int], int]:
    """Return the last event of each thread that ends waits of an object."""
    wakes = wakes[np.isin(events.item[wakes], list(objects))]
    pairs = zip(events.thread[wakes].tolist(), events.item[wakes].tolist(), strict=True)
    return dict(zip(pairs, wakes.tolist(), strict=True))


def _holds(
    events: LockEvents, taken: NDArray[np.intp], ends: NDArray[np.intp], waits: NDArray[np.intp]
) -> Iterator[tuple[_Hold, int]]:
    """Yield the different waits with locks, each with its number."""
    held, during = events.nested(taken, ends, waits)
    # A condition wait begins with the release of its mutex.
    last = len(events.event) - 1
    following = np.minimum(during + 1, last)
    released = (events.event[during] == _COND_WAIT) & np.isin(events.event[following], _FREED)
    kept = ~(released & (events.item[following] == events.item[held]))
    held, during = held[kept], during[kept]
    rows = rows_of(
        events.process[during], events.thread[during], events.item[during], events.site[during],
        events.item[held], events.site[held], np.isin(events.event[held], _READS),
    )  # fmt: skip
    for row, count in _counted(rows):
        yield _Hold(*row), count


def _readers(
    events: LockEvents, taken: NDArray[np.intp], ends: NDArray[np.intp]
) -> Iterator[tuple[NestedWait, int]]:
    """Yield the readers that read again, with the writers that may come in between."""
    held, again = events.nested(taken, ends, events.places(_READS))
    same = (events.item[held] == events.item[again]) & np.isin(events.event[held], _READS)
    held, again = held[same], again[same]
    writes = events.places(_WRITES)
    rows = rows_of(*(c[writes] for c in (events.process, events.item, events.site, events.thread)))
    writers = [row for row, _ in _counted(rows)]
    rows = rows_of(
        events.process[again], events.item[again], events.site[held], events.site[again],
        events.thread[again],
    )  # fmt: skip
    for (process, lock, held_site, site, reader), count in _counted(rows):
        for in_process, written, where, writer in writers:
            if (process, lock) == (in_process, written) and reader != writer:
                yield NestedWait(process, held_site, site, where, same_place=False), count


def _counted(rows: NDArray[np.uint64]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield the different rows, each with its number."""
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    yield from zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True)
