"""Finds semaphores by the events that initialize them: their time, thread and stack.

Mutexes and events of CPython count as semaphores too: threads that wait for them are parked at
semaphores. They begin with the first wait in the trace.
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
        value: Its units at first.
    """

    process: int
    thread: int
    stack: int
    value: int


class Use(NamedTuple):
    """The use of the semaphores with one stack of initialization, or of a wait.

    Attributes:
        process: Number of the process.
        stack: Number of the stack in the process.
        units: Whether these semaphores began with units.
        use: `pttcheck.PTT_USED_…`.
        line: A number, from 1 on, for the innermost place in Python; stacks with the same place
            have the same number. 0 if unknown.
    """

    process: int
    stack: int
    units: bool
    use: int
    line: int


class Semaphores:
    """The semaphores that have a stack of their initialization. A row is a semaphore.

    Rows are ordered by process, address and time.

    Args:
        columns: Arrays `process`, `thread`, `object`, `ts`, `stack` and `value` of the events, each
            with shape (semaphores,).
        stacks: As the attribute.
        parents: By number of a forked process, the number of its parent. A forked process has the
            semaphores of its parent too.
        ways: As the attribute.
        parked: As the attribute.
        unmade: As the attribute.

    Attributes:
        stacks: By process and number of a stack, the number of the caller's stack and an address.
        unmade: (process, stack) of waits for semaphores without any other event.
        ways: (process, stack, units) of initializations, or of waits for mutexes and events of
            CPython.
        parked: The processes where threads waited for mutexes of CPython.
        process: Numbers of processes, with shape (semaphores,).
        address: Addresses, with shape (semaphores,).
        ts_ns: Times of initialization, in ns, with shape (semaphores,).
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
        """Return the number of semaphores."""
        return len(self.process)

    def at(self, process: int, address: int, at_ns: int | None = None) -> range:
        """Return the rows of the semaphores at an address.

        Args:
            process: Number of the process.
            address: The address.
            at_ns: Only the semaphore at this time; None for all of them, ordered by time.
        """
        rows = self._own_rows(process, address)
        begin, end = rows.start, rows.stop
        if at_ns is not None:
            end = begin + int(np.searchsorted(self.ts_ns[begin:end], at_ns, side="right"))
            begin = max(begin, end - 1)
        if begin == end and process in self._parents:
            return self.at(self._parents[process], address, at_ns)
        return range(begin, end)

    def _own_rows(self, process: int, address: int) -> range:
        """Return the rows of the semaphores that a process itself initialized at an address."""
        first, last = (
            int(np.searchsorted(self.process, process, side=side)) for side in ("left", "right")
        )
        begin, end = (
            first + int(np.searchsorted(self.address[first:last], np.uint64(address), side=side))
            for side in ("left", "right")
        )
        return range(begin, end)

    def spans(self, row: int) -> Iterator[tuple[int, int, int]]:
        """Yield process, begin and end, in ns, for each process that has a semaphore.

        The next semaphore at the address ends a semaphore. A forked process has the semaphore of
        its parent until it initializes another semaphore at the address.
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
            rows = self._own_rows(child, address)
            until_ns = min(end_ns, int(self.ts_ns[rows.start])) if rows else end_ns
            if begin_ns < until_ns:
                yield from self._inherited(child, address, begin_ns, until_ns)

    def rows(
        self, process: NDArray[Any], address: NDArray[Any], at_ns: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return the rows of the semaphores at places, with shape (places,); -1 for none.

        Args:
            process: By place, the number of the process.
            address: By place, the address.
            at_ns: By place, the time in ns.
        """
        initialized, asked_for = (self.process, self.address, self.ts_ns), (process, address, at_ns)
        keys = [np.concatenate(pair) for pair in zip(initialized, asked_for, strict=True)]
        asked = np.arange(len(keys[0])) >= len(self)
        order = np.lexsort((asked, *reversed(keys)))
        # The last semaphore up to each place, if it is at the same address.
        last = np.maximum.accumulate(np.where(asked[order], -1, np.arange(len(order))))
        rows = np.empty(len(order), np.int64)
        rows[order] = np.where(last >= 0, order[last], -1)
        rows = rows[len(self) :]
        same = (rows >= 0) & (self.process[rows] == process) & (self.address[rows] == address)
        rows = np.where(same, rows, -1)
        parent = np.array([self._parents.get(child, -1) for child in process.tolist()], np.int64)
        orphan = np.flatnonzero((rows < 0) & (parent >= 0))
        if len(orphan):
            rows[orphan] = self.rows(parent[orphan], address[orphan], at_ns[orphan])
        return rows

    def differing(self) -> tuple[list[Semaphore], NDArray[np.int64]]:
        """Return all different initializations, and by semaphore the index of its own."""
        names = ("process", "thread", "stack", "value")
        different, which = np.unique(
            np.stack([self._columns[name].astype(np.int64) for name in names]),
            axis=1, return_inverse=True,
        )  # fmt: skip
        return [Semaphore(*row) for row in different.T.tolist()], which.reshape(-1)


def find_semaphores(
    reader: libpttread.Reader, processes: Sequence[Process],
    threads: Sequence[tuple[int, int]], parents: Mapping[int, int], budget: int,
) -> Semaphores:  # fmt: skip
    """Search the events for semaphores.

    Args:
        reader: The reader of the opened traces.
        processes: The processes by number.
        threads: (process, tid) of the threads by number.
        parents: By number of a forked process, the number of its parent.
        budget: Search this many bytes of packets at most.
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
    """Return process and stack of waits for semaphores without an initialization in the trace."""
    keys = [
        rows["process"].astype(np.uint64) << np.uint64(48) | rows["object"]
        for rows in (waits, begun)
    ]
    waits = _only(waits, (waits["value"] == 0) & ~np.isin(*keys))
    pairs = np.unique(np.stack([waits["process"], waits["stack"].astype(np.int64)]), axis=1)
    return set(zip(*pairs.tolist(), strict=True))


def _begin(
    parked: dict[str, NDArray[Any]], processes: Sequence[Process]
) -> dict[str, NDArray[Any]]:
    """Return the waits that begin a mutex or event of CPython.

    These are the first wait at an address, each wait for work or for the end of a thread, and the
    wait after such a wait: CPython makes a mutex for a single wait there.
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
    """Return the columns of events that have a stack, with one of their fields as `value`."""
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
    columns = {name: np.array(buffer.arrays[name])[:count].copy() for name in _COLUMNS}
    return columns | {"value": values}


def find_purposes(
    processes: Sequence[Process], semaphores: Semaphores
) -> Iterator[tuple[int, int, bool, int]]:
    """Yield process, stack, units and purpose of semaphores, if a stack tells the purpose.

    The stack is a stack of initialization, or of a wait without an initialization in the trace.

    Args:
        processes: The processes by number.
        semaphores: Their semaphores.
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
    """Yield the uses of semaphores of Python programs.

    Args:
        processes: The processes by number.
        semaphores: Their semaphores.
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
