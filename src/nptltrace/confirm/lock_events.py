"""Events of locks and waits as columns, ordered by thread, with the end of each hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nptltrace._binding.libpttread import Cursor
from nptltrace.catalog import EVENTS
from nptltrace.confirm.python_places import python_sites
from nptltrace.trace.reading.prefetch import whole_batches

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["LockEvents", "Nested", "ids", "rows_of"]

_COLUMNS = ("thread", "id", "object", "site", "stack")
_SEMAPHORES = [event.id for event in EVENTS if event.name.startswith("SEM_")]
# A thread with more locks than this at once is rare. Its older locks do not count.
_DEPTH = 8
# Open holds of a thread that are remembered. A trace without releases must not take for ever.
_OPEN_MOST = 64


class Nested(NamedTuple):
    """Pairs of an acquisition and a later event of the thread during the hold, by places of events.

    Attributes:
        held: The acquisitions.
        inner: The later events, ascending.
    """

    held: NDArray[np.intp]
    inner: NDArray[np.intp]


def ids(*names: str) -> list[int]:
    """Return the ids of events. Several events may have the same name."""
    return [event.id for event in EVENTS if event.name in names]


def rows_of(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Return columns as one array with a row for each place."""
    return np.stack([column.astype(np.uint64) for column in columns], axis=1)


class LockEvents:
    """The events of a traceset that an analysis wants, ordered by thread and then by time.

    Args:
        source: The opened traces.
        wanted: Ids of the events.

    Attributes:
        thread: Number of the thread of each event.
        event: Id of each event.
        item: Address of the object of each event.
        site: Number of the call site of each event. For a semaphore in a process with Python, the
            innermost call in Python outside of threading.py; 0 if there is none.
        process: Number of the process of each event.
    """

    def __init__(self, source: Traceset, wanted: Iterable[int]) -> None:
        parts: list[list[NDArray[Any]]] = [[] for _ in _COLUMNS]
        chosen_ids = list(wanted)
        for buffer in whole_batches(source, Cursor(source.reader)):
            chosen = np.isin(buffer.column("id"), chosen_ids)
            for part, name in zip(parts, _COLUMNS, strict=True):
                part.append(buffer.column(name)[chosen])
        whole = [np.concatenate(part) if part else np.empty(0, np.uint64) for part in parts]
        order = np.argsort(whole[0], kind="stable")
        self.thread, self.event, self.item, self.site, stack = (column[order] for column in whole)
        self._owners = np.array([process for process, _ in source.reader.threads()] or [0])
        self.process = self._owners[self.thread.astype(np.intp)]
        semaphores = np.isin(self.event, _SEMAPHORES)
        for process in np.unique(self.process[semaphores]).tolist():
            sites = python_sites(source, process)
            if sites:
                its = np.flatnonzero(semaphores & (self.process == process))
                self.site[its] = [sites.get(number, 0) for number in stack[its].tolist()]

    def process_of(self, thread: int) -> int:
        """Return the number of the process of a thread."""
        return int(self._owners[thread])

    def places(self, wanted: Iterable[int]) -> NDArray[np.intp]:
        """Return the places of events by their ids."""
        return np.flatnonzero(np.isin(self.event, list(wanted)))

    def before(
        self, known: NDArray[np.intp], wanted: NDArray[np.intp], items: NDArray[Any]
    ) -> NDArray[np.intp]:
        """Return for each place the last known place before it, of the same thread and object.

        The result is -1 for no place.

        Args:
            known: Places to choose from, ascending.
            wanted: Places.
            items: The objects that belong to the places in `wanted`.
        """
        nothing = np.full(len(wanted), -1, np.intp)
        if not len(known) or not len(wanted):
            return nothing
        pairs = rows_of(
            np.concatenate([self.thread[known], self.thread[wanted]]),
            np.concatenate([self.item[known], items]),
        )
        groups = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        # In an order by thread and object, then by place.
        keys = groups * len(self.event) + np.concatenate([known, wanted])
        sorted_keys = np.sort(keys[: len(known)])
        at = np.searchsorted(sorted_keys, keys[len(known) :]) - 1
        found = (at >= 0) & (
            sorted_keys[np.maximum(at, 0)] // len(self.event) == groups[len(known) :]
        )
        nothing[found] = sorted_keys[at[found]] % len(self.event)
        return nothing

    def ends(self, taken: NDArray[np.intp], freed: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return for each acquisition the place of its release; the number of events if none.

        Args:
            taken: Places of the acquisitions.
            freed: Places of the releases.
        """
        ends = np.full(len(taken), len(self.event), np.intp)
        opened = self.before(taken, freed, self.item[freed])
        known = opened >= 0
        # The first release after an acquisition ends it. Write the later ones first.
        at = np.searchsorted(taken, opened[known][::-1])
        ends[at] = freed[known][::-1]
        # A lock that is taken again meanwhile ends with the inner acquisition, as far as we know.
        outer = self.before(taken, taken, self.item[taken])
        outer_at = np.searchsorted(taken, np.maximum(outer, 0))
        again = (outer >= 0) & (ends[outer_at] == len(self.event))
        for inner in np.flatnonzero(again)[::-1].tolist():
            ends[outer_at[inner]] = ends[inner]
        return ends

    def nested(
        self, taken: NDArray[np.intp], ends: NDArray[np.intp], inner: NDArray[np.intp]
    ) -> Nested:
        """Return the events that a thread has while it holds locks, each with each such lock.

        Args:
            taken: Places of acquisitions.
            ends: Places of their ends.
            inner: Places of events, ascending.
        """
        last = np.searchsorted(self.thread, self.thread[taken], side="right")
        # The events of each hold, as numbers of `inner`.
        begins = np.searchsorted(inner, taken, side="right")
        stops = np.searchsorted(inner, np.minimum(ends, last))
        used = np.flatnonzero(begins < stops)
        taken, begins, stops = taken[used], begins[used], stops[used]
        size = len(inner) + 1
        counts = np.cumsum(np.bincount(begins, minlength=size) - np.bincount(stops, minlength=size))
        coming = zip(begins.tolist(), stops.tolist(), taken.tolist(), strict=True)
        following = next(coming, None)
        open_holds: list[tuple[int, int]] = []
        held: list[int] = []
        during: list[int] = []
        for number in np.flatnonzero(counts).tolist():
            while following is not None and following[0] <= number:
                open_holds.append(following[1:])
                following = next(coming, None)
            open_holds = [hold for hold in open_holds if hold[0] > number][-_OPEN_MOST:]
            newest = open_holds[-_DEPTH:]
            held += [place for _, place in newest]
            during += [number] * len(newest)
        return Nested(np.array(held, np.intp), inner[np.array(during, np.intp)])
