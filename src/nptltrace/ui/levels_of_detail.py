"""The levels of detail of a traceset. They are made by reading it once, and kept in a file."""

from __future__ import annotations

import io
import os
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libpttread, libptttrack_drawing, libptttrack_sums
from nptltrace.analysis.model import (
    Window,
    add_parents,
    add_purposes,
    add_site_uses,
    begin_window,
    finish_model,
    new_model,
    share_memory,
)
from nptltrace.analysis.snapshots import Keeper
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.errors import NativeError
from nptltrace.trace.filtered import whole_filter
from nptltrace.trace.reading.prefetch import reading_ahead
from nptltrace.ui import protocol
from nptltrace.ui.folder import identity_of
from nptltrace.ui.model_tables import Tables
from nptltrace.ui.ongoing import Ongoing

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock

    from numpy.typing import NDArray

    from nptltrace.trace.reading.columns import ArrayBuffer
    from nptltrace.trace.traceset import Traceset
    from nptltrace.ui.folder import Folder

__all__ = ["Levels"]

_IDS = 1024
# Beyond every time of a trace.
_FAR = 2**61
# If a lock has more spans during a wait, the holders are not listed.
_MOST_SPANS = 200_000
_PROCESSORS = 1 << 16
_CONTENDED = WAIT_CLASSES.index("contended")
_HELD = protocol.STATES.index("held")
# How often the page is updated while a trace is read.
_SHOWN_S = 0.5


class Levels:
    """Reads a traceset from its beginning, or opens the kept files.

    Args:
        source: The opened traces.
        folder: Where to keep the levels.
        lock: Held while data changes that questions use.

    Attributes:
        detail: The native half; None until `begin` or `open`.
        tables: The tables of the model so far.
        model: The model; None before `begin`, and after the report was made.
        ongoing: Waits and holds that go on at the present time of the model; None when all was
            read.
        until_ns: Everything before this time is there.
        ready: The whole trace was read.
    """

    def __init__(self, source: Traceset, folder: Folder, lock: RLock) -> None:
        self._source, self._folder, self._lock = source, folder, lock
        self.detail: libptttrack_drawing.Detail | None = None
        self.tables: Tables | None = None
        self.model: libptttrack_sums.Model | None = None
        self.ongoing: Ongoing | None = None
        self.until_ns = 0
        self.ready = False
        self.kept = False
        self._threads = 0
        self._shared = (0, 0)
        self._codes = 0
        self._counts = np.zeros(_IDS, np.int64)
        self._path = _empty()["segments"]
        self._read_events = 0

    @property
    def progress(self) -> float:
        """How much of the trace was read, 0 to 1."""
        if self.ready:
            return 1.0
        total = sum(self._source.reader.trace_info(t.number).events for t in self._source.traces)
        return min(self._read_events / total, 0.999) if total else 0.0

    @property
    def end_ns(self) -> int:
        """The time of the last event, or a later end of a process with waits up to its end."""
        last = self._source.end_ns() or 0
        if self.tables is None or len(self.tables.threads) < 2:  # noqa: PLR2004 -- 0 is none
            return last
        return max(last, int(self.tables.threads["last_ns"][1:].max()))

    # ---- questions ----

    def spans(
        self, by: str, rows: list[int], from_ns: int, to_ns: int, bin_ns: int
    ) -> NDArray[Any]:
        """Return the spans to draw in some rows, with the waits and holds that go on.

        Args:
            by: `thread`, `object` or `processor`.
            rows: The rows.
            from_ns: When the range begins.
            to_ns: The first time after the range.
            bin_ns: Width of a bin. Shorter spans of the same state and bin are drawn as one.
        """
        with self._lock:
            assert self.detail is not None  # noqa: S101
            # Threads report their turns late. Before all was read, a processor would look idle.
            known = [] if by == "processor" and not self.ready else rows
            spans = self.detail.spans(by, known, from_ns, to_ns, bin_ns)
            return self._with_ongoing(spans, by, known, from_ns, to_ns)

    def single_spans(self, by: str, row: int, from_ns: int, to_ns: int) -> NDArray[Any] | None:
        """Return the spans of a row in a range, without merged spans; None if too many."""
        with self._lock:
            if self.detail is None or not -_FAR < from_ns < to_ns < _FAR:
                return None
            spans = self.detail.each(by, row, from_ns, to_ns, _MOST_SPANS)
            if spans is None:
                return None
            return self._with_ongoing(spans, by, [row], from_ns, to_ns)

    def _with_ongoing(
        self, spans: NDArray[Any], by: str, rows: list[int], from_ns: int, to_ns: int
    ) -> NDArray[Any]:
        if self.ongoing is None or by == "processor":
            return spans
        spans = np.concatenate([spans, self.ongoing.spans(by, rows, from_ns, to_ns)])
        return spans[np.argsort(spans["row"], kind="stable")]

    def hold(self, row: int, lane: int, t_ns: int) -> Any:
        """Return the hold of a thread in a lane at a time, as a span; None if there is none."""
        inside = 0 < row < 2**32 and 0 < lane < 2**16 and -(2**62) < t_ns < 2**62
        with self._lock:
            hold = self.detail.find("thread", row, lane, t_ns) if self.detail and inside else None
            if hold is None and self.ongoing is not None:
                hold = self.ongoing.hold(row, lane, t_ns)
            return hold

    def held_since(self, thread: int, row: int, t_ns: int) -> int | None:
        """Return the start of a thread's hold of an object at a time; None without a hold."""
        if not thread or not row or self.detail is None or not 0 <= t_ns < 2**62:
            return None
        spans = self.spans("object", [row], t_ns, t_ns + 1, 1)
        held = spans[(spans["state"] >= _HELD) & (spans["other"] == thread)]
        return int(held["t_ns"].min()) if len(held) else None

    def lanes(self, by: str, count: int) -> NDArray[Any]:
        """Return the number of lanes of each of the first `count` rows."""
        with self._lock:
            assert self.detail is not None  # noqa: S101
            lanes = self.detail.lanes(by, count)
            return lanes if self.ongoing is None else self.ongoing.lanes(by, lanes)

    def turns(self) -> NDArray[Any]:
        """Return the turns on each processor, merged into one span for each way to end."""
        with self._lock:
            assert self.detail is not None  # noqa: S101
            count = min(self.detail.rows("processor"), _PROCESSORS)
            return self.spans("processor", list(range(count)), -_FAR, _FAR, _FAR)

    # ---- kept files ----

    def open(self) -> bool:
        """Open the kept files; False if these traces have none."""
        identity = identity_of(self._source)
        tables, fd = self._open_tables(identity), self._folder.read("detail")
        if fd is None:
            return False
        try:
            detail = libptttrack_drawing.Detail(fd, identity)
        except NativeError:
            return False
        finally:
            os.close(fd)
        if tables is None:
            return False
        with self._lock:
            self.detail, self.tables = detail, tables
            self.until_ns = self.end_ns + 1
            self.ready = self.kept = True
        return True

    def _open_tables(self, identity: bytes) -> Tables | None:
        fd = self._folder.read("tables")
        if fd is None:
            return None
        dtypes = {name: array.dtype for name, array in _empty().items()}
        arrays: dict[str, NDArray[Any]] = {}
        try:
            with os.fdopen(fd, "rb") as file:
                if file.read(32) != identity:
                    return None
                left = os.fstat(file.fileno()).st_size
                for name, dtype in dtypes.items():
                    count = int.from_bytes(file.read(8), "little")
                    if count * dtype.itemsize > left:
                        return None
                    arrays[name] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
                tables = Tables(**arrays)
                return tables if tables.sound() else None
        except (OSError, ValueError):
            return None

    def _keep(self) -> None:
        """Finish the files, and give them their names, if there is room for both."""
        assert self.detail is not None and self.tables is not None  # noqa: S101, PT018
        identity = identity_of(self._source)
        self.detail.finish(identity)
        out = io.BytesIO()
        out.write(identity)
        for field in fields(Tables):
            array = getattr(self.tables, field.name)
            out.write(len(array).to_bytes(8, "little"))
            out.write(array.tobytes())
        try:
            with os.fdopen(self._folder.create("tables"), "wb") as file:
                file.write(out.getbuffer())
        except OSError:
            self._folder.drop("tables")
            return
        self._folder.keep("tables")
        self._folder.keep("detail")
        self.kept = True

    # ---- reading ----

    def begin(self) -> None:
        """Begin to read.

        Raises:
            NativeError: There is no room for the file.
        """
        fd = self._folder.create("detail")
        try:
            detail = libptttrack_drawing.Detail(fd)
        finally:
            os.close(fd)
        self._cursor = libpttread.Cursor(self._source.reader)
        self._whole = whole_filter(self._source)
        kept = libptttrack_sums.ROWS | libptttrack_sums.STATES_OF
        kept |= libptttrack_sums.EDGES | libptttrack_sums.PATH
        self.model = new_model(self._source, kept)
        begin_window(self.model, self._source, Window())
        self._keeper = Keeper(self._source, self.model)
        self._threads = self._source.reader.thread_count()
        with self._lock:
            self.detail = detail
        self.show()

    def read(
        self, until_ns: int | None, stop: Callable[[], bool], changed: Callable[[], None]
    ) -> bool:
        """Read the events that were not read yet.

        Args:
            until_ns: Stop before this time; None for the end.
            stop: Returns whether to give up.
            changed: Called now and then, when the page can show more.

        Returns:
            Whether any event was read.
        """
        self._learn()
        if until_ns is None:
            self._cursor.no_limit()
        else:
            self._cursor.limit_key(self._source.reader.key_of_time(until_ns))
        shown, before = time.monotonic(), self._read_events
        with reading_ahead(self._cursor, processors=True) as batches:
            for buffer in batches:
                if stop():
                    break
                self._take(buffer)
                if time.monotonic() - shown > _SHOWN_S:
                    self.show()
                    changed()
                    shown = time.monotonic()
            else:
                if until_ns is not None:
                    with self._lock:
                        self.until_ns = max(self.until_ns, until_ns)
        return self._read_events > before

    def _take(self, buffer: ArrayBuffer) -> None:
        """Feed a batch of events to the model."""
        assert self.model is not None and self.detail is not None  # noqa: S101, PT018
        ts = buffer.column("ts")
        self._counts += np.bincount(buffer.column("id"), minlength=_IDS)[:_IDS]
        self._read_events += buffer.count
        until_ns = int(ts[-1])
        with self._lock:
            self.detail.events(ts.ctypes.data, len(ts))
        # All events are counted. The model gets only the events that it can rely on.
        if self._whole is not None:
            self._whole.apply(self._source.reader, buffer)
        self.model.feed(buffer)
        self._keeper.saw(ts)
        with self._lock:
            self.detail.feed(self.model)
            self.until_ns = until_ns
        self.model.drop_rows()

    def show(self) -> None:
        """Answer questions from all events that were read so far."""
        assert self.model is not None and self.detail is not None  # noqa: S101, PT018
        model = self.model
        waiting, holding = model.waiting(self.until_ns), model.holding(self.until_ns)
        self._show(waiting, holding)
        assert self.tables is not None  # noqa: S101
        _add_open(self.tables, waiting, holding)
        with self._lock:
            self.ongoing = Ongoing(waiting, holding, self.tables, self.until_ns)

    def _show(self, waiting: NDArray[Any], holding: NDArray[Any]) -> None:
        """Answer questions from the present tables.

        A row lasts at least as long as its waits and holds. A thread may end while it holds a lock:
        the thread then ends before the hold.
        """
        assert self.model is not None and self.detail is not None  # noqa: S101, PT018
        model = self.model
        threads, objects = model.table("threads"), model.table("objects")
        for rows in (waiting, holding):
            end = rows["t_ns"] + rows["dur_ns"]
            lives = threads["end_ns"][rows["thread"]] == libptttrack_sums.NEVER
            np.maximum.at(threads["last_ns"], rows["thread"][lives], end[lives])
            np.maximum.at(objects["last_ns"], rows["object"], end)
        with self._lock:
            row_of = self.detail.row_of()
            row_of = np.concatenate([row_of, np.zeros(len(objects) - len(row_of), np.uint32)])
            numbers = np.arange(len(row_of), dtype=np.uint32)
            first = np.zeros(self.detail.rows("object") or 1, np.uint32)
            first[row_of[::-1]] = numbers[::-1]
            first[0] = 0
            self.tables = Tables(
                threads=threads,
                objects=objects,
                sites=model.table("sites"),
                edges=model.table("edges")[1:],
                segments=self._path,
                row_of=row_of,
                first=first,
                events=self._counts.copy(),
            )

    def finish(self) -> None:
        """End the open waits and holds, and keep everything in files."""
        assert self.model is not None and self.detail is not None  # noqa: S101, PT018
        self._keeper.finish()
        finish_model(self.model, self._source)
        holding = self.model.table("holds")
        holding = holding[holding["open"] > 0]
        with self._lock:
            self.ongoing = None
            self.detail.feed(self.model)
            self.detail.end()
        self.model.drop_rows()
        pieces = [piece.copy() for piece in self.model.path()]
        self._path = np.concatenate([self._path, *pieces])[::-1]
        with self._lock:
            self._show(self.model.table("open"), holding)
            self.until_ns = self.end_ns + 1
            self.ready = True
        self._keep()

    def refresh(self) -> None:
        """Take in the packets that were written since the last call."""
        with self._lock:
            self._source.refresh()
            self._cursor.refresh()

    def close(self) -> None:
        """Remove the unfinished file."""
        if not self.kept:
            self._folder.drop("detail")

    def _learn(self) -> None:
        """Give the new threads and processes to the model."""
        assert self.model is not None  # noqa: S101
        reader, source = self._source.reader, self._source
        if reader.thread_count() != self._threads:
            for number, (owner, tid) in enumerate(reader.threads()):
                self.model.thread(number, owner, tid)
            self._threads = reader.thread_count()
            add_parents(self.model, source)
        processes = source.processes
        shared = (len(processes), sum(len(process.shared) for process in processes))
        if shared != self._shared:
            self._shared = shared
            share_memory(self.model, source)
        codes = sum(len(process.codes) for process in processes)
        if codes != self._codes:
            self._codes = codes
            add_purposes(self.model, source)
        add_site_uses(self.model, source)


def _add_open(tables: Tables, waiting: NDArray[Any], holding: NDArray[Any]) -> None:
    """Add the waits and holds that go on to the sums, up to the present time of the model."""
    contended = waiting[waiting["wait_class"] == _CONTENDED]
    for sums, number in ((tables.threads, "thread"), (tables.objects, "object")):
        places = waiting[number], waiting["wait_class"]
        np.add.at(sums["wait_n"], places, 1)
        np.add.at(sums["wait_ns"], places, waiting["dur_ns"].astype(np.uint64))
        longest = contended["dur_ns"].astype(sums["wait_max"].dtype)
        np.maximum.at(sums["wait_max"], contended[number], longest)
        np.add.at(sums["hold_n"], holding[number], 1)
        np.add.at(sums["hold_ns"], holding[number], holding["dur_ns"].astype(np.uint64))


def _empty() -> dict[str, NDArray[Any]]:
    """Return empty tables with the columns of the kept tables."""
    model = libptttrack_sums.Model()
    tables = {name: model.table(name)[:0] for name in ("threads", "objects", "sites", "edges")}
    tables["segments"] = model.table("segments")
    for name in ("row_of", "first"):
        tables[name] = np.zeros(0, np.uint32)
    tables["events"] = np.zeros(0, np.int64)
    return tables
