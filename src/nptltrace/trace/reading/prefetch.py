"""Reads a batch of events while the batch before is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nptltrace.trace.filtered import whole_filter
from nptltrace.trace.reading.cancellation import ensure_wanted
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace._binding.libpttread import Cursor
    from nptltrace.trace.traceset import Traceset

__all__ = ["followed", "reading_ahead", "whole_batches"]

_BATCH = 1 << 16


@contextmanager
def reading_ahead(cursor: Cursor, *, processors: bool = False) -> Iterator[Iterator[ArrayBuffer]]:
    """Give what a cursor reads, batch by batch.

    A batch is valid until the next batch is taken. Reading ends when the block is left.

    Args:
        cursor: What to read, up to its limit.
        processors: With the numbers of the processors.
    """
    with ThreadPoolExecutor(1) as pool:
        yield _batches(cursor, pool, processors=processors)


def whole_batches(
    source: Traceset, cursor: Cursor, *, processors: bool = False
) -> Iterator[ArrayBuffer]:
    """Yield what a cursor reads, but no events that an analysis must not rely on.

    A batch is valid until the next batch is taken.

    Args:
        source: The opened traces.
        cursor: What to read, up to its limit.
        processors: With the numbers of the processors.
    """
    whole = whole_filter(source)
    with reading_ahead(cursor, processors=processors) as batches:
        for buffer in batches:
            if whole is not None:
                whole.apply(source.reader, buffer)
            yield buffer


def followed(
    source: Traceset, cursor: Cursor, until_ns: int | None, *, processors: bool = False
) -> Iterator[ArrayBuffer]:
    """Yield the events from a cursor up to a time, as `whole_batches`.

    Args:
        source: The opened traces.
        cursor: Where to go on.
        until_ns: Stop before this time, in ns since the traceset's start; None for the end.
        processors: With the numbers of the processors.
    """
    if until_ns is None:
        cursor.no_limit()
    else:
        cursor.limit_key(source.reader.key_of_time(until_ns))
    yield from whole_batches(source, cursor, processors=processors)


def _batches(
    cursor: Cursor, pool: ThreadPoolExecutor, *, processors: bool
) -> Iterator[ArrayBuffer]:
    full, empty = ArrayBuffer(_BATCH), ArrayBuffer(_BATCH)
    for buffer in (full, empty):
        if not processors:
            buffer.columns.cpu = None
    ahead = pool.submit(cursor.read, full)
    while ahead.result():
        ensure_wanted()
        ahead = pool.submit(cursor.read, empty)
        yield full
        full, empty = empty, full
