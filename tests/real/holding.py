"""Checks over all events of a trace that no two threads hold the same lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import nptltrace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["LockEvents", "lock_events", "violations"]

TAKEN = ("MUTEX_TAKEN", "SPIN_TAKEN", "RWLOCK_TAKEN_WRITE")
SHARED = "RWLOCK_TAKEN_READ"
FREE = ("MUTEX_FREE", "SPIN_FREE", "RWLOCK_FREE")
_FREE, _SHARED, _EXCLUSIVE = 0, 1, 2


class LockEvents:
    """The acquisitions and releases of all locks, in the order of the merged trace.

    Attributes:
        kind: 0 a release, 1 taken for reading, 2 taken.
        thread: The kernel's number of the thread.
        object: Address of the lock.
        names: The number of events of each name.
    """

    def __init__(
        self, kind: NDArray[Any], thread: NDArray[Any], locks: NDArray[Any], names: dict[str, int]
    ) -> None:
        self.kind = kind
        self.thread = thread
        self.object = locks
        self.names = names


def lock_events(trace: Path) -> LockEvents:
    """Read the events of a trace that take or release a lock; times must never go back."""
    kinds: list[NDArray[Any]] = []
    threads: list[NDArray[Any]] = []
    objects: list[NDArray[Any]] = []
    names: dict[str, int] = {}
    last = -1
    for batch in nptltrace.open(trace).batches():
        times = batch["ts_ns"].to_numpy()
        assert times[0] >= last
        assert np.all(times[1:] >= times[:-1])
        last = times[-1]
        event = batch["event"].combine_chunks()
        if isinstance(event, pa.ChunkedArray):
            event = event.chunk(0)
        words = event.dictionary.to_pylist()
        index = event.indices.to_numpy()
        for number, count in enumerate(np.bincount(index, minlength=len(words))):
            if count:
                names[words[number]] = names.get(words[number], 0) + int(count)
        meaning = {**dict.fromkeys(TAKEN, _EXCLUSIVE), **dict.fromkeys(FREE, _FREE)}
        meaning[SHARED] = _SHARED
        kind = np.array([meaning.get(word, -1) for word in words], np.int8)[index]
        wanted = kind >= 0
        kinds.append(kind[wanted])
        threads.append(batch["tid"].to_numpy()[wanted])
        objects.append(batch["object"].to_numpy()[wanted])
    return LockEvents(
        np.concatenate(kinds), np.concatenate(threads), np.concatenate(objects), names
    )


def violations(events: LockEvents) -> int:
    """Return the number of acquisitions of held locks, and of releases by another thread.

    No lock is recursive, and no thread takes a lock for reading twice.
    """
    # Sort events by lock; events of a lock keep their order.
    order = np.argsort(events.object, kind="stable")
    kind, thread, lock = events.kind[order], events.thread[order], events.object[order]
    first = np.r_[True, lock[1:] != lock[:-1]]
    group = np.cumsum(first) - 1
    start = np.flatnonzero(first)

    # A release ends the last acquisition of that lock by the same thread, so look at each thread
    # alone.
    by_thread = np.lexsort((np.arange(len(lock)), thread, lock))
    k, g, t = kind[by_thread], group[by_thread], thread[by_thread]
    same = np.r_[False, (g[1:] == g[:-1]) & (t[1:] == t[:-1])]
    before = np.r_[np.int8(_FREE), k[:-1]]
    held_before = np.where(same, before, _FREE)  # the hold of this thread on this lock
    bad = np.count_nonzero((k == _FREE) == (held_before == _FREE))

    # The numbers of readers and writers that hold each lock, before each event.
    given_back = np.empty(len(lock), np.int8)
    given_back[by_thread] = held_before
    releases = kind == _FREE

    def holders(which: int) -> NDArray[Any]:
        change = (kind == which).astype(np.int64) - (releases & (given_back == which))
        total = np.cumsum(change)
        held: NDArray[np.int64] = total - change - (total - change)[start][group]
        return held

    writers, readers = holders(_EXCLUSIVE), holders(_SHARED)
    bad += np.count_nonzero((kind == _EXCLUSIVE) & ((writers != 0) | (readers != 0)))
    bad += np.count_nonzero((kind == _SHARED) & (writers != 0))
    return int(bad)
