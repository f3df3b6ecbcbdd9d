"""Reads the next batch of events while the caller uses a batch."""

from __future__ import annotations

from contextlib import closing, contextmanager
from itertools import cycle
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from nptltrace.trace.filtered import whole_filter
from nptltrace.trace.reading.cancellation import ensure_wanted
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from nptltrace._binding.libpttread import Cursor
    from nptltrace.trace.traceset import Traceset

__all__ = ["followed", "made_ahead", "reading_ahead", "whole_batches"]

_BATCH = 1 << 16

T = TypeVar("T")


@contextmanager
def reading_ahead(cursor: Cursor, *, processors: bool = False) -> Iterator[Iterator[ArrayBuffer]]:
    """Read the events of a cursor batch by batch, one batch ahead, within the block.

    A batch is valid until you take the next batch.

    Args:
        cursor: Read the events of this cursor up to its limit.
        processors: Whether to read the numbers of the processors too.
    """
    buffers = ArrayBuffer(_BATCH), ArrayBuffer(_BATCH)
    for buffer in buffers:
        if not processors:
            buffer.columns.cpu = None
    empty = cycle(buffers)

    def read() -> ArrayBuffer | None:
        buffer = next(empty)
        return buffer if cursor.read(buffer) else None

    with closing(made_ahead(read)) as batches:
        yield batches


def whole_batches(
    source: Traceset, cursor: Cursor, *, processors: bool = False
) -> Iterator[ArrayBuffer]:
    """Yield the events of a cursor that an analysis can rely on; see `whole_filter`.

    A batch is valid until you take the next batch.

    Args:
        source: The opened traces.
        cursor: Read the events of this cursor up to its limit.
        processors: Whether to read the numbers of the processors too.
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
        cursor: Begin at the place of this cursor.
        until_ns: Stop before this time, in ns since the traceset's start; None for the end.
        processors: Whether to read the numbers of the processors too.
    """
    if until_ns is None:
        cursor.no_limit()
    else:
        cursor.limit_key(source.reader.key_of_time(until_ns))
    yield from whole_batches(source, cursor, processors=processors)


def made_ahead(make: Callable[[], T | None]) -> Generator[T, None, None]:
    """Yield the results of a function until it returns None. A thread calls it one item ahead.

    Args:
        make: The function. No thread runs it when the generator is closed.

    Raises:
        CancelledError: Another thread has cancelled the work.
    """
    item = make()
    while item is not None:
        ensure_wanted()
        ahead = _Call(make)
        try:
            yield item
        finally:
            ahead.join()
        item = ahead.result()


class _Call(Thread, Generic[T]):
    """A call in a new thread. To import concurrent.futures takes longer than most such calls."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self._function = function
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Call the function."""
        try:
            self._results.append(self._function())
        except BaseException as error:  # noqa: BLE001 -- raised where the result is asked for
            self._error = error

    def result(self) -> T:
        """Return the result of the call, or raise its exception. The thread must have ended."""
        if self._error is not None:
            raise self._error
        return self._results.pop()
