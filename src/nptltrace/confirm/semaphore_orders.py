"""Cycles of lock orders with semaphores that are used as locks, such as the locks of Python.

`ptt check` does not warn of them: a semaphore may be more than a lock. A run shows what it is.
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

__all__ = ["SEMAPHORE_EVENTS", "Order", "semaphore_cycles"]

_UNITS, _POSTS = ids("SEM_TAKEN"), ids("SEM_POST")
_TAKEN = [*_UNITS, *ids("MUTEX_TAKEN", "RWLOCK_TAKEN_READ", "RWLOCK_TAKEN_WRITE")]
_FREED = [*_POSTS, *ids("MUTEX_FREE", "MUTEX_FREE_AWAITED", "RWLOCK_FREE")]
# The ids of the events that the search needs.
SEMAPHORE_EVENTS = frozenset((*_TAKEN, *_FREED))
_LONGEST = 4


class Order(NamedTuple):
    """A thread asked for a lock while it held another lock.

    Attributes:
        process: Number of the process.
        thread: Number of the thread.
        held: Address of the lock that it held.
        held_site: Number of the call site where it took that lock.
        asked: Address of the lock that it asked for.
        asked_site: Number of the call site.
        others: Addresses of all locks that it held.
    """

    process: int
    thread: int
    held: int
    held_site: int
    asked: int
    asked_site: int
    others: frozenset[int]


def semaphore_cycles(events: LockEvents, steps: Steps) -> Iterator[tuple[tuple[Order, ...], bool]]:
    """Yield the cycles of orders of different threads, with at least one semaphore.

    Args:
        events: The events `SEMAPHORE_EVENTS` of a traceset, and maybe others.
        steps: Ends the search of a trace with too many orders.

    Yields:
        The orders; each begins at the lock that the order before it asks for. And whether the
        threads held another lock in common, so that the cycle cannot close.
    """
    ahead: dict[tuple[int, int], list[Order]] = {}
    for order in _orders(events):
        ahead.setdefault((order.process, order.held), []).append(order)
    semaphores = set(np.unique(events.item[events.places(_UNITS)]).tolist())
    for start in [order for orders in ahead.values() for order in orders]:
        ways: list[tuple[Order, ...]] = [(start,)]
        while ways:
            way = ways.pop()
            for order in steps.over(ahead.get((start.process, way[-1].asked), ())):
                if any(order.thread == other.thread or order.held == other.held for other in way):
                    continue
                longer = (*way, order)
                # Each cycle begins at its smallest address.
                if order.held < start.held or len(longer) > _LONGEST:
                    continue
                if order.asked != start.held:
                    ways.append(longer)
                elif any(each.held in semaphores for each in longer):
                    yield longer, _has_gate(longer)


def _has_gate(cycle: tuple[Order, ...]) -> bool:
    """Return whether two threads of a cycle hold a lock in common."""
    held: set[int] = set()
    for order in cycle:
        if held & order.others:
            return True
        held |= order.others
    return False


def _orders(events: LockEvents) -> Iterator[Order]:
    """Yield the different orders of a traceset, without semaphores that are no locks."""
    taken, posts = events.places(_TAKEN), events.places(_POSTS)
    ends = events.ends(taken, events.places(_FREED))
    # Who posts a semaphore that it has not taken uses it for something else.
    opened = events.before(taken, posts, events.item[posts])
    passed = np.unique(events.item[posts[opened < 0]])
    taken, ends = (part[~np.isin(events.item[taken], passed)] for part in (taken, ends))
    held, inner = events.nested(taken, ends, taken)
    # The set of locks that a thread holds, as a sum.
    rows = rows_of(
        events.process[inner], events.thread[inner], events.item[held], events.site[held],
        events.item[inner], events.site[inner], _sums(events, held, inner),
    )  # fmt: skip
    _, first = np.unique(rows, axis=0, return_index=True)
    begins, ends = (np.searchsorted(inner, inner[first], side) for side in ("left", "right"))
    for at, begin, end in zip(first.tolist(), begins.tolist(), ends.tolist(), strict=True):
        process, thread, lock, held_site, asked, asked_site = (int(v) for v in rows[at, :6])
        others = frozenset(events.item[held[begin:end]].tolist())
        if lock != asked:
            yield Order(process, thread, lock, held_site, asked, asked_site, others)


def _sums(events: LockEvents, held: NDArray[Any], inner: NDArray[Any]) -> NDArray[np.uint64]:
    """Return for each pair a number that is the same for the same locks of its thread."""
    sums = np.zeros(len(events.event) + 1, np.uint64)
    mixed = events.item[held].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    np.add.at(sums, inner, mixed ^ mixed >> np.uint64(29))
    result: NDArray[np.uint64] = sums[inner]
    return result
