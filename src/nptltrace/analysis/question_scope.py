"""The part of a traceset that a question is about: a window, threads, objects, call sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding.libpttread import ANY
from nptltrace._dataclasses import dataclass, field
from nptltrace.analysis.model import Counted, Window, run_model
from nptltrace.trace.code.call_site import ADDRESS
from nptltrace.trace.objects.chosen import BEGIN, END, Chosen, among

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from nptltrace.trace.selection import Selection
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Scope", "generation_at", "places_of"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the traces that a question is about; an attribute left out stands for all.

    Attributes:
        window: The range of time.
        counted: The threads, objects and call sites.
        tids: The threads as (process, thread id), for rows without numbers of threads.
        site_names: The call sites as text, for rows without addresses of call sites.
    """

    window: Window = field(default_factory=Window)
    counted: Counted = field(default_factory=Counted)
    tids: frozenset[tuple[int, int]] = frozenset()
    site_names: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, source: Traceset, symbols: Symbols, selection: Selection, window: Window | None = None
    ) -> Scope:
        """Return the part of a traceset that a selection chooses.

        Args:
            source: The opened traces.
            symbols: Names addresses.
            selection: The options that choose threads, objects and call sites.
            window: The range of time.

        Raises:
            UsageError: A value is wrong, or nothing has such a name.
        """
        threads = selection.thread_numbers(source)
        sites = selection.site_pairs(source, symbols)
        objects = selection.chosen_objects(source, symbols)
        return cls(
            window or Window(),
            Counted(threads=threads, objects=objects, sites=sites),
            frozenset(source.thread_ids[number] for number in threads or ()),
            frozenset(_site_names(source, symbols, sites or ())),
        )

    def includes(
        self, ts_ns: int, process: int, tids: Iterable[int], objects: Iterable[tuple[int, int]],
        sites: Iterable[str],
    ) -> bool:  # fmt: skip
        """Return whether a finding concerns the scope.

        Args:
            ts_ns: Time of the finding.
            process: Number of the process.
            tids: The threads concerned.
            objects: (address, time in ns) of each object, at a time in the object's life.
            sites: The call sites as text.
        """
        counted = self.counted
        return (
            bool(self.window.includes(np.array([ts_ns]))[0])
            and (counted.threads is None or any((process, tid) in self.tids for tid in tids))
            and (
                counted.objects is None
                or any(
                    bool(self.has_objects(*map(np.array, ([process], [address], [at_ns])))[0])
                    for address, at_ns in objects
                )
            )
            and (counted.sites is None or not self.site_names.isdisjoint(sites))
        )

    def has_threads(self, process: NDArray[Any], tid: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each thread whether it is in the scope."""
        if self.counted.threads is None:
            return np.ones(len(process), np.bool_)
        wanted = np.array([p << 32 | t for p, t in self.tids], np.uint64)
        return np.isin(process.astype(np.uint64) << np.uint64(32) | tid.astype(np.uint64), wanted)

    def has_processes(self, process: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each process whether one of its threads is in the scope."""
        if self.counted.threads is None:
            return np.ones(len(process), np.bool_)
        return np.isin(process, [number for number, _ in self.tids])

    def has_objects(
        self,
        process: NDArray[Any],
        address: NDArray[Any],
        at_ns: NDArray[Any],
        kind: NDArray[Any] | None = None,
    ) -> NDArray[np.bool_]:
        """Return for each object whether it is in the scope; see `chosen.among`."""
        return among(self.counted.objects, process, address, at_ns, kind)

    def has_sites(self, process: NDArray[Any], site: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each call site whether it is in the scope."""
        return _among(self.counted.sites, process, site)


def places_of(
    objects: Sequence[int], ts_ns: int, events: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return (address, time in ns) of the objects of a finding.

    Args:
        objects: Addresses of the objects.
        ts_ns: Time of the finding, for objects without an event.
        events: (address, time) of the events that prove the finding.
    """
    wanted = set(objects)
    places = [(address, at_ns) for address, at_ns in events if address in wanted]
    rest = wanted - {address for address, _ in places}
    return [*places, *((address, ts_ns) for address in rest)]


def generation_at(source: Traceset, address: int, number: int) -> list[Chosen]:
    """Return the objects of an address with a generation, of all processes and kinds.

    This reads all events.

    Args:
        source: The opened traces.
        address: The address.
        number: The generation: the column `gen` of the table `objects`.
    """
    objects = run_model(source).table("objects")
    at = objects[objects["address"] == address]
    names = ("process", "kind", "generation", "first_ns")
    rows = list(zip(*(at[name].tolist() for name in names), strict=True))
    begins = {(process, kind, turn): first_ns for process, kind, turn, first_ns in rows}
    # Events on the address before its first use belong to the first object.
    begins |= {place: BEGIN for place in begins if place[2] == 1}
    return [
        Chosen(process, address, kind, begin_ns, begins.get((process, kind, turn + 1), END))
        for (process, kind, turn), begin_ns in begins.items()
        if turn == number
    ]


def _site_names(
    source: Traceset, symbols: Symbols, pairs: Sequence[tuple[int, int]]
) -> Iterable[str]:
    everywhere = sorted(source.chosen.everywhere()) if any(p == ANY for p, _ in pairs) else []
    for process, site in pairs:
        if process != ANY:
            yield symbols.site_name(process, site)
            continue
        for owner, other in everywhere:
            if other & ADDRESS == site & ADDRESS:
                yield symbols.site_name(owner, other)


def _among(
    pairs: Sequence[tuple[int, int]] | None, process: NDArray[Any], address: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return for each address whether the pairs have it; ANY stands for every process."""
    if pairs is None:
        return np.ones(len(address), np.bool_)
    included = np.zeros(len(address), np.bool_)
    by_process: dict[int, list[int]] = {}
    for owner, at in pairs:
        by_process.setdefault(owner, []).append(at)
    for owner, wanted in by_process.items():
        values = address & np.uint64(ADDRESS) if owner == ANY else address
        matches = np.isin(values, np.array(wanted, np.uint64))
        included |= matches if owner == ANY else matches & (process == owner)
    return included
