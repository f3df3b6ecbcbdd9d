"""Reads the events of a traceset from one place to another, as Arrow tables."""

from __future__ import annotations

import operator
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace.errors import UsageError, near
from nptltrace.trace.reading.columns import (
    FIELD_NAMES,
    ArrayBuffer,
    Converter,
    with_words_that_occur,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.trace.traceset import Traceset

__all__ = ["EventCursor", "Position", "check_fields", "check_time", "joined"]

_BATCH = 65536
_VERSION = "1"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a traceset: before an event, or at the end.

    Positions of one traceset compare in the order of their events. `Position.parse(str(position))`
    is equal to `position`, in another process too.

    Attributes:
        key: Orders events by time.
        stream: Number of the stream; `2**32 - 1` at the end.
        packet: Number of the packet in the stream.
        offset: Bytes from the start of the packet.
        traceset: Identity of the traces.
    """

    key: int
    stream: int
    packet: int
    offset: int
    traceset: str = field(compare=False)

    def __str__(self) -> str:
        """Return the position as text, for `parse`."""
        numbers = (self.key, self.stream, self.packet, self.offset)
        return ":".join([_VERSION, self.traceset, *(f"{number:x}" for number in numbers)])

    @classmethod
    def parse(cls, text: str) -> Position:
        """Return the position of a text.

        Raises:
            UsageError: The text is not a position.
        """
        try:
            version, traceset, *numbers = text.split(":")
            key, stream, packet, offset = (int(number, 16) for number in numbers)
        except ValueError:
            raise UsageError(f"{text!r} is not a position") from None
        fits = 0 <= key < 2**64 and all(0 <= n < 2**32 for n in (stream, packet, offset))
        if version != _VERSION or not fits:
            raise UsageError(f"{text!r} is not a position")
        return cls(key, stream, packet, offset, traceset)

    def place(self) -> libpttread.Position:
        """Return the position in the form of the native reader."""
        return libpttread.Position(self.key, self.stream, self.packet, self.offset, 0)


class EventCursor:
    """Reads events from a place in a traceset on.

    Args:
        traceset: The opened traces.
    """

    def __init__(self, traceset: Traceset) -> None:
        self._traceset = traceset
        self._cursor = libpttread.Cursor(traceset.reader)
        self._converter = Converter(traceset)
        uuids = b"".join(trace.metadata.uuid.bytes for trace in traceset.traces)
        self._identity = sha256(uuids).hexdigest()[:12]

    def close(self) -> None:
        """Free the native cursor."""
        self._cursor.close()

    def refresh(self) -> None:
        """Take in new events and threads of the traceset, and stay at the same place."""
        self._cursor.refresh()
        self._converter.renew()

    def position(self) -> Position:
        """Return the place before the next event."""
        place = self._cursor.place()
        return Position(place.key, place.stream, place.packet, place.offset, self._identity)

    def seek(self, place: int | Position) -> None:
        """Go to the first event at a time (in ns) or later, or to a position.

        Raises:
            UsageError: The position belongs to other traces, or its event cannot be read.
        """
        if not isinstance(place, Position):
            self._cursor.seek_key(self._traceset.reader.key_of_time(check_time(place)))
            return
        self._check(place)
        before = self._cursor.place()
        if not self._cursor.seek(place.place()):
            self._cursor.seek(before)
            raise UsageError(f"position {place} names no event of these traces")

    def read(
        self, until: int | Position | None, max_events: int | None, fields: Sequence[str] | None
    ) -> pa.Table:
        """Read events up to a time, a position or a number of events; see `Traceset.read`."""
        check_fields(fields or ())
        if isinstance(until, Position):
            self._check(until)
        elif until is not None:
            until = check_time(until)
        if max_events is not None and max_events < 0:
            raise UsageError(f"max_events must not be negative, as {max_events} is")
        if isinstance(until, Position):
            self._cursor.limit(until.place())
        elif until is not None:
            self._cursor.limit_key(self._traceset.reader.key_of_time(until))
        else:
            self._cursor.no_limit()
        tables: list[pa.Table] = []
        left = max_events
        while left is None or left > 0:
            buffer = ArrayBuffer(_BATCH if left is None else min(left, _BATCH))
            if not self._cursor.read(buffer):
                break
            tables.append(self._converter.table(buffer, fields))
            left = None if left is None else left - buffer.count
        self._traceset.reader.ensure_whole()
        self._cursor.no_limit()
        return joined(tables or [self._converter.table(ArrayBuffer(1), fields or ())])

    def _check(self, position: Position) -> None:
        if position.traceset != self._identity:
            raise UsageError(f"position {position} belongs to other traces")


def joined(tables: list[pa.Table]) -> pa.Table:
    """Return a table of all rows of tables. Columns that a table lacks are null in its rows."""
    return with_words_that_occur(pa.concat_tables(tables, promote_options="default"))


def check_time(t_ns: int) -> int:
    """Return a time as an integer of Python.

    Raises:
        UsageError: The time is not a whole number.
    """
    try:
        return operator.index(t_ns)
    except TypeError:
        raise UsageError(f"a time is a whole number of ns, not {t_ns!r}") from None


def check_fields(fields: Sequence[str]) -> None:
    """Refuse names that no field of an event has.

    Raises:
        UsageError: A name is not the name of a field, or `fields` is a single text.
    """
    if isinstance(fields, str):
        raise UsageError(f"fields must be a list of names, such as [{fields!r}]")
    for name in fields:
        if name not in FIELD_NAMES:
            raise UsageError(f"no event has a field {name}{near(name, FIELD_NAMES)}")
