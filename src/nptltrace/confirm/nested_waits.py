"""Waits of threads that hold a lock, which the thread needs that ends the wait.

In a run that went well, that thread took and released the lock first. In another order, the waiter
has the lock already: a deadlock through the end of a thread, a condition, a semaphore or a barrier.
The same happens to a reader that reads again, if a writer comes to wait in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nptltrace.confirm.lock_events import ids, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.confirm.lock_events import LockEvents
    from nptltrace.confirm.steps import Steps

__all__ = ["NESTED_EVENTS", "NestedWait", "nested_waits"]

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
# The ids of the events that the search needs.
NESTED_EVENTS = frozenset((_BEGIN, _JOIN, *_TAKEN, *_FREED)).union(
    *(part for pair in _ENDED_BY for part in pair)
)


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


def nested_waits(events: LockEvents, steps: Steps) -> dict[NestedWait, int]:
    """Return the waits with locks of a traceset, each with the number of the waits that show it.

    Args:
        events: The events `NESTED_EVENTS` of a traceset, and maybe others.
        steps: Ends the search of a trace with too many waits.
    """
    taken = events.places(_TAKEN)
    ends = events.ends(taken, events.places(_FREED))
    found: dict[NestedWait, int] = {}
    for waits, wakes in _ENDED_BY:
        holds = _Holds(events, taken, ends, events.places(waits))
        last = _last_of(events, events.places(wakes), holds)
        for (thread, woken), place in last.items():
            for key, count in holds.needed(_Waker(thread, woken, place), steps):
                found[key] = found.get(key, 0) + count
    holds = _Holds(events, taken, ends, events.places([_JOIN]))
    begins = events.places([_BEGIN])
    for place in begins[np.isin(events.item[begins], holds.waited)].tolist():
        joined = _Waker(int(events.thread[place]), int(events.item[place]), len(events.event))
        for key, count in holds.needed(joined, steps):
            found[key] = found.get(key, 0) + count
    for key, count in _readers(events, taken, ends, steps):
        found[key] = found.get(key, 0) + count
    return found


class _Holds:
    """The different waits with locks, and who takes these locks.

    Args:
        events: The events.
        taken: Places of acquisitions.
        ends: Places of their ends.
        waits: Places of waits.

    Attributes:
        waited: Addresses of the objects that the threads wait for.
    """

    def __init__(
        self, events: LockEvents, taken: NDArray[np.intp], ends: NDArray[np.intp],
        waits: NDArray[np.intp],
    ) -> None:  # fmt: skip
        self._owners = events.process_of
        self._by_waited: dict[tuple[int, int], list[tuple[_Hold, int]]] = {}
        locks = set()
        for hold, count in _holds(events, taken, ends, waits):
            self._by_waited.setdefault((hold.process, hold.waited), []).append((hold, count))
            locks.add(hold.lock)
        self.waited = [waited for _, waited in self._by_waited]
        # By thread and lock: the call sites, whether it reads, and the first such acquisition.
        self._takes: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        own = taken[np.isin(events.item[taken], list(locks))]
        rows = rows_of(
            events.thread[own], events.item[own], events.site[own],
            np.isin(events.event[own], _READS),
        )  # fmt: skip
        kinds, first = np.unique(rows, axis=0, return_index=True)
        for row, place in zip(kinds.tolist(), own[first].tolist(), strict=True):
            thread, lock, site, reads = row
            self._takes.setdefault((thread, lock), []).append((site, reads, place))

    def needed(self, waker: _Waker, steps: Steps) -> Iterator[tuple[NestedWait, int]]:
        """Yield the waits with a lock that a thread takes before it ends them, with their numbers.

        Args:
            waker: The thread that ends waits.
            steps: Ends the search.
        """
        thread, woken, end = waker
        process = self._owners(thread)
        for hold, count in steps.over(self._by_waited.get((process, woken), ())):
            for site, reads, place in steps.over(self._takes.get((thread, hold.lock), ())):
                if place < end and hold.thread != thread and not (hold.reads and reads):
                    same = hold.lock_site == site
                    yield NestedWait(process, 0, site, hold.wait_site, same), count


def _last_of(
    events: LockEvents, wakes: NDArray[np.intp], holds: _Holds
) -> dict[tuple[int, int], int]:
    """Return the last event of each thread that ends waits of an object."""
    wakes = wakes[np.isin(events.item[wakes], holds.waited)]
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
    events: LockEvents, taken: NDArray[np.intp], ends: NDArray[np.intp], steps: Steps
) -> Iterator[tuple[NestedWait, int]]:
    """Yield the readers that read again, with the writers that may come in between."""
    held, again = events.nested(taken, ends, events.places(_READS))
    same = (events.item[held] == events.item[again]) & np.isin(events.event[held], _READS)
    held, again = held[same], again[same]
    writes = events.places(_WRITES)
    rows = rows_of(*(c[writes] for c in (events.process, events.item, events.site, events.thread)))
    # By process and lock: the call sites and threads.
    writers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (process, lock, site, writer), _ in _counted(rows):
        writers.setdefault((process, lock), []).append((site, writer))
    rows = rows_of(
        events.process[again], events.item[again], events.site[held], events.site[again],
        events.thread[again],
    )  # fmt: skip
    for (process, lock, held_site, site, reader), count in _counted(rows):
        for where, writer in steps.over(writers.get((process, lock), ())):
            if reader != writer:
                yield NestedWait(process, held_site, site, where, same_place=False), count


def _counted(rows: NDArray[np.uint64]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield the different rows, each with its number."""
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    yield from zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True)
