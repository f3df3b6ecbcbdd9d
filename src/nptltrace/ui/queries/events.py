"""The event list: a few hundred events that pass the filters, around a place.

A place is a position of the reader. So a user can go through the list in both directions, part by
part, and sees each event once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding import libpttread, libpttread_text
from nptltrace._binding.headers.pttread import PTT_CPU_UNKNOWN
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.question_scope import generation_at
from nptltrace.catalog import BY_ID
from nptltrace.errors import UsageError
from nptltrace.trace.printing import Printer
from nptltrace.trace.reading import arrow
from nptltrace.trace.reading.cursor import Position
from nptltrace.trace.selection import Selection
from nptltrace.ui import protocol
from nptltrace.ui.queries.naming import shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.trace.objects.chosen import Chosen
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset
    from nptltrace.ui.queries.naming import Naming
    from nptltrace.ui.queries.rows import Rows

__all__ = ["MAX_COUNT", "EventList", "Filters"]

MAX_COUNT = 5000
# A search ends after this time. The answer then has the events that were found in this time.
_SEARCH_S = 0.1
_STEP = 1 << 18
_PLACE = np.dtype([("key", "u8"), *((name, "u4") for name in ("stream", "packet", "offset", "_"))])


@dataclass(frozen=True, slots=True)
class Filters:
    """Which events to list.

    Attributes:
        threads: Numbers of threads in the traceset; None for all.
        objects: Rows of objects; None for all.
        event: Beginnings of event names, as for `--event`.
        site: As for `--site`.
        pid: As for `--pid`.
        tid: As for `--tid`.
        on: As for `--object`.
        text: Part of the sentence, in upper or lower case.
        readings: Whether to list events of the scheduler, too, if `event` is empty.
    """

    threads: list[int] | None = None
    objects: list[int] | None = None
    event: str = ""
    site: str = ""
    pid: str = ""
    tid: str = ""
    on: str = ""
    text: str = ""
    readings: bool = True


@dataclass(frozen=True, slots=True)
class _Passing:
    """Which events pass the filters.

    Attributes:
        native: The filter of the reader; None if the reader lets all events pass.
        text: Part of the sentence.
        objects: Rows of objects; None for all. The reader knows only addresses of objects.
        rows: Finds rows of the timeline; None if `objects` is None.
    """

    native: libpttread.Filter | None
    text: str
    objects: frozenset[int] | None
    rows: Rows | None


@dataclass(slots=True)
class _Piece:
    """Some events in order, their positions and their sentences."""

    buffer: libpttread.Buffer
    places: NDArray[Any]
    sentences: list[str]


class EventList:
    """Lists events of opened traces. Only one thread at a time may ask.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        naming: Names threads.
        identity: Part of each position, so that positions of other traces are refused.
    """

    def __init__(self, source: Traceset, symbols: Symbols, naming: Naming, identity: str) -> None:
        self._source, self._symbols, self._naming = source, symbols, naming
        self._identity = identity
        self._cursor = libpttread.Cursor(source.reader)
        self._printer: Printer | None = None

    def refresh(self) -> None:
        """Take in the packets that were written since the last call."""
        self._cursor.refresh()
        if self._printer is not None:
            self._printer.renew()

    # ---- questions ----

    def forward(
        self, position: str, t_ns: int, count: int, filters: Filters, rows: Rows | None
    ) -> pa.Table:
        """Return the events from a place on.

        Args:
            position: The position to begin at, or the empty text to begin at `t_ns`.
            t_ns: The time to begin at.
            count: How many events to return at most.
            filters: Which events to return.
            rows: Finds rows of the timeline.
        """
        passing = self._filter(filters, rows)
        self._go(position, t_ns)
        pieces: list[_Piece] = []
        left, end = count, time.monotonic() + _SEARCH_S
        while left > 0:
            piece, looked = self._pick(min(left, MAX_COUNT), passing, _STEP)
            left -= len(piece.sentences)
            pieces.append(piece)
            if looked < _STEP and left > 0 and not self._more():
                break
            if time.monotonic() > end:
                break
        more = self._more()
        return self._table(pieces, rows, more=more, place=self._cursor.place())

    def backward(
        self, position: str, t_ns: int, count: int, filters: Filters, rows: Rows | None
    ) -> pa.Table:
        """Return the last events before a place; see `forward`."""
        passing = self._filter(filters, rows)
        self._go(position, t_ns)
        pieces: list[_Piece] = []
        left, until = count, time.monotonic() + _SEARCH_S
        end = self._cursor.place()
        range_ = self._source.reader.key_range()
        first = 0 if range_ is None else range_[0]
        width = self._width(count)
        while left > 0 and (end.key > first or end.stream or end.packet or end.offset):
            last = range_[1] + 1 if end.stream == libpttread.ANY and range_ else end.key
            begin = max(last - width, first)
            nearest, looked = self._between(begin, end, left, passing)
            if nearest is None:
                width = max(width // 8, 1)  # reading all of these events would take too long
                if last - width >= last:
                    break
                continue
            pieces[:0] = nearest
            left -= sum(len(piece.sentences) for piece in nearest)
            self._cursor.no_limit()
            self._cursor.seek_key(begin)
            end = self._cursor.place()
            if left <= 0 or begin <= first:
                break
            if looked < _STEP:
                width *= 4
            if time.monotonic() > until:
                break
        if pieces and left <= 0:
            end = _place_of(pieces[0].places[0])
        self._cursor.no_limit()
        self._cursor.seek_key(first)
        start = self._cursor.place()
        more = (end.key, end.stream, end.packet, end.offset) > (
            start.key, start.stream, start.packet, start.offset,
        )  # fmt: skip
        return self._table(pieces, rows, more=more, place=end)

    def stack_at(self, t_ns: int, count: int, filters: Filters, rows: Rows) -> list[str]:
        """Return the call stack of the first event at a time that has a stack; empty if none has.

        Args:
            t_ns: The time.
            count: How many events to look at.
            filters: Which events to look at.
            rows: Finds rows of the timeline.
        """
        self._go("", t_ns)
        buffer, _ = self._pick(count, self._filter(filters, rows), _STEP)
        columns = (_column(buffer.buffer, name) for name in ("ts", "stack", "site", "thread"))
        ts, stacks, sites, threads = columns
        for at in np.flatnonzero((ts == t_ns) & (stacks != 0)).tolist():
            process, _ = self._source.thread_ids[int(threads[at])]
            return self._naming.stack(process, int(stacks[at]), int(sites[at]))
        return []

    # ---- reading ----

    def _go(self, position: str, t_ns: int) -> None:
        self._cursor.no_limit()
        if not position:
            self._cursor.seek_key(self._source.reader.key_of_time(t_ns))
            return
        place = Position.parse(position)
        if place.traceset != self._identity:
            raise UsageError("the position belongs to another trace")
        if not self._cursor.seek(place.place()):
            raise UsageError("the position names no event of this trace")

    def _more(self) -> bool:
        return self._cursor.place().stream != libpttread.ANY

    def _width(self, count: int) -> int:
        """Return the width of a range of keys with about `count` events."""
        reader = self._source.reader
        keys = reader.key_range()
        if keys is None:
            return 1
        events = sum(reader.trace_info(trace.number).events for trace in self._source.traces)
        return max((keys[1] - keys[0]) * 2 * count // max(events, 1), 1)

    def _between(
        self,
        begin: int,
        end: libpttread.Position,
        count: int,
        passing: _Passing,
    ) -> tuple[list[_Piece] | None, int]:
        """Return the last events between a key and a place; None if there are too many."""
        self._cursor.no_limit()
        self._cursor.seek_key(begin)
        if end.stream != libpttread.ANY:
            self._cursor.limit(end)
        pieces: list[_Piece] = []
        looked = 0
        while True:
            piece, n = self._pick(MAX_COUNT, passing, _STEP)
            looked += n
            if len(piece.sentences):
                pieces.append(piece)
            if n == 0:
                break
            if looked > 8 * _STEP and begin + 1 < end.key:
                return None, looked
        self._cursor.no_limit()
        return _tail(pieces, count), looked

    def _pick(self, count: int, passing: _Passing, budget: int) -> tuple[_Piece, int]:
        """Return the next events that pass the filters, at most `count`, and how many were read."""
        buffer = libpttread.Buffer(count)
        places = (libpttread.Position * count)()
        _, looked = self._cursor.pick(buffer, places, passing.native, budget)
        kept_places = np.frombuffer(memoryview(places).cast("B"), _PLACE)[: buffer.count].copy()
        if passing.objects is not None:
            assert passing.rows is not None  # noqa: S101
            rows = np.array(self._object_rows(buffer, passing.rows), np.uint32)
            at = np.flatnonzero(np.isin(rows, list(passing.objects)))
            _keep(buffer, at)
            kept_places = kept_places[at]
        sentences = self._sentences(buffer)
        if not passing.text:
            return _Piece(buffer, kept_places, sentences), looked
        from pyarrow import compute  # not needed for the first picture

        hits = compute.match_substring(arrow.texts(sentences), passing.text, ignore_case=True)
        at = np.flatnonzero(hits.to_numpy(zero_copy_only=False))
        _keep(buffer, at)
        return _Piece(buffer, kept_places[at], [sentences[i] for i in at]), looked

    def _object_rows(self, buffer: libpttread.Buffer, rows: Rows) -> list[int]:
        """Return the row of the object of each event."""
        threads = self._source.thread_ids
        owners = [threads[n][0] for n in _column(buffer, "thread").tolist()]
        columns = (_column(buffer, name).tolist() for name in ("object", "id", "ts"))
        return rows.rows_of_objects(owners, *columns)

    def _sentences(self, buffer: libpttread.Buffer) -> list[str]:
        if self._printer is None:
            self._printer = Printer(
                self._source, self._symbols, Selection(), style="text", write=lambda _: None
            )
        self._printer.name(buffer)
        data = b"".join(
            bytes(piece) for piece in self._printer.names.text(buffer, libpttread_text.SENTENCE)
        )
        return data.decode("utf-8", "replace").split("\n")[: buffer.count]

    def _filter(self, filters: Filters, rows: Rows | None) -> _Passing:
        """Return which events pass the filters."""
        objects = filters.objects if rows is not None else None
        pairs = None if objects is None or rows is None else rows.chosen(objects)
        native = self._native(filters, pairs)
        return _Passing(native, filters.text, None if objects is None else frozenset(objects), rows)

    def _native(self, filters: Filters, pairs: list[Chosen] | None) -> libpttread.Filter | None:
        """Return the filter of the reader; `pairs` are objects."""
        chosen = Selection(
            pids=[filters.pid] if filters.pid else [],
            tids=[filters.tid] if filters.tid else [],
            objects=[filters.on] if filters.on else [],
            events=[filters.event] if filters.event else [],
            scheduler=bool(filters.readings),
            sites=[filters.site] if filters.site else [],
            generation=generation_at,
        )
        if not chosen and filters.threads is None and pairs is None:
            return None
        return chosen.build(self._source, self._symbols, threads=filters.threads, objects=pairs)

    # ---- tables ----

    def _table(
        self, pieces: list[_Piece], rows: Rows | None, *, more: bool, place: libpttread.Position
    ) -> pa.Table:
        """Return the events as a table."""
        tables = [self._rows(piece, rows) for piece in pieces if piece.sentences]
        table = pa.concat_tables([protocol.EVENTS.empty_table(), *tables])
        metadata = {"done": "0" if more else "1", "next": self._text(place) if more else ""}
        if place.stream != libpttread.ANY:
            metadata["searched_ns"] = str(self._source.reader.time_of_key(place.key))
        return table.replace_schema_metadata(metadata)

    def _text(self, place: libpttread.Position) -> str:
        return str(Position(place.key, place.stream, place.packet, place.offset, self._identity))

    def _rows(self, piece: _Piece, rows: Rows | None) -> pa.Table:
        buffer = piece.buffer
        threads, processes = self._source.thread_ids, self._source.processes
        number = _column(buffer, "thread").tolist()
        pairs = [threads[n] for n in number]
        objects, sites = (_column(buffer, name).tolist() for name in ("object", "site"))
        ts, ids = _column(buffer, "ts"), _column(buffer, "id").tolist()
        cpu = _column(buffer, "cpu").astype(np.int32)
        cpu[cpu == PTT_CPU_UNKNOWN] = -1
        owners = [process for process, _ in pairs]
        events = [BY_ID[n].name if n in BY_ID else f"EVENT_{n}" for n in ids]
        columns: list[Any] = [
            [self._text(_place_of(place)) for place in piece.places],
            ts,
            [processes[process].pid for process in owners],
            [tid for _, tid in pairs],
            cpu,
            rows.rows_of_threads(pairs, ts.tolist()) if rows else [0] * len(pairs),
            self._naming.thread_labels(number, [tid for _, tid in pairs], ts.tolist()),
            events,
            [f"{address:#x}" if address else "" for address in objects],
            self._object_rows(buffer, rows) if rows else [0] * len(pairs),
            [self._naming.site(process, at) for process, at in zip(owners, sites, strict=True)],
            [shortened(sentence) for sentence in piece.sentences],
        ]  # fmt: skip
        return protocol.table(
            protocol.EVENTS, dict(zip(protocol.EVENTS.names, columns, strict=True))
        )


def _place_of(place: Any) -> libpttread.Position:
    key, stream, packet, offset, _ = place.tolist()
    return libpttread.Position(key, stream, packet, offset, 0)


def _column(buffer: libpttread.Buffer, name: str) -> NDArray[Any]:
    """Return the filled part of a column."""
    array = buffer.arrays[name]
    return np.frombuffer(array, np.dtype(array._type_))[: buffer.count]


def _keep(buffer: libpttread.Buffer, at: NDArray[Any]) -> None:
    """Remove all but some events from a buffer."""
    for name in buffer.arrays:
        column = _column(buffer, name)
        column[: len(at)] = column[at]
    buffer.count = len(at)


def _tail(pieces: list[_Piece], count: int) -> list[_Piece]:
    """Return the last events of some pieces."""
    kept: list[_Piece] = []
    for piece in reversed(pieces):
        size = len(piece.sentences)
        if count <= 0:
            break
        if size > count:
            at = np.arange(size - count, size)
            _keep(piece.buffer, at)
            piece.places, piece.sentences = piece.places[at], piece.sentences[size - count :]
        kept.insert(0, piece)
        count -= size
    return kept
