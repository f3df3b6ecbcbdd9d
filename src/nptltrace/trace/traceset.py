"""Several traces read as one, in the order of time; everything comes as Arrow tables.

`seek` and `read` go to a time or to a position, and read up to one. LTTV's words for them are there
too: `seek_time` and `middle_time`, which reads all events of its last time stamp, `seek_position`,
`middle_position` and `position_save`. Events with equal time stamps always come in one order.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace._binding import libpttread
from nptltrace.errors import ClosedError, UsageError, near
from nptltrace.trace.reading.columns import (
    FIELD_NAMES,
    ArrayBuffer,
    Converter,
    with_words_that_occur,
)
from nptltrace.trace.reading.parallel import parallel_batches
from nptltrace.trace.source import Source

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from nptltrace.trace.alignment import Alignment
    from nptltrace.trace.info import Process
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["Position", "Traceset", "check_fields", "check_time"]

_BATCH = 65536
_VERSION = "1"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a traceset: before one very event, or at the end.

    Positions of one traceset compare as their events follow one another. `str()` gives a text from
    which `Position.parse()` makes an equal position, in another process too.

    Attributes:
        key: Orders events by time.
        stream: Number of the stream, `2**32 - 1` at the end.
        packet: Number of the packet in the stream.
        offset: Bytes from the packet's start.
        traceset: Which traces it belongs to.
    """

    key: int
    stream: int
    packet: int
    offset: int
    traceset: str = field(compare=False)

    def __str__(self) -> str:
        """Return it as text."""
        numbers = (self.key, self.stream, self.packet, self.offset)
        return ":".join([_VERSION, self.traceset, *(f"{number:x}" for number in numbers)])

    @classmethod
    def parse(cls, text: str) -> Position:
        """Return the position that a text stands for.

        Raises:
            UsageError: It is no position.
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
        """Return it as the native reader has it."""
        return libpttread.Position(self.key, self.stream, self.packet, self.offset, 0)


class Traceset:
    """Traces opened for reading; see `nptltrace.open`.

    Args:
        paths: Trace directories.

    Raises:
        TraceFormatError: One of them is not a trace.
        UsageError: They cannot be read as one.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        self._source = Source(paths)
        self._closed = False
        self._open_cursor = libpttread.Cursor(self.source.reader)
        self._converter = Converter(self.source)
        uuids = b"".join(trace.metadata.uuid.bytes for trace in self.source.traces)
        self._identity = sha256(uuids).hexdigest()[:12]

    @property
    def source(self) -> Source:
        """The traces themselves: metadata, processes, damage.

        Raises:
            ClosedError: The traceset is closed.
        """
        self._ensure_open()
        return self._source

    @property
    def closed(self) -> bool:
        """Whether the traceset is closed."""
        return self._closed

    def close(self) -> None:
        """Close it. What it has returned stays valid; it may be closed twice."""
        self._closed = True
        self._open_cursor.close()
        self._source.reader.close()

    # ---- what it holds ----

    @property
    def start_unix_ns(self) -> int:
        """Unix time of time 0."""
        return self.source.start_unix_ns

    @property
    def alignment(self) -> Alignment:
        """How traces of several clocks or machines were put on one time line."""
        return self.source.alignment

    @property
    def processes(self) -> list[Process]:
        """The process images by their number, the `process` of tables."""
        return self.source.processes()

    def threads(self) -> pa.Table:
        """Return the threads: process, pid, tid, name."""
        self.source.learn_threads()
        processes, rows = self.source.processes(), self.source.threads()
        return pa.table(
            {
                "process": pa.array([process for process, _ in rows], pa.uint32()),
                "pid": pa.array([processes[process].pid for process, _ in rows], pa.uint32()),
                "tid": pa.array([tid for _, tid in rows], pa.uint32()),
                "name": pa.array(
                    [self.source.thread_name(number) for number in range(len(rows))], pa.string()
                ),
            }
        )

    def symbols(
        self,
        directories: Sequence[str | os.PathLike[str]] = (),
        aliases: Sequence[str | os.PathLike[str]] = (),
        skip: Sequence[str] = (),
    ) -> Symbols:
        """Return names for the addresses in columns `object` and `site`.

        Args:
            directories: Where to look first for programs and debug files, by build-id or name.
            aliases: Alias files, whose names win.
            skip: Patterns of functions and modules that are no call sites, as `Lck_*`.
        """
        from nptltrace.trace.passed_over import PassedOver
        from nptltrace.trace.symbols.alias import read_aliases
        from nptltrace.trace.symbols.lookup import Symbols

        return Symbols(self.source, read_aliases(aliases), directories, PassedOver(skip))

    def damages(self) -> list[libpttread.Damage]:
        """Return what could not be read so far; packets are checked when they are reached."""
        return self.source.damages()

    def refresh(self) -> None:
        """Take in what a running recording has written since; the place is kept."""
        self.source.refresh()
        self._cursor.refresh()
        self._converter.renew()

    # ---- reading on ----

    def position(self) -> Position:
        """Return the place before the event that would be read next."""
        place = self._cursor.place()
        return Position(place.key, place.stream, place.packet, place.offset, self._identity)

    def seek(self, place: int | Position) -> None:
        """Go to the first event at a time or later, in ns since the start, or to a position.

        Raises:
            UsageError: The position belongs to other traces, or its event cannot be read.
        """
        if not isinstance(place, Position):
            self._cursor.seek_key(self._key(place))
            return
        self._check(place)
        before = self._cursor.place()
        if not self._cursor.seek(place.place()):
            self._cursor.seek(before)
            raise UsageError(f"position {place} names no event of these traces")

    def read(
        self, until: int | Position | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events from here on.

        Args:
            until: End before this time, in ns since the start, or before the event of a position;
                None for no end.
            max_events: End earlier, after exactly this many.
            fields: Which of the events' own fields to add as columns; None for all that occur.
        """
        key = place = None
        if isinstance(until, Position):
            self._check(until)
            place = until.place()
        elif until is not None:
            key = self._key(until)
        table = self._read(key, place, max_events, fields)
        self._cursor.no_limit()
        return table

    # ---- the same in the words of LTTV ----

    def seek_time(self, t_ns: int) -> None:
        """Go to the first event at a time or later: `seek(t_ns)`."""
        self.seek(t_ns)

    def seek_position(self, position: Position) -> None:
        """Go to a saved position: `seek(position)`."""
        self.seek(position)

    def position_save(self) -> Position:
        """Return the place before the event that would be read next: `position()`."""
        return self.position()

    def middle_time(
        self, end_ns: int | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events that are before a time: `read(end_ns)`, but with whole time stamps.

        Args:
            end_ns: Events at this time or later are left for the next read; None for no end.
            max_events: End earlier, after this many, but not before the last one's time stamp is
                complete: events that share it are all delivered.
            fields: Which of the events' own fields to add as columns; None for all that occur.
        """
        tables = [self.read(end_ns, max_events, fields=fields)]
        if max_events is not None and tables[0].num_rows and tables[0].num_rows >= max_events:
            after = tables[0]["ts_ns"][-1].as_py() + 1
            end = after if end_ns is None else min(check_time(end_ns), after)
            tables.append(self.read(end, fields=fields))
        return _join(tables)

    def middle_position(
        self, end_position: Position | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events that are before a position: `read(end_position)`.

        Args:
            end_position: The event it names is not delivered; None for no end.
            max_events: End earlier, after exactly this many.
            fields: Which of the events' own fields to add as columns; None for all that occur.
        """
        return self.read(end_position, max_events, fields=fields)

    # ---- everything ----

    def batches(
        self, start_ns: int | None = None, end_ns: int | None = None,
        *, fields: Sequence[str] = (), batch_size: int = _BATCH,
    ) -> Iterator[pa.Table]:  # fmt: skip
        """Yield all events of a stretch of time in tables; the place of the calls above is kept.

        Args:
            start_ns: Begin here; None for the start.
            end_ns: End before this; None for the end.
            fields: Which of the events' own fields to add as columns.
            batch_size: Events a table.
        """
        check_fields(fields)
        if batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, not {batch_size}")
        start = None if start_ns is None else self._key(start_ns)
        end = None if end_ns is None else self._key(end_ns)
        yield from parallel_batches(
            self.source, self._converter, start, end, fields=fields, batch_size=batch_size
        )

    def events(
        self, start_ns: int | None = None, end_ns: int | None = None, *, fields: Sequence[str] = ()
    ) -> pa.Table:
        """Return all events of a stretch of time as one table; see `batches`."""
        return _join(list(self.batches(start_ns, end_ns, fields=fields)) or [self._empty(fields)])

    # ---- inside ----

    @property
    def _cursor(self) -> libpttread.Cursor:
        """Where reading goes on."""
        self._ensure_open()
        return self._open_cursor

    def _ensure_open(self) -> None:
        if self._closed:
            names = ", ".join(map(str, self._source.paths()))
            raise ClosedError(f"the traceset {names} is closed; open it again to read it")

    def _key(self, t_ns: int) -> int:
        """Return where events of a time or later begin."""
        return self.source.reader.key_of_time(check_time(t_ns))

    def _check(self, position: Position) -> None:
        if position.traceset != self._identity:
            raise UsageError(f"position {position} belongs to other traces")

    def _read(
        self,
        end_key: int | None,
        end_place: libpttread.Position | None,
        max_events: int | None,
        fields: Sequence[str] | None,
    ) -> pa.Table:
        """Read up to a limit."""
        check_fields(fields or ())
        if max_events is not None and max_events < 0:
            raise UsageError(f"max_events must not be negative, as {max_events} is")
        if end_key is not None:
            self._cursor.limit_key(end_key)
        elif end_place is not None:
            self._cursor.limit(end_place)
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
        self.source.reader.ensure_whole()
        return _join(tables or [self._empty(fields or ())])

    def _empty(self, fields: Sequence[str]) -> pa.Table:
        return self._converter.table(ArrayBuffer(1), fields)


def _join(tables: list[pa.Table]) -> pa.Table:
    """Return tables one after another; columns that some of them lack are null there."""
    return with_words_that_occur(pa.concat_tables(tables, promote_options="default"))


def check_time(t_ns: int) -> int:
    """Return a time.

    Raises:
        UsageError: It is not a whole number.
    """
    try:
        return operator.index(t_ns)
    except TypeError:
        raise UsageError(f"a time is a whole number of ns, not {t_ns!r}") from None


def check_fields(fields: Sequence[str]) -> None:
    """Refuse names that no field of an event has.

    Raises:
        UsageError: One of them is not a field.
    """
    if isinstance(fields, str):
        raise UsageError(f"fields must be a list of names, such as [{fields!r}]")
    for name in fields:
        if name not in FIELD_NAMES:
            raise UsageError(f"no event has a field {name}{near(name, FIELD_NAMES)}")
