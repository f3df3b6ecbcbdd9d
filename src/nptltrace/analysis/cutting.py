"""Cuts a part out of traces that begins with the truth: who lives, holds and waits is known in it.

The events that have led to that are older than the part. They are kept beside its streams, as a
small trace in `info/before`, which readers of CTF do not look at; `begin_window` reads it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace.analysis.model import (
    Window,
    begin_window,
    begun_from,
    event_buffers,
    new_model,
)
from nptltrace.trace.copying import Part, write_trace
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.source import BEFORE, Source

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from nptltrace.trace.copying import Output

__all__ = ["write_cut"]

_BATCH = 1 << 16
_RUNS = 256  # parts of a trace at most in which they are looked for
# Which event is meant: time, and trace, process in it and thread id of who did it.
_Key = tuple[int, tuple[int, int, int]]


def write_cut(source: Source, path: Path, part: Part, *, force: bool = False) -> Output:
    """Write a part of a traceset as one trace.

    Args:
        source: The opened traces.
        path: The directory to make.
        part: What to write.
        force: Whether to replace a trace that is there.
    """
    begin, end = part.begin, part.end
    if part.begin_ns is None and begin is not None and begin.stream != libpttread.ANY:
        part = replace(part, begin_ns=source.reader.time_of_key(begin.key))
    if part.end_ns is None and end is not None and end.stream != libpttread.ANY:
        part = replace(part, end_ns=source.reader.time_of_key(end.key))
    early = [one for _, one in source.before()]
    traces = [trace.path for one in (source, *early) for trace in one.traces]
    everything = Source(traces) if early else source
    model = None if begin is None else _model_at(source, begin)
    before = None if model is None else _before(source, everything, model)
    written = write_trace(source, path, part, force=force)
    if before is not None and before.events:
        write_trace(everything, path / BEFORE, before)
    return written


def _model_at(source: Source, place: libpttread.Position) -> libptttrack_sums.Model:
    """Return a model that has seen all that is before a place."""
    model = new_model(source, 0)
    begin_window(model, source, Window())
    end = None if place.stream == libpttread.ANY else place
    begin_ns = libptttrack_sums.END if end is None else source.reader.time_of_key(end.key)
    state = begun_from(model, source, Window(begin_ns))
    for buffer in event_buffers(source, Window(), state, end):
        model.feed(buffer)
    return model


def _before(source: Source, everything: Source, model: libptttrack_sums.Model) -> Part:
    """Return the events that have led to what goes on.

    Args:
        source: The opened traces.
        everything: These, and the events before them.
        model: Has seen them up to a time.
    """
    shift = (source.ticks_at_start() - everything.ticks_at_start()) * 10**9
    shift //= source.alignment.placements[source.alignment.lead].frequency
    events = _found(everything, _wanted(source, model, shift), len(source.traces), source)
    # Only one recording is cut as a rule; of several, processes are numbered anew.
    known = enumerate(source.reader.processes(0))
    return Part(events=events, domains={index: model.full(n) for n, (_, index, _) in known})


def _wanted(source: Source, model: libptttrack_sums.Model, shift: int) -> dict[_Key, int]:
    """Return the events to look for, and how often each counts."""
    rows, threads = model.state(), model.table("threads")
    known = source.reader.processes(0)
    found: dict[_Key, int] = {}
    for ts, thread, times in rows[["t_ns", "thread", "times"]].tolist():
        trace, index, _ = known[int(threads["process"][thread])]
        key = (ts + shift, (trace, index, int(threads["tid"][thread])))
        found[key] = max(found.get(key, 0), times)
    return found


def _found(
    everything: Source, wanted: dict[_Key, int], whole: int, source: Source
) -> list[tuple[libpttread.Position, int]]:
    """Return where the events are that are looked for."""
    if not wanted:
        return []
    owner = [*range(whole), *(trace.number for trace, _ in source.before())]
    known = everything.reader.processes(0)
    who = [(owner[known[p][0]], known[p][1], tid) for p, tid in everything.threads()]
    times = np.unique(np.array([ts for ts, _ in wanted], np.int64))
    cursor, reader = libpttread.Cursor(everything.reader), everything.reader
    buffer, places = ArrayBuffer(_BATCH), (libpttread.Position * _BATCH)()
    found = []
    # Most are of the beginning, where threads begin, or of the last moments.
    gaps = np.flatnonzero(np.diff(times) > (times[-1] - times[0]) // _RUNS) + 1
    for run in np.split(times, gaps):
        cursor.seek_key(reader.key_of_time(int(run[0])))
        cursor.limit_key(reader.key_of_time(int(run[-1]) + 1))
        while cursor.pick(buffer, places, None, _BATCH)[1]:
            ts, threads = buffer.column("ts"), buffer.column("thread")
            for at in _hits(ts, run).tolist():
                count = wanted.get((int(ts[at]), who[threads[at]]), 0)
                if count:
                    found.append((libpttread.Position.from_buffer_copy(places[at]), count))
    return found


def _hits(ts: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which times are among others, which are in their order."""
    at = np.minimum(np.searchsorted(times, ts), len(times) - 1)
    return np.flatnonzero(times[at] == ts)
