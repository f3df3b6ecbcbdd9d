"""The global interpreter lock of CPython (GIL): its holds and waits, by thread and line.

The GIL has two conditions. A thread that takes the GIL signals the second condition while it has
the GIL. A thread that gives the GIL up signals the first condition; other threads wait there. So
the events of these two conditions show all holds and waits. The line where a thread gave the GIL up
is known if others waited, or if the thread soon waited again: then it was still at that line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nptltrace._dataclasses import dataclass, replace
from nptltrace.trace.code.call_site import hex_of_site
from nptltrace.trace.objects.gils import GIL, HAND_OVER, name_of_part
from nptltrace.trace.reading.parallel import event_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.analysis.model import Window
    from nptltrace.analysis.question_scope import Scope
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["GilLine", "GilPlace", "gil_lines", "gil_places"]

_SIGNAL = "COND_SIGNAL"
_EVENTS = (_SIGNAL, "COND_WAIT_IN", "COND_TIMEDWAIT_IN")
# The actions of a thread on a GIL.
_TAKE, _GIVE, _WANT, _HAND_OVER = range(4)


@dataclass(frozen=True, slots=True)
class GilLine:
    """The holds of a GIL by a thread that ended at a line, and the thread's waits at the line.

    Attributes:
        pid: Process id.
        tid: Kernel thread id.
        thread_name: Name of the thread, or empty.
        site: The line; empty if unknown.
        holds: How often the thread gave the GIL up there.
        hold_ns: Total duration of these holds.
        share: `hold_ns` as a part of the time from the first event of the GIL to the last.
        wait_caused_ns: How long other threads waited during these holds, added up.
        waits: How often the thread waited for the GIL there.
        wait_ns: Total duration of these waits.
        wait_max_ns: The longest of these waits.
        gil: Name of the GIL: `GIL`, or `GIL #2` for the own GIL of a sub-interpreter.
    """

    pid: int
    tid: int
    thread_name: str
    site: str
    holds: int
    hold_ns: int
    share: float
    wait_caused_ns: int
    waits: int
    wait_ns: int
    wait_max_ns: int
    gil: str = GIL

    def joined(self, other: GilLine) -> GilLine:
        """Return the sum of this and another instruction of the same line."""
        names = ("holds", "hold_ns", "share", "wait_caused_ns", "waits", "wait_ns")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(self, **sums, wait_max_ns=max(self.wait_max_ns, other.wait_max_ns))


@dataclass(frozen=True, slots=True)
class GilPlace:
    """The figures of one call site of a line.

    Attributes:
        process: Number of the process.
        lock: Address of the GIL's first condition.
        t_ns: First use of the GIL.
        site: The call site, 0 if unknown.
        line: The figures.
    """

    process: int
    lock: int
    t_ns: int
    site: int
    line: GilLine


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of one GIL, in the order of threads and then of time."""

    lock: int
    t_ns: NDArray[np.int64]
    tid: NDArray[np.int64]
    kind: NDArray[np.int64]
    site: NDArray[np.uint64]
    stack: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Spans:
    """Holds or waits of threads, and their call sites."""

    tid: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    site: NDArray[np.uint64]


def gil_lines(traceset: Traceset, symbols: Symbols, scope: Scope) -> list[GilLine]:
    """Return the holds of GILs and the waits for them by process, GIL, thread and line.

    Args:
        traceset: The opened traces.
        symbols: Names addresses.
        scope: The part to look at.
    """
    lines: dict[tuple[int, int, int, str], GilLine] = {}
    for place in gil_places(traceset, symbols, scope):
        key = (place.process, place.lock, place.line.tid, place.line.site)
        line = lines.get(key)
        lines[key] = place.line if line is None else line.joined(place.line)
    return list(lines.values())


def gil_places(source: Traceset, symbols: Symbols, scope: Scope) -> Iterator[GilPlace]:
    """Yield the holds of GILs and the waits for them by process, GIL, thread and call site.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        scope: The part to look at. Shares of time are shares of all threads.
    """
    if not any(m.is_interpreter for process in source.processes for m in process.map.modules()):
        return
    source.names.learn()
    names = {pair: source.names.of(n) for n, pair in enumerate(source.thread_ids)}
    for process, events in _events(source, symbols, scope.window):
        pid, first_ns = source.processes[process].pid, int(events.t_ns.min())
        gil = name_of_part(symbols.gils(process), events.lock)
        for row in _sums(events):
            tid, site = row[:2]
            text = symbols.site_name(process, site) or hex_of_site(site) if site else ""
            if not scope.includes(first_ns, process, [tid], [(events.lock, first_ns)], [text]):
                continue
            line = GilLine(pid, tid, names.get((process, tid), ""), text, *row[2:], gil)
            yield GilPlace(process, events.lock, first_ns, site, line)


def _events(source: Traceset, symbols: Symbols, window: Window) -> Iterator[tuple[int, _Events]]:
    """Yield the number of each process with a GIL, and the events of the GIL."""
    pieces: list[dict[str, NDArray[Any]]] = []
    for batch in event_batches(source, window.begin_ns, window.end_ns):
        wanted = pc.is_in(pc.cast(batch["event"], "string"), pa.array(_EVENTS))
        chosen = batch.filter(wanted)
        if chosen.num_rows:
            columns = ("ts_ns", "process", "tid", "object", "site", "stack")
            piece = {name: np.asarray(chosen[name].to_numpy()) for name in columns}
            signal = pc.equal(pc.cast(chosen["event"], "string"), _SIGNAL)
            pieces.append(piece | {"signal": np.asarray(signal.to_numpy())})
    if not pieces:
        return
    all_of = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    for process in np.unique(all_of["process"]).tolist():
        of_process = {name: values[all_of["process"] == process] for name, values in all_of.items()}
        for gil in symbols.gils(process):
            if np.isin((gil, gil + HAND_OVER), of_process["object"]).all():
                yield process, _of(gil, of_process)


def _of(gil: int, columns: dict[str, NDArray[Any]]) -> _Events:
    first, second = columns["object"] == gil, columns["object"] == gil + HAND_OVER
    rows = np.flatnonzero(first | second)
    rows = rows[np.lexsort((columns["ts_ns"][rows], columns["tid"][rows]))]
    signal, first = columns["signal"][rows], first[rows]
    kind = np.where(signal, np.where(first, _GIVE, _TAKE), np.where(first, _WANT, _HAND_OVER))
    return _Events(
        gil, columns["ts_ns"][rows].astype(np.int64), columns["tid"][rows].astype(np.int64), kind,
        columns["site"][rows], columns["stack"][rows],
    )  # fmt: skip


def _sums(events: _Events) -> Iterator[tuple[int, int, int, int, float, int, int, int, int]]:
    """Yield thread, call site and figures of the holds of a GIL and the waits for it."""
    holds, waits = _holds(events), _waits(events)
    caused = _waited_until(waits, holds.end) - _waited_until(waits, holds.begin)
    elapsed = int(events.t_ns.max() - events.t_ns.min())
    keys, which = np.unique(
        np.concatenate([
            np.stack([spans.tid.astype(np.uint64), spans.site]) for spans in (holds, waits)
        ], axis=1),
        axis=1, return_inverse=True,
    )  # fmt: skip
    which = which.reshape(-1)
    of_holds, of_waits = which[: len(holds.tid)], which[len(holds.tid) :]
    count = keys.shape[1]

    def added(at: NDArray[Any], values: NDArray[Any]) -> list[int]:
        total = np.zeros(count, np.int64)
        np.add.at(total, at, values)
        return [int(value) for value in total]

    had, waited = holds.end - holds.begin, waits.end - waits.begin
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, of_waits, waited)
    held = added(of_holds, had)
    yield from zip(
        (int(tid) for tid in keys[0]), (int(site) for site in keys[1]),
        added(of_holds, np.ones_like(had)), held,
        (ns / elapsed if elapsed else 0.0 for ns in held),
        added(of_holds, caused), added(of_waits, np.ones_like(waited)), added(of_waits, waited),
        (int(ns) for ns in longest), strict=True,
    )  # fmt: skip


def _next(events: _Events, rows: NDArray[np.int64], kinds: tuple[int, ...]) -> NDArray[np.int64]:
    """Return for each row the next row, if its thread is the same and its kind fits; else -1."""
    behind = np.minimum(rows + 1, len(events.tid) - 1)
    same = (behind > rows) & (events.tid[behind] == events.tid[rows])
    return np.where(same & np.isin(events.kind[behind], kinds), behind, -1)


def _only(events: _Events, rows: NDArray[Any]) -> _Events:
    columns = (events.t_ns, events.tid, events.kind, events.site, events.stack)
    return _Events(events.lock, *(column[rows] for column in columns))


def _holds(events: _Events) -> _Spans:
    """Return the holds of a GIL, with the call sites where they ended."""
    rows = np.flatnonzero((events.kind == _TAKE) | (events.kind == _GIVE))
    changes = _only(events, rows)
    taken = np.flatnonzero(changes.kind == _TAKE)
    released = _next(changes, taken, (_GIVE,))
    taken, released = taken[released >= 0], released[released >= 0]
    after = _next(events, rows[released], (_WANT, _HAND_OVER))
    at_once = np.where(after >= 0, events.site[after], np.uint64(0))
    stacks = changes.stack[released] > 0
    site = np.where(stacks, changes.site[released], at_once)
    return _Spans(changes.tid[taken], changes.t_ns[taken], changes.t_ns[released], site)


def _waits(events: _Events) -> _Spans:
    """Return the waits for a GIL, each joined from its consecutive condition waits."""
    kept = events.kind != _HAND_OVER
    wanting = _only(events, kept)
    again = np.zeros(len(wanting.tid), bool)
    again[1:] = (
        (wanting.kind[1:] == _WANT)
        & (wanting.kind[:-1] == _WANT)
        & (wanting.tid[1:] == wanting.tid[:-1])
    )
    wanting = _only(wanting, ~again)
    begun = np.flatnonzero(wanting.kind == _WANT)
    taken = _next(wanting, begun, (_TAKE,))
    begun, taken = begun[taken >= 0], taken[taken >= 0]
    return _Spans(wanting.tid[begun], wanting.t_ns[begun], wanting.t_ns[taken], wanting.site[begun])


def _waited_until(waits: _Spans, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how long all threads together had waited at each moment."""
    times = np.concatenate([waits.begin, waits.end])
    if not len(times):
        return np.zeros(len(moments), np.int64)
    order = np.argsort(times, kind="stable")
    times = times[order]
    waiting = np.cumsum(np.where(order < len(waits.begin), 1, -1))
    waited = np.concatenate([[0], np.cumsum(np.diff(times) * waiting[:-1])])
    at = np.searchsorted(times, moments, side="right") - 1
    inside = np.maximum(at, 0)
    until = waited[inside] + (moments - times[inside]) * waiting[inside]
    return np.where(at >= 0, until, 0).astype(np.int64)
