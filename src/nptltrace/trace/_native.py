"""The reader library through ctypes, literally: one class a handle, one place for failures.

Imports neither NumPy nor pyarrow, so that `ptt view` and `ptt stat` start fast.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nptltrace import _paths
from nptltrace.errors import NativeError, PttError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "ANY",
    "CODE",
    "CSV",
    "JSONL",
    "OBJECT",
    "RAW",
    "SITE",
    "TEXT",
    "Buffer",
    "Copy",
    "Cursor",
    "Damage",
    "Filter",
    "Names",
    "ObjectCount",
    "Place",
    "Reader",
    "ThreadCount",
    "ThreadSpan",
    "bytes_column",
    "columns_at",
    "count",
    "field_column",
]

VERSION = 1
ANY = 0xFFFF_FFFF
SITE, OBJECT, CODE = 0, 1, 2
TEXT, RAW, JSONL, CSV = 0, 1, 2, 3
LINE_MAX = 65536

_u32, _u64, _i64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class _Columns(ctypes.Structure):
    _fields_ = (
        ("ts", ctypes.c_void_p),
        ("thread", ctypes.c_void_p),
        ("id", ctypes.c_void_p),
        ("cpu", ctypes.c_void_p),
        ("object", ctypes.c_void_p),
        ("site", ctypes.c_void_p),
        ("payload", ctypes.c_void_p),
    )


_COLUMN_TYPES: dict[str, type[ctypes._SimpleCData[int]]] = {
    "ts": _i64,
    "thread": _u32,
    "id": ctypes.c_uint16,
    "cpu": ctypes.c_uint16,
    "object": _u64,
    "site": _u64,
    "payload": _u64,
}


class Place(ctypes.Structure):
    """A place between two events; see `struct ptt_position`."""

    _fields_ = (
        ("key", _u64),
        ("stream", _u32),
        ("packet", _u32),
        ("offset", _u32),
        ("reserved", _u32),
    )
    key: int
    stream: int
    packet: int
    offset: int


class TraceInfo(ctypes.Structure):
    """What the packets of a trace say together; times in ticks."""

    _fields_ = (
        ("begin", _u64),
        ("end", _u64),
        ("packets", _u64),
        ("bytes", _u64),
        ("events", _u64),
        ("discarded", _u64),
    )
    begin: int
    end: int
    packets: int
    bytes: int
    events: int
    discarded: int


class StreamInfo(ctypes.Structure):
    """What the packets of a stream say together."""

    _fields_ = (
        ("trace", _u32),
        ("stream_class", _u32),
        ("packets", _u64),
        ("bytes", _u64),
        ("discarded", _u64),
        ("end", _u64),
    )
    trace: int
    stream_class: int
    packets: int
    bytes: int
    discarded: int
    end: int


class _ProcessInfo(ctypes.Structure):
    _fields_ = (("trace", _u32), ("index", _u32), ("pid", _u32), ("reserved", _u32))


class _ThreadInfo(ctypes.Structure):
    _fields_ = (("process", _u32), ("tid", _u32))


class _Damage(ctypes.Structure):
    _fields_ = (
        ("path", ctypes.c_char * 512),
        ("reason", ctypes.c_char * 160),
        ("offset", _u64),
        ("size", _u64),
    )


class ThreadCount(ctypes.Structure):
    """Events of one thread and type."""

    _fields_ = (("thread", _u32), ("id", _u32), ("events", _u64))
    thread: int
    id: int
    events: int


class ObjectCount(ctypes.Structure):
    """Events of one object; domain is what kind it is used as."""

    _fields_ = (("process", _u32), ("domain", _u32), ("object", _u64), ("events", _u64))
    process: int
    domain: int
    object: int
    events: int


class ThreadSpan(ctypes.Structure):
    """Events of one thread, and when the first and last were."""

    _fields_ = (("first", _i64), ("last", _i64), ("events", _u64))
    first: int
    last: int
    events: int


class _Missing(ctypes.Structure):
    _fields_ = (("kind", _u32), ("process", _u32), ("address", _u64))


class Copy(ctypes.Structure):
    """What of a stream to copy, and what to change; see `struct ptt_copy`."""

    _fields_ = (
        ("from_packet", _u32),
        ("from_offset", _u32),
        ("to_packet", _u32),
        ("to_offset", _u32),
        ("uuid", ctypes.c_uint8 * 16),
        ("instance", _u64),
        ("process_filter", _u32),
        ("thread_filter", _u32),
        ("process_shift", _u32),
        ("reserved", _u32),
        ("tick_shift", _i64),
    )


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a trace that cannot be read.

    Attributes:
        path: The file.
        offset: Where it begins, in bytes.
        size: How many bytes are left out because of it.
        reason: What is wrong there.
    """

    path: str
    offset: int
    size: int
    reason: str

    def __str__(self) -> str:
        """Return path, place and reason as one line."""
        return f"{self.path}: byte {self.offset}: {self.reason}"


_p = ctypes.c_void_p
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_read_version": (ctypes.c_int, ()),
    "ptt_reader_create": (_p, ()),
    "ptt_reader_destroy": (None, (_p,)),
    "ptt_reader_add_trace": (ctypes.c_int, (_p, ctypes.c_char_p)),
    "ptt_reader_add_process": (ctypes.c_int, (_p, _u32, _u32, _u32)),
    "ptt_reader_set_site": (ctypes.c_int, (_p, _u32, _u32, _u64)),
    "ptt_reader_add_stream": (ctypes.c_int, (_p, _u32)),
    "ptt_reader_add_file": (ctypes.c_int, (_p, _u32, ctypes.c_char_p)),
    "ptt_reader_index": (ctypes.c_int, (_p, ctypes.c_int)),
    "ptt_reader_set_clock": (ctypes.c_int, (_p, _u32, _u64, _u64, _i64)),
    "ptt_reader_key_ticks": (None, (_p, ctypes.c_int)),
    "ptt_reader_verify": (ctypes.c_int, (_p,)),
    "ptt_reader_trace_info": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_reader_stream_info": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_reader_stream_count": (_u32, (_p,)),
    "ptt_reader_process_count": (_u32, (_p,)),
    "ptt_reader_thread_count": (_u32, (_p,)),
    "ptt_reader_damage_count": (_u32, (_p,)),
    "ptt_reader_process_info": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_reader_thread_info": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_reader_damage": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_reader_key_of_time": (_u64, (_p, _i64)),
    "ptt_reader_time_of_key": (_i64, (_p, _u64)),
    "ptt_cursor_create": (_p, (_p,)),
    "ptt_cursor_destroy": (None, (_p,)),
    "ptt_cursor_seek_start": (ctypes.c_int, (_p,)),
    "ptt_cursor_seek_key": (ctypes.c_int, (_p, _u64)),
    "ptt_cursor_seek": (ctypes.c_int, (_p, _p)),
    "ptt_cursor_position": (None, (_p, _p)),
    "ptt_cursor_limit_key": (None, (_p, _u64)),
    "ptt_cursor_limit": (None, (_p, _p)),
    "ptt_cursor_no_limit": (None, (_p,)),
    "ptt_cursor_read": (_i64, (_p, _p, _i64)),
    "ptt_cursor_lane": (ctypes.c_int, (_p, _u32, _p, _p)),
    "ptt_cursor_refresh": (ctypes.c_int, (_p,)),
    "ptt_field_column": (_i64, (_p, _i64, ctypes.c_char_p, _p, _p)),
    "ptt_bytes_column": (_i64, (_p, _i64, ctypes.c_char_p, _p, _p, _i64)),
    "ptt_filter_create": (_p, ()),
    "ptt_filter_destroy": (None, (_p,)),
    "ptt_filter_allow_event": (ctypes.c_int, (_p, _u32)),
    "ptt_filter_allow_thread": (ctypes.c_int, (_p, _u32)),
    "ptt_filter_allow_object": (ctypes.c_int, (_p, _u32, _u64)),
    "ptt_filter_allow_site": (ctypes.c_int, (_p, _u32, _u64)),
    "ptt_filter_apply": (_i64, (_p, _p, _p, _i64)),
    "ptt_counter_create": (_p, (_p, ctypes.c_int, ctypes.c_int)),
    "ptt_counter_destroy": (None, (_p,)),
    "ptt_counter_threads": (_i64, (_p, _p, _i64)),
    "ptt_counter_objects": (_i64, (_p, _p, _i64)),
    "ptt_counter_spans": (_i64, (_p, _p, _i64)),
    "ptt_names_create": (_p, (_p,)),
    "ptt_names_destroy": (None, (_p,)),
    "ptt_names_show_process": (None, (_p, ctypes.c_int)),
    "ptt_names_set_thread": (ctypes.c_int, (_p, _u32, ctypes.c_char_p)),
    "ptt_names_set": (ctypes.c_int, (_p, _u32, _u32, _u64, ctypes.c_char_p)),
    "ptt_names_add_range": (ctypes.c_int, (_p, _u32, _u64, _u64)),
    "ptt_names_missing": (_i64, (_p, _p, _i64, _p, _i64)),
    "ptt_text": (_i64, (_p, _p, _i64, ctypes.c_int, _p, _i64, _p)),
    "ptt_copy_stream": (_i64, (_p, _u32, _p, ctypes.c_int)),
}


@cache
def _library() -> ctypes.CDLL:
    """Load the reader library."""
    path = _paths.reader_library()
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    if lib.ptt_read_version() != VERSION:
        raise PttError(f"{path} belongs to another version of nptltrace: install both again")
    return lib


def _check(what: str, status: int) -> int:
    """Return a status that is not negative; raise for one that is."""
    if status < 0:
        raise NativeError(f"cannot {what}", status)
    return status


def _handle(what: str, pointer: int | None) -> int:
    """Return a handle; raise for NULL, which always means that memory is out."""
    if not pointer:
        import errno

        raise NativeError(f"cannot {what}", errno.ENOMEM)
    return pointer


class Buffer:
    """Columns for a number of events, filled by a cursor.

    Attributes:
        size: How many events there is room for.
        count: How many are there.
    """

    def __init__(self, size: int, names: Iterable[str] = tuple(_COLUMN_TYPES)) -> None:
        self.size = size
        self.count = 0
        self.arrays: dict[str, Any] = {name: (_COLUMN_TYPES[name] * size)() for name in names}
        self.columns = _Columns()
        for name, array in self.arrays.items():
            setattr(self.columns, name, ctypes.addressof(array))

    @property
    def pointer(self) -> Any:
        """The `struct ptt_columns`, as an argument."""
        return ctypes.byref(self.columns)

    def drop(self, count: int) -> None:
        """Drop the first events; they must be fewer than there are."""
        self.count -= count
        for array in self.arrays.values():
            size, start = ctypes.sizeof(array._type_), ctypes.addressof(array)
            ctypes.memmove(start, start + count * size, self.count * size)


def columns_at(addresses: dict[str, int]) -> Any:
    """Return a `struct ptt_columns` of arrays that someone else owns."""
    return _Columns(**addresses)


def field_column(buffer: Buffer, name: str, values: int, valid: int) -> int:
    """Fill arrays (given by address) with one field of all events; return how many have it."""
    done = _library().ptt_field_column(buffer.pointer, buffer.count, name.encode(), values, valid)
    return int(done)


def bytes_column(buffer: Buffer, name: str, offsets: int, data: Any, room: int) -> int:
    """Fill offsets and, if there is room, bytes of a variable field; return the bytes needed."""
    lib = _library()
    return int(
        lib.ptt_bytes_column(buffer.pointer, buffer.count, name.encode(), offsets, data, room)
    )


class Reader:
    """A traceset in the library; see `pttread.h`."""

    def __init__(self) -> None:
        lib = _library()
        self._lib = lib
        self.handle = _handle("open a reader", lib.ptt_reader_create())
        weakref.finalize(self, lib.ptt_reader_destroy, self.handle)

    def add_trace(self, uuid: bytes | None) -> int:
        """Add a trace and return its number."""
        return _check("add a trace", self._lib.ptt_reader_add_trace(self.handle, uuid))

    def add_process(self, trace: int, index: int, pid: int) -> int:
        """Add what is known of a process image; return its number in the traceset."""
        status = self._lib.ptt_reader_add_process(self.handle, trace, index, pid)
        return _check("add a process", status)

    def set_site(self, process: int, site: int, address: int) -> None:
        """Tell the address behind a site id."""
        _check("add a site", self._lib.ptt_reader_set_site(self.handle, process, site, address))

    def add_stream(self, trace: int) -> int:
        """Add a stream and return its number."""
        return _check("add a stream", self._lib.ptt_reader_add_stream(self.handle, trace))

    def add_file(self, stream: int, path: Path) -> None:
        """Add the next file of a stream."""
        import os

        status = self._lib.ptt_reader_add_file(self.handle, stream, os.fsencode(path))
        _check(f"add {path}", status)

    def index(self, *, running: bool) -> None:
        """Find packets, or those that have come since the last call."""
        _check("index the trace", self._lib.ptt_reader_index(self.handle, running))

    def set_clock(self, trace: int, frequency: int, origin: int, shift_ns: int) -> None:
        """Set how ticks of a trace become time."""
        status = self._lib.ptt_reader_set_clock(self.handle, trace, frequency, origin, shift_ns)
        _check("set a clock", status)

    def key_ticks(self, *, on: bool) -> None:
        """Set whether events are ordered by ticks or by nanoseconds."""
        self._lib.ptt_reader_key_ticks(self.handle, on)

    def verify(self) -> int:
        """Check every packet; return the number of damages."""
        return int(self._lib.ptt_reader_verify(self.handle))

    def trace_info(self, trace: int) -> TraceInfo:
        """Return what the packets of a trace say."""
        out = TraceInfo()
        status = self._lib.ptt_reader_trace_info(self.handle, trace, ctypes.byref(out))
        _check("look at a trace", status)
        return out

    def stream_info(self, stream: int) -> StreamInfo:
        """Return what the packets of a stream say."""
        out = StreamInfo()
        status = self._lib.ptt_reader_stream_info(self.handle, stream, ctypes.byref(out))
        _check("look at a stream", status)
        return out

    def stream_count(self) -> int:
        """Return the number of streams."""
        return int(self._lib.ptt_reader_stream_count(self.handle))

    def processes(self, start: int = 0) -> list[tuple[int, int, int]]:
        """Return (trace, index, pid) of the processes from a number on."""
        out, found = _ProcessInfo(), []
        for number in range(start, self._lib.ptt_reader_process_count(self.handle)):
            self._lib.ptt_reader_process_info(self.handle, number, ctypes.byref(out))
            found.append((out.trace, out.index, out.pid))
        return found

    def threads(self, start: int = 0) -> list[tuple[int, int]]:
        """Return (process, tid) of the threads from a number on."""
        out, found = _ThreadInfo(), []
        for number in range(start, self._lib.ptt_reader_thread_count(self.handle)):
            self._lib.ptt_reader_thread_info(self.handle, number, ctypes.byref(out))
            found.append((out.process, out.tid))
        return found

    def damages(self, start: int = 0) -> list[Damage]:
        """Return what could not be read so far."""
        import os

        out, found = _Damage(), []
        for number in range(start, self._lib.ptt_reader_damage_count(self.handle)):
            self._lib.ptt_reader_damage(self.handle, number, ctypes.byref(out))
            path, reason = os.fsdecode(out.path), out.reason.decode("utf-8", "replace")
            found.append(Damage(path, out.offset, out.size, reason))
        return found

    def key_of_time(self, ts: int) -> int:
        """Return the least key at this time or later."""
        return int(self._lib.ptt_reader_key_of_time(self.handle, ts))

    def time_of_key(self, key: int) -> int:
        """Return the time of a key."""
        return int(self._lib.ptt_reader_time_of_key(self.handle, key))

    def copy_stream(self, stream: int, what: Copy, fd: int) -> int:
        """Write a part of a stream to a file; return the number of events."""
        status = self._lib.ptt_copy_stream(self.handle, stream, ctypes.byref(what), fd)
        return _check("write a stream", status)


class Cursor:
    """A place in a traceset, and what moves it."""

    def __init__(self, reader: Reader) -> None:
        lib = _library()
        self._lib = lib
        self.reader = reader
        self.handle = _handle("open a cursor", lib.ptt_cursor_create(reader.handle))
        # The reader must outlive its cursor whatever the order of collection.
        weakref.finalize(
            self, lambda handle, _: lib.ptt_cursor_destroy(handle), self.handle, reader
        )

    def seek_start(self) -> None:
        """Go to the first event."""
        _check("seek", self._lib.ptt_cursor_seek_start(self.handle))

    def seek_key(self, key: int) -> None:
        """Go to the first event with this key or a later one."""
        _check("seek", self._lib.ptt_cursor_seek_key(self.handle, key))

    def seek(self, place: Place) -> bool:
        """Go to a saved place; False if there is no such event here."""
        import errno

        status = self._lib.ptt_cursor_seek(self.handle, ctypes.byref(place))
        if status == -errno.EINVAL:
            return False
        _check("seek", status)
        return True

    def place(self) -> Place:
        """Return where the cursor is."""
        out = Place()
        self._lib.ptt_cursor_position(self.handle, ctypes.byref(out))
        return out

    def limit_key(self, key: int) -> None:
        """Stop before this key."""
        self._lib.ptt_cursor_limit_key(self.handle, key)

    def limit(self, place: Place) -> None:
        """Stop before this very event."""
        self._lib.ptt_cursor_limit(self.handle, ctypes.byref(place))

    def no_limit(self) -> None:
        """Stop only at the end."""
        self._lib.ptt_cursor_no_limit(self.handle)

    def read(self, buffer: Buffer, limit: int | None = None) -> int:
        """Fill the buffer with the next events; return how many."""
        most = buffer.size if limit is None else min(limit, buffer.size)
        status = self._lib.ptt_cursor_read(self.handle, buffer.pointer, most)
        buffer.count = _check("read events", status)
        return buffer.count

    def lane(self, stream: int) -> tuple[int, int]:
        """Return (packet, offset) of the next event of one stream."""
        packet, offset = _u32(), _u32()
        status = self._lib.ptt_cursor_lane(
            self.handle, stream, ctypes.byref(packet), ctypes.byref(offset)
        )
        _check("look at a stream", status)
        return packet.value, offset.value

    def refresh(self) -> None:
        """Take in what the reader has indexed since."""
        _check("read on", self._lib.ptt_cursor_refresh(self.handle))


class Filter:
    """Lets events through; what is not restricted passes."""

    def __init__(self) -> None:
        lib = _library()
        self._lib = lib
        self.handle = _handle("make a filter", lib.ptt_filter_create())
        weakref.finalize(self, lib.ptt_filter_destroy, self.handle)

    def allow_events(self, ids: Iterable[int]) -> None:
        """Restrict to these event ids."""
        for number in (ANY, *ids):
            self._lib.ptt_filter_allow_event(self.handle, number)

    def allow_threads(self, threads: Iterable[int]) -> None:
        """Restrict to these threads (numbers in the traceset)."""
        for number in (ANY, *threads):
            status = self._lib.ptt_filter_allow_thread(self.handle, number)
            _check("make a filter", status)

    def allow_objects(self, objects: Iterable[tuple[int, int]]) -> None:
        """Restrict to these (process, address) pairs; process may be `ANY`."""
        for process, address in ((ANY, 2**64 - 1), *objects):
            status = self._lib.ptt_filter_allow_object(self.handle, process, address)
            _check("make a filter", status)

    def allow_sites(self, sites: Iterable[tuple[int, int]]) -> None:
        """Restrict to these (process, address) pairs; process may be `ANY`."""
        for process, address in ((ANY, 2**64 - 1), *sites):
            status = self._lib.ptt_filter_allow_site(self.handle, process, address)
            _check("make a filter", status)

    def apply(self, reader: Reader, buffer: Buffer) -> int:
        """Drop what does not pass; return how many events are left."""
        buffer.count = int(
            self._lib.ptt_filter_apply(self.handle, reader.handle, buffer.pointer, buffer.count)
        )
        return buffer.count


class Names:
    """Names for addresses and threads, and the formatter that uses them."""

    ROOM = 1 << 20

    def __init__(self, reader: Reader) -> None:
        lib = _library()
        self._lib = lib
        self.reader = reader
        self.handle = _handle("make a name table", lib.ptt_names_create(reader.handle))
        weakref.finalize(self, lambda handle, _: lib.ptt_names_destroy(handle), self.handle, reader)
        self._missing = (_Missing * 1024)()
        self._text = ctypes.create_string_buffer(self.ROOM)

    def show_process(self, *, on: bool) -> None:
        """Set whether text lines say the pid."""
        self._lib.ptt_names_show_process(self.handle, on)

    def set_thread(self, thread: int, text: str) -> None:
        """Name a thread."""
        data = text.encode("utf-8", "replace")
        _check("name a thread", self._lib.ptt_names_set_thread(self.handle, thread, data))

    def set(self, kind: int, process: int, address: int, text: str) -> None:
        """Name an address."""
        data = text.encode("utf-8", "replace")
        status = self._lib.ptt_names_set(self.handle, kind, process, address, data)
        _check("name an address", status)

    def add_range(self, process: int, start: int, end: int) -> None:
        """Say that objects and code in this range may have names."""
        status = self._lib.ptt_names_add_range(self.handle, process, start, end)
        _check("add a range", status)

    def missing(self, buffer: Buffer) -> list[tuple[int, int, int]]:
        """Return (kind, process, address) of what has no name yet; each is told once."""
        found: list[tuple[int, int, int]] = []
        while True:
            n = self._lib.ptt_names_missing(
                self.handle, buffer.pointer, buffer.count, self._missing, len(self._missing)
            )
            found += [(m.kind, m.process, m.address) for m in self._missing[:n]]
            if n < len(self._missing):
                return found

    def text(self, buffer: Buffer, style: int) -> Iterable[memoryview]:
        """Yield the events of a buffer as lines; each piece is valid until the next."""
        done, columns = _i64(), _Columns()
        ctypes.pointer(columns)[0] = buffer.columns
        left = buffer.count
        while left > 0:
            size = self._lib.ptt_text(
                self.handle, ctypes.byref(columns), left, style, self._text, self.ROOM,
                ctypes.byref(done),
            )  # fmt: skip
            yield memoryview(self._text)[: _check("format events", size)]
            left -= done.value
            for name, array in buffer.arrays.items():
                step = done.value * ctypes.sizeof(array._type_)
                setattr(columns, name, getattr(columns, name) + step)


def count(
    reader: Reader, *, workers: int, objects: bool
) -> tuple[list[ThreadCount], list[ObjectCount], list[ThreadSpan]]:
    """Count all events by thread and type, by object if asked, and by thread with first and last."""
    lib = _library()
    handle = _handle("count events", lib.ptt_counter_create(reader.handle, workers, objects))
    try:
        threads = (ThreadCount * lib.ptt_counter_threads(handle, None, 0))()
        lib.ptt_counter_threads(handle, threads, len(threads))
        found = (ObjectCount * lib.ptt_counter_objects(handle, None, 0))()
        lib.ptt_counter_objects(handle, found, len(found))
        spans = (ThreadSpan * lib.ptt_counter_spans(handle, None, 0))()
        lib.ptt_counter_spans(handle, spans, len(spans))
    finally:
        lib.ptt_counter_destroy(handle)
    return list(threads), list(found), list(spans)
