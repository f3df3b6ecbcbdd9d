"""Runs the model over slices of time, each in its own process, with the same rows as one model.

One pass over all events makes no rows, and saves the model's state at the beginning of each slice.
The state has the earlier waits and holds and their numbers. So a slice needs no earlier slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace.analysis.model import (
    Window,
    begin_window,
    finish_model,
    model_rows,
    model_sums,
    new_model,
    row_flags,
)
from nptltrace.errors import PttError, UsageError
from nptltrace.trace.reading.prefetch import followed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa

    from nptltrace.trace.traceset import Traceset

__all__ = ["cuts", "rows_of_slice", "tables_and_states"]

_BINS = 4096


def cuts(source: Traceset, slices: int) -> list[int]:
    """Return times that cut a traceset into slices of about as many events.

    Args:
        source: The opened traces.
        slices: Number of slices; there are fewer slices if too many events have the same time.

    Raises:
        UsageError: The traces are a part of a recording.
    """
    if Window().of(source) != Window():
        raise UsageError("slices need a whole recording, and this trace is a part of a recording")
    keys = source.reader.key_range()
    if keys is None:
        return []
    first, last = (source.reader.time_of_key(key) for key in keys)
    width = (last - first) // _BINS + 1
    bins, _ = source.reader.density(first, width, _BINS)
    seen = np.cumsum(np.asarray(bins).astype(np.int64))
    wanted = np.arange(1, slices) * int(seen[-1]) // slices
    ends = np.unique(np.searchsorted(seen, wanted, side="right"))
    return [first + int(end) * width for end in ends if end]


def tables_and_states(
    source: Traceset,
    rows: Collection[str],
    times: Sequence[int],
    save: Callable[[int, libptttrack_sums.Model], None],
) -> Iterator[tuple[str, pa.Table]]:
    """Follow all events; yield the tables `threads`, `objects`, `edges` and `blames`.

    Args:
        source: The opened traces.
        rows: The tables that slices will make of waits, holds, wakeups and states.
        times: Beginnings of all slices after the first slice, in ns.
        save: Takes the number of a slice, and the model at the beginning of the slice.
    """
    model = new_model(source, _flags(rows))
    begin_window(model, source, Window())
    cursor = libpttread.Cursor(source.reader)
    for number, end_ns in enumerate([*times, None]):
        for _ in _fed(source, model, cursor, end_ns):
            model.drop_rows()
        if end_ns is not None:
            save(number + 1, model)
    finish_model(model, source)
    yield from model_sums(model, source, edges=True)


def rows_of_slice(
    source: Traceset, rows: Collection[str], times: Sequence[int], number: int, state: bytes | None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of a slice in pieces, each with its table's name.

    Args:
        source: The opened traces.
        rows: The tables that the states were saved for.
        times: Beginnings of all slices after the first slice, in ns.
        number: Number of the slice, from 0.
        state: The state at the beginning of the slice; None for the first slice.

    Raises:
        PttError: The state is damaged.
    """
    model = new_model(source, _flags(rows))
    cursor = libpttread.Cursor(source.reader)
    if state is None:
        begin_window(model, source, Window())
    elif model.resume(state):
        cursor.seek_key(source.reader.key_of_time(times[number - 1]))
    else:
        raise PttError(f"the state of slice {number} is damaged, or of another build of PTT")
    last = number == len(times)
    for _ in _fed(source, model, cursor, None if last else times[number]):
        yield from model_rows(model, rows)
        model.drop_rows()
    if last:
        finish_model(model, source)
    yield from model_rows(model, rows)


def _flags(rows: Collection[str]) -> int:
    """Return the flags of the model. All slices need the same flags: a state depends on them."""
    return row_flags(rows) | libptttrack_sums.EDGES


def _fed(
    source: Traceset, model: libptttrack_sums.Model, cursor: libpttread.Cursor, end_ns: int | None
) -> Iterator[None]:
    """Feed a model the events up to a time, and yield after each batch."""
    for buffer in followed(source, cursor, end_ns, processors=True):
        model.feed(buffer)
        yield
