"""Reads events while the ones before them are looked at."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nptltrace.trace.reading.cancellation import ensure_wanted
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace._binding.libpttread import Cursor

__all__ = ["reading_ahead"]

_BATCH = 1 << 16


@contextmanager
def reading_ahead(cursor: Cursor, *, processors: bool = False) -> Iterator[Iterator[ArrayBuffer]]:
    """Give what a cursor reads, batch by batch.

    A batch holds until the next one is taken. Nobody reads any more when the block is left.

    Args:
        cursor: What to read, up to its limit.
        processors: With the numbers of the processors.
    """
    with ThreadPoolExecutor(1) as pool:
        yield _batches(cursor, pool, processors=processors)


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
