"""Condition waits and the signals that ended them: what happens if the signal comes first?

A waiter that tests its condition under the mutex does not wait then. Other waiters wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nptltrace._binding.libpttread import Cursor
from nptltrace.catalog import EVENTS
from nptltrace.trace.reading.prefetch import whole_batches

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["SignalOrder", "signal_orders"]


def _ids(*names: str) -> list[int]:
    """Return the ids of events. Several events may have the same name."""
    return [event.id for event in EVENTS if event.name in names]


(_WAIT,), (_FREE,) = _ids("COND_WAIT_IN"), _ids("MUTEX_FREE")
_SIGNALS, _TAKEN = _ids("COND_SIGNAL", "COND_BROADCAST"), _ids("MUTEX_TAKEN")
_WANTED = [_WAIT, _FREE, *_SIGNALS, *_TAKEN]
_COLUMNS = ("thread", "id", "object", "site")


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


def signal_orders(source: Traceset) -> list[SignalOrder]:
    """Return the waits of a traceset, each with the signals of its condition, the most often first.

    Args:
        source: The opened traces.
    """
    thread, event, item, site = _events(source)
    owners = np.array([process for process, _ in source.reader.threads()] or [0])
    waits, locks = _waits(thread, event, item)
    # A wait that woke up took the mutex again: no thread comes late to that.
    came = site[locks] != site[waits]
    waits, locks = waits[came], locks[came]
    signals = np.flatnonzero(np.isin(event, _SIGNALS))
    # By process and condition: the call sites of signals, each with the threads.
    senders: dict[tuple[int, int], dict[int, set[int]]] = {}
    rows = _rows(owners[thread[signals]], item[signals], site[signals], thread[signals])
    for row in np.unique(rows, axis=0):
        process, condition, where, sender = (int(value) for value in row)
        senders.setdefault((process, condition), {}).setdefault(where, set()).add(sender)
    found: dict[tuple[int, int, int, int], int] = {}
    rows = _rows(owners[thread[waits]], item[waits], site[locks], site[waits], thread[waits])
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    for row, count in zip(kinds, counts, strict=True):
        process, condition, lock_site, wait_site, waiter = (int(value) for value in row)
        for where, threads in senders.get((process, condition), {}).items():
            if threads - {waiter} and lock_site and where:
                key = process, lock_site, wait_site, where
                found[key] = found.get(key, 0) + int(count)
    orders = [SignalOrder(*key, count) for key, count in found.items()]
    return sorted(orders, key=lambda order: -order.waits)


def _rows(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    return np.stack([column.astype(np.uint64) for column in columns], axis=1)


def _events(source: Traceset) -> list[NDArray[Any]]:
    """Return the events that matter, ordered by thread and then by time, with a column each."""
    parts: list[list[NDArray[Any]]] = [[] for _ in _COLUMNS]
    for buffer in whole_batches(source, Cursor(source.reader)):
        chosen = np.isin(buffer.column("id"), _WANTED)
        for part, name in zip(parts, _COLUMNS, strict=True):
            part.append(buffer.column(name)[chosen])
    whole = [np.concatenate(part) if part else np.empty(0, np.uint64) for part in parts]
    order = np.argsort(whole[0], kind="stable")
    return [column[order] for column in whole]


def _waits(
    thread: NDArray[Any], event: NDArray[Any], item: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the waits, and of the acquisitions of the mutexes that they release.

    A wait is followed by the release of its mutex, in the same thread.
    """
    waits = np.flatnonzero(event[:-1] == _WAIT)
    waits = waits[(thread[waits] == thread[waits + 1]) & (event[waits + 1] == _FREE)]
    taken = np.flatnonzero(np.isin(event, _TAKEN))
    if not len(waits) or not len(taken):
        return waits[:0], taken[:0]
    # The last acquisition by the same thread: in an order by thread and mutex, then by place.
    pairs = _rows(
        np.concatenate([thread[taken], thread[waits]]),
        np.concatenate([item[taken], item[waits + 1]]),
    )
    groups = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    keys = groups * len(event) + np.concatenate([taken, waits])
    known = np.sort(keys[: len(taken)])
    wanted = keys[len(taken) :]
    at = np.searchsorted(known, wanted) - 1
    found = (at >= 0) & (known[np.maximum(at, 0)] // len(event) == groups[len(taken) :])
    return waits[found], known[at[found]] % len(event)
