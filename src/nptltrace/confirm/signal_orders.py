"""Condition waits and the signals that ended them: what happens if the signal comes first?

A waiter that tests its condition under the mutex does not wait then. Other waiters wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nptltrace.confirm.lock_events import ids, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.confirm.lock_events import LockEvents
    from nptltrace.confirm.steps import Steps

__all__ = ["SIGNAL_EVENTS", "SignalOrder", "signal_orders"]

(_WAIT,), _FREED = ids("COND_WAIT_IN"), ids("MUTEX_FREE", "MUTEX_FREE_AWAITED")
_SIGNALS, _TAKEN = ids("COND_SIGNAL", "COND_BROADCAST"), ids("MUTEX_TAKEN")
# The ids of the events that the search needs.
SIGNAL_EVENTS = frozenset((_WAIT, *_FREED, *_SIGNALS, *_TAKEN))


class SignalOrder(NamedTuple):
    """A wait without time limit and a signal of its condition, by numbers of call sites.

    Attributes:
        process: Number of the process.
        lock_site: Where the waiter took the mutex that the wait releases.
        wait_site: Where it waits.
        signal_site: Where another thread signals the condition.
        waits: How many such waits there were.
    """

    process: int
    lock_site: int
    wait_site: int
    signal_site: int
    waits: int


def signal_orders(events: LockEvents, steps: Steps) -> list[SignalOrder]:
    """Return the waits of a traceset, each with the signals of its condition, the most often first.

    Args:
        events: The events `SIGNAL_EVENTS` of a traceset, and maybe others.
        steps: Ends the search of a trace with too many waits.
    """
    waits, locks = _waits(events)
    # A wait that woke up took the mutex again: no thread comes late to that.
    came = events.site[locks] != events.site[waits]
    waits, locks = waits[came], locks[came]
    signals = events.places(_SIGNALS)
    # By process and condition: the call sites of signals, each with the threads.
    senders: dict[tuple[int, int], dict[int, set[int]]] = {}
    rows = rows_of(*(c[signals] for c in (events.process, events.item, events.site, events.thread)))
    for row in np.unique(rows, axis=0):
        process, condition, where, sender = (int(value) for value in row)
        senders.setdefault((process, condition), {}).setdefault(where, set()).add(sender)
    found: dict[tuple[int, int, int, int], int] = {}
    rows = rows_of(
        events.process[waits], events.item[waits], events.site[locks], events.site[waits],
        events.thread[waits],
    )  # fmt: skip
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    for row, count in zip(kinds, counts, strict=True):
        process, condition, lock_site, wait_site, waiter = (int(value) for value in row)
        for where, threads in steps.over(senders.get((process, condition), {}).items()):
            other = len(threads) > (waiter in threads)
            if other and lock_site and where:
                key = process, lock_site, wait_site, where
                found[key] = found.get(key, 0) + int(count)
    orders = [SignalOrder(*key, count) for key, count in found.items()]
    return sorted(orders, key=lambda order: -order.waits)


def _waits(events: LockEvents) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the waits, and of the acquisitions of the mutexes that they release.

    A wait is followed by the release of its mutex, in the same thread.
    """
    waits = np.flatnonzero(events.event[:-1] == _WAIT)
    same = events.thread[waits] == events.thread[waits + 1]
    waits = waits[same & np.isin(events.event[waits + 1], _FREED)]
    locks = events.before(events.places(_TAKEN), waits, events.item[waits + 1])
    return waits[locks >= 0], locks[locks >= 0]
