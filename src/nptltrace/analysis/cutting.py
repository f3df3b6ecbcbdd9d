"""Cuts a part out of traces that begins with the truth: threads, holds, waits.

The events that have led to that are older than the part. They are kept beside its streams, as a
small trace in `info/before`, which readers of CTF do not look at; `begin_window` reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._dataclasses import replace
from nptltrace.analysis.model import (
    Window,
    begin_window,
    begun_from,
    event_buffers,
    new_model,
)
from nptltrace.trace.copying import Part, process_shifts, write_trace
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.traceset import BEFORE, Traceset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from nptltrace.trace.copying import Output

__all__ = ["write_cut", "write_cuts"]

_BATCH = 1 << 16
_RUNS = 256  # parts of a trace at most in which they are looked for
# Which event is meant: time, and trace, process in it and thread id.
_Key = tuple[int, tuple[int, int, int]]


def write_cut(source: Traceset, path: Path, part: Part, *, force: bool = False) -> Output:
    """Write a part of a traceset as one trace.

    Args:
        source: The opened traces.
        path: The directory to make.
        part: What to write.
        force: Whether to replace a trace that is there.
    """
    [written] = write_cuts(source, {path: part}, force=force)
    return written


def write_cuts(
    source: Traceset, parts: Mapping[Path, Part], *, force: bool = False
) -> Iterator[Output]:
    """Write parts of a traceset that begin at one place, each as a trace.

    Args:
        source: The opened traces.
        parts: What to write, by the directory to make.
        force: Whether to replace traces that are there.
    """
    begin = next(iter(parts.values())).begin if parts else None
    early = source.before()
    traces = [*source.traces, *(trace for _, one in early for trace in one.traces)]
    everything = Traceset(*[trace.path for trace in traces]) if early else source
    if parts and begin is None and early:
        begin = libpttread.Cursor(source.reader).place()
    model = None if begin is None else _model_at(source, begin)
    for path, part in parts.items():
        whole = _timed(source, part)
        before = None if model is None else _before(source, everything, model, whole)
        written = write_trace(source, path, whole, force=force)
        if before is not None and before.events:
            # The same process has the same number here as there.
            shifts = process_shifts(source)
            shifts += [shifts[trace.number] for trace, _ in early]
            write_trace(everything, path / BEFORE, replace(before, shifts=shifts))
        yield written


def _timed(source: Traceset, part: Part) -> Part:
    """Return a part with the times at which it begins and ends."""
    begin, end = part.begin, part.end
    if part.begin_ns is None and begin is not None and begin.stream != libpttread.ANY:
        part = replace(part, begin_ns=source.reader.time_of_key(begin.key))
    if part.end_ns is None and end is not None and end.stream != libpttread.ANY:
        part = replace(part, end_ns=source.reader.time_of_key(end.key))
    return part


def _model_at(source: Traceset, place: libpttread.Position) -> libptttrack_sums.Model:
    """Return a model that has seen all events before a place."""
    model = new_model(source, 0)
    begin_window(model, source, Window())
    end = None if place.stream == libpttread.ANY else place
    begin_ns = libptttrack_sums.END if end is None else source.reader.time_of_key(end.key)
    state = begun_from(model, source, Window(begin_ns))
    for buffer in event_buffers(source, Window(), state, end):
        model.feed(buffer)
    return model


def _before(
    source: Traceset,
    everything: Traceset,
    model: libptttrack_sums.Model,
    part: Part,
) -> Part:
    """Return the events that led to the holds and waits at the beginning of a part.

    Args:
        source: The opened traces.
        everything: These, and the events before them.
        model: Has seen them up to a time.
        part: The part that is cut out. Only events of its threads that pass its filter are
            returned.
    """
    shift = (source.ticks_at_start() - everything.ticks_at_start()) * 10**9
    shift //= source.alignment.placements[source.alignment.lead].frequency
    wanted = _wanted(source, model, shift, part)
    passing = None if part.passing is None else part.passing(everything)
    events = _found(everything, wanted, passing, source)
    shifts, elsewhere = process_shifts(source), _elsewhere(source, part)
    domains: dict[int, int] = {}
    for number, (trace, index, _) in enumerate(source.reader.processes(0)):
        if trace not in elsewhere:
            # Pieces of a recording name processes of which another piece has the events.
            new = index + shifts[trace]
            domains[new] = domains.get(new, 0) | model.full(number)
    return Part(events=events, domains=domains)


def _elsewhere(source: Traceset, part: Part) -> set[int]:
    """Return the traces that begin after a part does, or are over by then.

    Events that led to a later beginning would count from the part's beginning on. If several
    windows of one recording follow one another, only one of them may say who held what at a time.
    """
    windows = {trace.number: source.window_ns(trace) for trace in source.traces}
    begins = [ns for ns, _ in windows.values() if ns is not None]
    begin = min(begins) if len(begins) == len(windows) else -(2**63)
    begin = begin if part.begin_ns is None else max(begin, part.begin_ns)
    return {
        number
        for number, (first, last) in windows.items()
        if (first is not None and first > begin) or (last is not None and last <= begin)
    }


def _wanted(
    source: Traceset, model: libptttrack_sums.Model, shift: int, part: Part
) -> dict[_Key, int]:
    """Return the events to look for, and how often each counts."""
    rows, threads = model.state(), model.table("threads")
    known, elsewhere = source.reader.processes(0), _elsewhere(source, part)
    wanted: dict[_Key, int] = {}
    if part.threads is not None:
        rows = rows[np.isin(threads["number"][rows["thread"]], list(part.threads))]
    for ts, thread, times in rows[["t_ns", "thread", "times"]].tolist():
        trace, index, _ = known[int(threads["process"][thread])]
        if trace in elsewhere:
            continue
        key = (ts + shift, (trace, index, int(threads["tid"][thread])))
        wanted[key] = max(wanted.get(key, 0), times)
    return wanted


def _found(
    everything: Traceset,
    wanted: dict[_Key, int],
    passing: libpttread.Filter | None,
    source: Traceset,
) -> list[tuple[libpttread.Position, int]]:
    """Return the places of the wanted events."""
    if not wanted:
        return []
    whole = len(source.traces)
    owner = [*range(whole), *(trace.number for trace, _ in source.before())]
    known = everything.reader.processes(0)
    identity = [(owner[known[p][0]], known[p][1], tid) for p, tid in everything.thread_ids]
    # Events before a trace that was cut itself are there as often as they count.
    early = [known[p][0] >= whole for p, _ in everything.thread_ids]
    times = np.unique(np.array([ts for ts, _ in wanted], np.int64))
    cursor, reader = libpttread.Cursor(everything.reader), everything.reader
    buffer, places = ArrayBuffer(_BATCH), (libpttread.Position * _BATCH)()
    found = []
    # Most are of the beginning, where threads begin, or of the last moments.
    gaps = np.flatnonzero(np.diff(times) > (times[-1] - times[0]) // _RUNS) + 1
    for run in np.split(times, gaps):
        cursor.seek_key(reader.key_of_time(int(run[0])))
        cursor.limit_key(reader.key_of_time(int(run[-1]) + 1))
        while cursor.pick(buffer, places, passing, _BATCH)[1]:
            ts, threads = buffer.column("ts"), buffer.column("thread")
            for at in _hits(ts, run).tolist():
                key = (int(ts[at]), identity[threads[at]])
                count = (wanted.pop if early[threads[at]] else wanted.get)(key, 0)
                if count:
                    found.append((libpttread.Position.from_buffer_copy(places[at]), count))
    return found


def _hits(ts: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the times that occur in a sorted array."""
    at = np.minimum(np.searchsorted(times, ts), len(times) - 1)
    return np.flatnonzero(times[at] == ts)
