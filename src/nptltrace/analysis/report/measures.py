"""The sums of one run by call site, stack, object or thread, to compare with other runs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace._escaping import readable
from nptltrace.analysis.model import run_model
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.naming import Naming
from nptltrace.analysis.report.stacks.values import StackValues
from nptltrace.errors import UsageError
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.code.modules import is_interpreter
from nptltrace.trace.symbols.frames import is_tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nptltrace.analysis.report.stacks.values import AtStack
    from nptltrace.trace.symbols.location import Location
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Frame", "Item", "Run", "measure"]

_NONE = 2**63 - 1  # time of a thread without events
# A sum counts as known if at most this part of it is unknown.
_UNKNOWN_PART = 0.01


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the code.

    Attributes:
        place: The place.
        own: Whether the place is in the program itself, and not in a library.
    """

    place: Location
    own: bool


@dataclass(frozen=True, slots=True)
class Item:
    """A call site, call stack, object or thread of one run.

    Attributes:
        kind: Kind of object.
        name: Name of the item; empty if its place identifies it.
        frames: The place of the item, or of the first use of an object. For a stack: all frames,
            the innermost first. Empty if unknown.
        values: A number for each metric.
    """

    kind: str
    name: str
    frames: tuple[Frame, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """The sums of one run.

    Attributes:
        name: Path of the trace.
        level: Detail level of the recording, or empty.
        elapsed_ns: Time from the first event to the last event.
        total: A number for each metric.
        items: The call sites, stacks, objects or threads of the run.
    """

    name: str
    level: str
    elapsed_ns: int
    total: NDArray[np.float64]
    items: list[Item]


def measure(
    source: Traceset, symbols: Symbols, *, by: str, per: str = "run", scope: Scope | None = None,
    step: Callable[[], None] = lambda: None,
) -> Run:  # fmt: skip
    """Return the sums of a run.

    Args:
        source: The opened trace.
        symbols: Names addresses.
        by: `site`, `stack`, `object` or `thread`.
        per: The unit to divide by: `run`, `second`, or the name of an event type.
        scope: The part of the traces to count.
        step: Called now and then while the trace is read. An exception ends the reading.

    Raises:
        UsageError: The trace has no time or no such events to divide by.
    """
    source.names.learn()
    scope = scope or Scope()
    stacks = StackValues() if by == "stack" else None
    flags = 0 if stacks is None else libptttrack_sums.ROWS

    def take(model: libptttrack_sums.Model) -> None:
        step()
        if stacks is not None:
            stacks.add(model)

    model = run_model(source, flags, window=scope.window, counted=scope.counted, take=take)
    threads, objects = model.table("threads"), model.table("objects")
    sites = model.table("sites")
    naming = Naming(source, symbols, threads, objects, sites)
    name = ", ".join(str(path) for path in source.paths())
    lived = threads[1:][threads["first_ns"][1:] != _NONE]
    elapsed = int(lived["last_ns"].max() - lived["first_ns"].min()) if len(lived) else 0
    divisor = _divisor(source, name, elapsed, per)
    total = _values(lived).sum(axis=0)
    total[-1] = elapsed
    if stacks is not None:
        make = _Maker(source, symbols, naming, sites, sites)
        items = [make.stack(at, _values(at.row.reshape(1))[0] / divisor) for at in stacks.rows()]
    else:
        rows = {"site": sites, "object": objects, "thread": threads}[by]
        values = _values(rows) / divisor
        make = _Maker(source, symbols, naming, rows, sites)
        item_of = {"site": make.site, "object": make.object, "thread": make.thread}[by]
        used = np.flatnonzero(np.nan_to_num(values).any(axis=1)).tolist()
        items = [item_of(row, values[row]) for row in used if row]
    level = source.traces[0].info.session.level
    return Run(name, level, elapsed, total / divisor, items)


def _values(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return all metrics of rows of the model, of shape (rows, metrics); NaN for unknown."""
    caused = rows["caused_ns"] if "caused_ns" in (rows.dtype.names or ()) else np.zeros(len(rows))
    unknown = rows["undivided_ns"] > rows["used_ns"] * _UNKNOWN_PART
    used = np.where(unknown, np.nan, rows["used_ns"])
    columns = [
        rows["wait_ns"][:, 0], rows["held_ns"], rows["wait_ns"][:, 0] - rows["held_ns"],
        *rows["wait_ns"].T[1:], rows["hold_ns"], used, caused, rows["wait_n"][:, 0],
        rows["hold_n"], np.zeros(len(rows)),
    ]  # fmt: skip
    return np.column_stack(columns).astype(np.float64)


def _divisor(source: Traceset, name: str, elapsed_ns: int, per: str) -> float:
    if per == "run":
        return 1.0
    if per == "second":
        if not elapsed_ns:
            raise UsageError(f"{name}: has no time to divide by")
        return elapsed_ns / 1e9
    from nptltrace.catalog import EVENTS
    from nptltrace.trace.statistics import statistics

    if per not in {event.name for event in EVENTS}:
        raise UsageError(f"--per {per}: expected run, second or an event type")
    count = statistics(source, objects=False).event_types.get(per, 0)
    if not count:
        raise UsageError(f"{name}: holds no {per} to divide by")
    return float(count)


class _Maker:
    """Makes items from rows of the model."""

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols,
        naming: Naming,
        rows: NDArray[Any],
        sites: NDArray[Any],
    ) -> None:
        self._symbols, self._naming = symbols, naming
        self._rows, self._sites = rows, sites
        self._processes = source.processes
        self._programs = [readable(PurePath(process.exe).name) for process in self._processes]

    def site(self, row: int, values: NDArray[np.float64]) -> Item:
        """Return a call site."""
        kind = libptttrack_sums.KINDS.get(int(self._rows["kind"][row]), "object")
        return Item(kind, "", self._frame(row), values)

    def stack(self, at: AtStack, values: NDArray[np.float64]) -> Item:
        """Return a call stack, from the call site on."""
        kind = libptttrack_sums.KINDS.get(at.kind, "object")
        first = self._frame(at.site)
        stacks = self._processes[at.process].stacks if at.process < len(self._programs) else {}
        sites = stack_sites(stacks, at.stack)
        site = int(self._sites["address"][at.site])
        callers = sites[sites.index(site) + 1 :] if site in sites else []
        frames = (*first, *(self._at(at.process, caller) for caller in callers))
        python = any(frame.place.python for frame in frames)
        shown = [
            frame
            for frame in frames
            if not (is_tracer(frame.place) or (python and is_interpreter(frame.place.module)))
        ]
        return Item(kind, "", tuple(shown), values)

    def object(self, row: int, values: NDArray[np.float64]) -> Item:
        """Return an object."""
        kind, name = self._naming.kind(row), self._naming.lasting_name(row)
        frames = () if name else self._frame(int(self._rows["first_site"][row]))
        return Item(kind, name, frames, values)

    def thread(self, row: int, values: NDArray[np.float64]) -> Item:
        """Return a thread. Threads of one name are one item: thread ids differ between runs."""
        name = self._naming.thread(row).name or "unnamed"
        return Item("thread", name, (), values)

    def _frame(self, site: int) -> tuple[Frame, ...]:
        """Return the place of a call site, or nothing if it is unknown."""
        process, address = int(self._sites["process"][site]), int(self._sites["address"][site])
        return (self._at(process, address),) if address else ()

    def _at(self, process: int, address: int) -> Frame:
        place = self._symbols.location(process, address)
        known = process < len(self._programs)
        own = place.python or (known and place.module == self._programs[process])
        return Frame(place, own=own)
