"""Semaphores by the events that initialized them: when, by which thread, with which stack.

Mutexes and events of CPython stand among them, by the semaphores at which threads are parked: they
begin with the first wait that is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nptltrace._binding import libpttread
from nptltrace._binding.headers import pttcheck
from nptltrace._binding.headers import pttmodel as c
from nptltrace._dataclasses import dataclass
from nptltrace.catalog import EVENTS, FUTEX_KINDS
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.code.python_code import is_python
from nptltrace.trace.objects.chosen import END
from nptltrace.trace.objects.purposes import made_with, purpose_of, purpose_of_wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nptltrace.trace.info import Process

__all__ = ["Semaphore", "Semaphores", "Use", "find_purposes", "find_semaphores", "find_uses"]

_INIT = next(event.id for event in EVENTS if event.name == "SEM_INIT")
_WAIT = next(event.id for event in EVENTS if event.name == "SEM_WAIT")
_PARKED = [FUTEX_KINDS.index(kind) for kind in ("python-mutex", "python-event")]
_COLUMNS = ("ts", "thread", "object", "stack")


@dataclass(frozen=True, slots=True)
class Semaphore:
    """How a semaphore was initialized.

    Attributes:
        process: Number of the process.
        thread: Number of the thread that initialized it.
        stack: Number of the stack in its process.
        value: The number of its units.
    """

    process: int
    thread: int
    stack: int
    value: int


class Use(NamedTuple):
    """What semaphores are used for that were initialized, or are waited for, with a stack.

    Attributes:
        process: Number of the process.
        stack: Number of the stack in the process.
        units: Those that began with units are meant, or those without.
        use: `pttcheck.PTT_USED_…`.
        line: The same number for all stacks that begin at one place of a Python program, from 1 on;
            0 where that is not known.
    """

    process: int
    stack: int
    units: bool
    use: int
    line: int


class Semaphores:
    """The semaphores that were initialized with a stack, by process and address and then by time.

    Args:
        columns: What the events say of each: `process`, `thread`, `object`, `ts`, `stack`, `value`.
        stacks: Of each process the stacks by number: that of the caller, and an address.
        parents: Of processes that were forked, the number of the one that forked them, whose
            semaphores they have, too.
        ways: As the attribute.
        parked: Likewise.
        unmade: Likewise.

    Attributes:
        stacks: As given.
        unmade: (process, stack) of waits for semaphores of which nothing else is seen.
        ways: (process, stack, units) that semaphores were initialized with, or waited for where
            nothing is seen of how they began.
        parked: The processes in which threads waited for mutexes of Python.
        process: Number of the process of each.
        address: Its address.
        ts_ns: When it was initialized.
    """

    def __init__(  # noqa: PLR0917 -- made in one place
        self,
        columns: dict[str, NDArray[Any]],
        stacks: Sequence[Mapping[int, tuple[int, int]]],
        parents: Mapping[int, int],
        ways: set[tuple[int, int, bool]],
        parked: frozenset[int],
        unmade: set[tuple[int, int]],
    ) -> None:
        self.stacks, self._parents = stacks, parents
        self.ways, self.parked, self.unmade = ways, parked, unmade
        order = np.lexsort([columns[name] for name in ("ts", "object", "process")])
        self._columns = {name: column[order] for name, column in columns.items()}
        self.process, self.address, self.ts_ns = (
            self._columns[name] for name in ("process", "object", "ts")
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.process)

    def at(self, process: int, address: int, at_ns: int | None = None) -> range:
        """Return which of them lay at an address.

        Args:
            process: Number of the process.
            address: The address.
            at_ns: Only the one of this time; None for all that there were, the first one first.
        """
        own = self._own(process, address)
        begin, end = own.start, own.stop
        if at_ns is not None:
            end = begin + int(np.searchsorted(self.ts_ns[begin:end], at_ns, side="right"))
            begin = max(begin, end - 1)
        if begin == end and process in self._parents:
            return self.at(self._parents[process], address, at_ns)
        return range(begin, end)

    def _own(self, process: int, address: int) -> range:
        """Return which of them a process initialized at an address."""
        first, last = (
            int(np.searchsorted(self.process, process, side=side)) for side in ("left", "right")
        )
        begin, end = (
            first + int(np.searchsorted(self.address[first:last], np.uint64(address), side=side))
            for side in ("left", "right")
        )
        return range(begin, end)

    def spans(self, row: int) -> Iterator[tuple[int, int, int]]:
        """Yield where one of them was there: the process, when it began, and when the next did.

        Processes that were forked have it until they initialize another one there.
        """
        process, address = int(self.process[row]), int(self.address[row])
        behind = self.at(process, address).stop > row + 1
        end_ns = int(self.ts_ns[row + 1]) if behind else END
        yield from self._inherited(process, address, int(self.ts_ns[row]), end_ns)

    def _inherited(
        self, process: int, address: int, begin_ns: int, end_ns: int
    ) -> Iterator[tuple[int, int, int]]:
        yield process, begin_ns, end_ns
        for child, parent in self._parents.items():
            if parent != process:
                continue
            own = self._own(child, address)
            until_ns = min(end_ns, int(self.ts_ns[own.start])) if own else end_ns
            if begin_ns < until_ns:
                yield from self._inherited(child, address, begin_ns, until_ns)

    def rows(
        self, process: NDArray[Any], address: NDArray[Any], at_ns: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return which of them was at each of some addresses at a time, -1 for none.

        Args:
            process: Number of the process of each.
            address: Its address.
            at_ns: The time.
        """
        initialized, asked_for = (self.process, self.address, self.ts_ns), (process, address, at_ns)
        keys = [np.concatenate(pair) for pair in zip(initialized, asked_for, strict=True)]
        asked = np.arange(len(keys[0])) >= len(self)
        order = np.lexsort((asked, *reversed(keys)))
        # The last semaphore up to each, if it lies at the same address.
        last = np.maximum.accumulate(np.where(asked[order], -1, np.arange(len(order))))
        rows = np.empty(len(order), np.int64)
        rows[order] = np.where(last >= 0, order[last], -1)
        rows = rows[len(self) :]
        same = (rows >= 0) & (self.process[rows] == process) & (self.address[rows] == address)
        rows = np.where(same, rows, -1)
        parent = np.array([self._parents.get(one, -1) for one in process.tolist()], np.int64)
        orphan = np.flatnonzero((rows < 0) & (parent >= 0))
        if len(orphan):
            rows[orphan] = self.rows(parent[orphan], address[orphan], at_ns[orphan])
        return rows

    def differing(self) -> tuple[list[Semaphore], NDArray[np.int64]]:
        """Return those that were initialized differently, and which of these each of all is."""
        names = ("process", "thread", "stack", "value")
        found, which = np.unique(
            np.stack([self._columns[name].astype(np.int64) for name in names]),
            axis=1, return_inverse=True,
        )  # fmt: skip
        return [Semaphore(*row) for row in found.T.tolist()], which.reshape(-1)


def find_semaphores(
    reader: libpttread.Reader, processes: Sequence[Process],
    threads: Sequence[tuple[int, int]], parents: Mapping[int, int], budget: int,
) -> Semaphores:  # fmt: skip
    """Look for the semaphores in the events.

    Args:
        reader: Of the opened traces.
        processes: The processes by number.
        threads: (process, tid) of each thread that it knows.
        parents: The processes that forked others, by these.
        budget: How many bytes of packets to search at most.
    """
    process_of = np.array([process for process, _ in threads], np.int64)
    begun = _rows(reader, _INIT, "value", process_of, budget)
    parked = _rows(reader, _WAIT, "lock", process_of, budget)
    unmade = _unmade(parked, begun)
    parked = _only(parked, np.isin(parked["value"], _PARKED))
    mutexes = frozenset(parked["process"][parked["value"] == _PARKED[0]].tolist())
    parked["value"][:] = 0
    ways = {
        (process, stack, value > 0)
        for rows in (begun, parked)
        for process, stack, value in set(
            zip(*(rows[name].tolist() for name in ("process", "stack", "value")), strict=True)
        )
    }
    parked = _begin(parked, processes)
    columns = {name: np.concatenate([begun[name], parked[name]]) for name in begun}
    stacks = [process.stacks for process in processes]
    return Semaphores(columns, stacks, parents, ways, mutexes, unmade)


def _unmade(waits: dict[str, NDArray[Any]], begun: dict[str, NDArray[Any]]) -> set[tuple[int, int]]:
    """Return process and stack of the waits for semaphores that were initialized unseen."""
    keys = [
        rows["process"].astype(np.uint64) << np.uint64(48) | rows["object"]
        for rows in (waits, begun)
    ]
    found = _only(waits, (waits["value"] == 0) & ~np.isin(*keys))
    pairs = np.unique(np.stack([found["process"], found["stack"].astype(np.int64)]), axis=1)
    return set(zip(*pairs.tolist(), strict=True))


def _begin(
    parked: dict[str, NDArray[Any]], processes: Sequence[Process]
) -> dict[str, NDArray[Any]]:
    """Return the waits with which something begins: the first ones, and those of another use.

    A mutex that is there for a single wait leaves its place to the next one.
    """
    parked = _only(parked, np.lexsort([parked[name] for name in ("ts", "object", "process")]))
    pairs = np.stack([parked["process"], parked["stack"].astype(np.int64)])
    ways, which = np.unique(pairs, axis=1, return_inverse=True)
    purposes = [
        purpose_of(processes[process], stack, units=False) for process, stack in ways.T.tolist()
    ]
    once = np.isin(purposes, (c.PTT_FOR_WORK, c.PTT_FOR_END))[which.reshape(-1)]
    begins = np.ones(len(once), bool)
    begins[1:] = once[1:] | once[:-1]
    for name in ("process", "object"):
        begins[1:] |= parked[name][1:] != parked[name][:-1]
    return _only(parked, np.flatnonzero(begins))


def _rows(
    reader: libpttread.Reader, event: int, field: str, process_of: NDArray[Any], budget: int
) -> dict[str, NDArray[Any]]:
    """Return the events of a kind that have a stack, with one of their fields as `value`."""
    pieces = [_piece(buffer, field) for buffer in reader.find((event,), budget)]
    columns = {
        name: np.concatenate([piece[name] for piece in pieces]) for name in (*_COLUMNS, "value")
    }
    columns = _only(columns, columns["stack"] > 0)
    return columns | {"process": process_of[columns["thread"]]}


def _only(columns: dict[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in columns.items()}


def _piece(buffer: libpttread.Buffer, field: str) -> dict[str, NDArray[Any]]:
    count = buffer.count
    values, valid = np.zeros(count, np.int64), np.zeros(count, np.uint8)
    if count:
        libpttread.field_column(buffer, field, values.ctypes.data, valid.ctypes.data)
    found = {name: np.array(buffer.arrays[name])[:count].copy() for name in _COLUMNS}
    return found | {"value": values}


def find_purposes(
    processes: Sequence[Process], semaphores: Semaphores
) -> Iterator[tuple[int, int, bool, int]]:
    """Yield process, stack, whether with units, and purpose of those whose events do not say it.

    The stack is that of the initialization, or of a wait for a mutex that is never seen to begin.

    Args:
        processes: The processes by number.
        semaphores: What is known of their initialization.
    """
    for process, stack, units in sorted(semaphores.ways):
        purpose = purpose_of(processes[process], stack, units=units)
        if purpose != c.PTT_FOR_ANYTHING:
            yield process, stack, units, purpose
    for process, stack in sorted(semaphores.unmade):
        purpose = purpose_of_wait(processes[process], stack)
        if purpose != c.PTT_FOR_ANYTHING:
            yield process, stack, True, purpose


def find_uses(processes: Sequence[Process], semaphores: Semaphores) -> Iterator[Use]:
    """Yield what semaphores of Python programs are used for.

    Args:
        processes: The processes by number.
        semaphores: What is known of their initialization.
    """
    lines: dict[tuple[int, int], int] = {}
    for process, stack, units in sorted(semaphores.ways):
        use = made_with(processes[process], stack, units=units).use
        sites = stack_sites(processes[process].stacks, stack)
        place = next((site for site in sites if is_python(site)), 0)
        line = lines.setdefault((process, place), len(lines) + 1) if place else 0
        if use or line:
            yield Use(process, stack, units, use, line)
    for process, stack in sorted(semaphores.unmade):
        if made_with(processes[process], stack, units=False).reads:
            use = pttcheck.PTT_USED_FOR_WORK
            yield Use(process, stack, units=False, use=use, line=0)
