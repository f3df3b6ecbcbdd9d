"""Cuts a part out of traces. The part keeps the threads, holds and waits at its beginning.

The events that led to these holds and waits are older than the part. They are kept beside the
streams of the part, as a small trace in `info/before`. Readers of CTF ignore that trace;
`begin_window` reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._dataclasses import replace
from nptltrace.analysis.model import Window, begin_window, begun_from, event_buffers, new_model
from nptltrace.trace.copying import Part, process_shifts, write_trace
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.traceset import BEFORE, Traceset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from nptltrace.trace.copying import Output

__all__ = ["write_cut", "write_cuts"]

_BATCH = 1 << 16
_RUNS = 256  # the largest number of separate searches in a trace
# Identifies an event: time in ns, and (number of the trace, process in the trace, thread id).
_Key = tuple[int, tuple[int, int, int]]


def write_cut(source: Traceset, path: Path, part: Part, *, force: bool = False) -> Output:
    """Write a part of a traceset as one trace.

    Args:
        source: The opened traces.
        path: The directory to make.
        part: The part to write.
        force: Whether to replace an existing trace.
    """
    [written] = write_cuts(source, {path: part}, force=force)
    return written


def write_cuts(
    source: Traceset, parts: Mapping[Path, Part], *, force: bool = False
) -> Iterator[Output]:
    """Write parts of a traceset that begin at one place, each as a trace.

    Args:
        source: The opened traces.
        parts: The parts to write, by the directory to make.
        force: Whether to replace existing traces.
    """
    begin = next(iter(parts.values())).begin if parts else None
    early = source.before()
    traces = [*source.traces, *(trace for _, older in early for trace in older.traces)]
    everything = Traceset(*[trace.path for trace in traces]) if early else source
    if parts and begin is None and early:
        begin = libpttread.Cursor(source.reader).place()
    model = None if begin is None else _model_at(source, begin)
    for path, part in parts.items():
        whole = _timed(source, part)
        before = None if model is None else _before(source, everything, model, whole)
        written = write_trace(source, path, whole, force=force)
        if before is not None and before.events:
            # A process must have the same number in the part and in the trace beside it.
            shifts = process_shifts(source)
            shifts += [shifts[trace.number] for trace, _ in early]
            write_trace(everything, path / BEFORE, replace(before, shifts=shifts))
        yield written


def _timed(source: Traceset, part: Part) -> Part:
    """Return a part with the times of its beginning and its end."""
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
    source: Traceset, everything: Traceset, model: libptttrack_sums.Model, part: Part
) -> Part:
    """Return the events that led to the holds and waits at the beginning of a part.

    Args:
        source: The opened traces.
        everything: The opened traces and the events before them.
        model: A model that has seen the events before the part.
        part: The part. Only events of its threads that pass its filter are returned.
    """
    shift = (source.ticks_at_start() - everything.ticks_at_start()) * 10**9
    shift //= source.alignment.placements[source.alignment.lead].frequency
    wanted = _wanted(source, model, shift, part)
    passing = None if part.passing is None else part.passing(everything)
    events = _located(everything, wanted, passing, source)
    shifts, elsewhere = process_shifts(source), _elsewhere(source, part)
    domains: dict[int, int] = {}
    for number, (trace, index, _) in enumerate(source.reader.processes(0)):
        if trace not in elsewhere:
            # A piece of a recording may name a process without events in that piece.
            new = index + shifts[trace]
            domains[new] = domains.get(new, 0) | model.full(number)
    return Part(events=events, domains=domains)


def _elsewhere(source: Traceset, part: Part) -> set[int]:
    """Return the traces that begin after the part begins, or end before that.

    The events before such a trace would count from the part's beginning on. If windows of one
    recording follow one another, only one window may state the holds at a time.
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
    """Return the events to look for, and how often each event counts."""
    rows, threads = model.state(), model.table("threads")
    processes, elsewhere = source.reader.processes(0), _elsewhere(source, part)
    wanted: dict[_Key, int] = {}
    if part.threads is not None:
        rows = rows[np.isin(threads["number"][rows["thread"]], list(part.threads))]
    for ts, thread, times in rows[["t_ns", "thread", "times"]].tolist():
        trace, index, _ = processes[int(threads["process"][thread])]
        if trace in elsewhere:
            continue
        key = (ts + shift, (trace, index, int(threads["tid"][thread])))
        wanted[key] = max(wanted.get(key, 0), times)
    return wanted


def _located(
    everything: Traceset,
    wanted: dict[_Key, int],
    passing: libpttread.Filter | None,
    source: Traceset,
) -> list[tuple[libpttread.Position, int]]:
    """Return the positions of the wanted events, and how often each event counts."""
    if not wanted:
        return []
    whole = len(source.traces)
    owner = [*range(whole), *(trace.number for trace, _ in source.before())]
    processes = everything.reader.processes(0)
    identity = [(owner[processes[p][0]], processes[p][1], tid) for p, tid in everything.thread_ids]
    # A trace that was cut already has each older event as often as the event counts.
    early = [processes[p][0] >= whole for p, _ in everything.thread_ids]
    times = np.unique(np.array([ts for ts, _ in wanted], np.int64))
    cursor, reader = libpttread.Cursor(everything.reader), everything.reader
    buffer, places = ArrayBuffer(_BATCH), (libpttread.Position * _BATCH)()
    located = []
    # Most events lie at the beginning, where threads begin, or shortly before the part.
    gaps = np.flatnonzero(np.diff(times) > (times[-1] - times[0]) // _RUNS) + 1
    for run in np.split(times, gaps):
        cursor.seek_key(reader.key_of_time(int(run[0])))
        cursor.limit_key(reader.key_of_time(int(run[-1]) + 1))
        while cursor.pick(buffer, places, passing, _BATCH)[1]:
            ts, threads = buffer.column("ts"), buffer.column("thread")
            nearest = run[np.minimum(np.searchsorted(run, ts), len(run) - 1)]
            for at in np.flatnonzero(nearest == ts).tolist():
                key = (int(ts[at]), identity[threads[at]])
                count = (wanted.pop if early[threads[at]] else wanted.get)(key, 0)
                if count:
                    located.append((libpttread.Position.from_buffer_copy(places[at]), count))
    return located
