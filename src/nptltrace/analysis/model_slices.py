"""Runs the model over slices of time, each in a process of its own, with the rows of one model.

One pass over all events makes no rows and saves the model's state at the beginning of each slice. A
slice then needs no earlier slice: the state has the waits and holds that began before, and their
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace.analysis.model import (
    ROW_TABLES,
    Window,
    begin_window,
    finish_model,
    model_rows,
    model_sums,
    new_model,
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
        slices: How many; there are fewer where times are not so fine.

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
        rows: Which of waits, holds, wakeups and states slices are to make.
        times: Where slices but the first begin.
        save: Takes the number of a slice and the model where it begins.
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
    source: Traceset,
    rows: Collection[str],
    times: Sequence[int],
    number: int,
    state: bytes | None,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of a slice in pieces, each with its table's name.

    Args:
        source: The opened traces.
        rows: As the states were saved for.
        times: Where slices but the first begin.
        number: Of the slice, from 0.
        state: The state at its beginning; None for the first slice.

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
    """Return what a model keeps. All slices must keep the same, since a state depends on it."""
    flags = libptttrack_sums.ROWS if any(name in ROW_TABLES for name in rows) else 0
    flags |= libptttrack_sums.STATES_OF if "states" in rows else 0
    return flags | libptttrack_sums.EDGES


def _fed(
    source: Traceset,
    model: libptttrack_sums.Model,
    cursor: libpttread.Cursor,
    end_ns: int | None,
) -> Iterator[None]:
    """Feed a model the events up to a time, and yield after each batch."""
    for buffer in followed(source, cursor, end_ns, processors=True):
        model.feed(buffer)
        yield
