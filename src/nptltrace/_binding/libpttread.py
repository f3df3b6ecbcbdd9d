"""libpttread, which reads traces; see `pttread.h`.

Imports neither NumPy nor pyarrow, so that `ptt view` and `ptt stat` start fast.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from itertools import pairwise
from struct import iter_unpack
from typing import TYPE_CHECKING

from nptltrace._binding.handle import Handle
from nptltrace._binding.headers import pttread as c
from nptltrace._binding.headers.pttread import Copy, ObjectCount, Position, ThreadCount, ThreadSpan
from nptltrace._binding.library import Library, check
from nptltrace._dataclasses import dataclass
from nptltrace.errors import TraceFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


__all__ = [
    "ANY",
    "Buffer",
    "Copy",
    "Cursor",
    "Damage",
    "Filter",
    "ObjectRow",
    "Position",
    "Reader",
    "ThreadCount",
    "ThreadSpan",
    "byte_strings",
    "columns_at",
    "count",
    "field_column",
    "library",
    "numbers",
]

# The events of an object: process, domain, address, number of events.
ObjectRow = tuple[int, int, int, int]

ANY = 0xFFFF_FFFF
COLUMN_TYPES: dict[str, Any] = dict(c.Columns.targets)


@cache
def library() -> Library:
    """Load the library."""
    return Library("libpttread.so", c.FUNCTIONS, ("ptt_read_version", c.PTT_READ_VERSION))


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a trace that cannot be read.

    Attributes:
        path: The file.
        offset: Offset in the file, in bytes.
        size: Number of bytes that are skipped.
        reason: The fault.
    """

    path: str
    offset: int
    size: int
    reason: str

    def __str__(self) -> str:
        """Return path, offset and reason on one line."""
        return f"{self.path}: byte {self.offset}: {self.reason}"


class Buffer:
    """Columns of events, filled by a cursor.

    Attributes:
        size: Room for this many events.
        count: Number of events.
    """

    def __init__(self, size: int, names: Iterable[str] = tuple(COLUMN_TYPES)) -> None:
        self.size = size
        self.count = 0
        self.arrays: dict[str, Any] = {name: (COLUMN_TYPES[name] * size)() for name in names}
        self.columns = c.Columns()
        for name, array in self.arrays.items():
            setattr(self.columns, name, ctypes.addressof(array))

    @property
    def pointer(self) -> Any:
        """The `struct ptt_columns`, as an argument."""
        return ctypes.byref(self.columns)

    def drop(self, count: int) -> None:
        """Drop the first `count` events, which must be fewer than `self.count`."""
        self.count -= count
        for array in self.arrays.values():
            size, start = ctypes.sizeof(array._type_), ctypes.addressof(array)
            ctypes.memmove(start, start + count * size, self.count * size)


def columns_at(addresses: dict[str, int]) -> Any:
    """Return a `struct ptt_columns` over the caller's arrays, by address."""
    return c.Columns(**addresses)


def field_column(buffer: Buffer, name: str, values: int, valid: int) -> int:
    """Fill the caller's arrays with one field of all events.

    Args:
        buffer: The events.
        name: The field.
        values: Address of `buffer.count` values of type int64.
        valid: Address of `buffer.count` bytes, which are set to 1 for events with the field.

    Returns:
        The number of events with the field.
    """
    done = library().ptt_field_column(buffer.pointer, buffer.count, name.encode(), values, valid)
    return int(done)


def numbers(buffer: Buffer, name: str) -> list[int]:
    """Return one field of all events, 0 for events without the field."""
    values, valid = (c.i64 * buffer.count)(), (c.u8 * buffer.count)()
    field_column(buffer, name, ctypes.addressof(values), ctypes.addressof(valid))
    return list(values)


def byte_strings(buffer: Buffer, name: str) -> list[bytes]:
    """Return one field of variable size of all events, empty for events without the field."""
    offsets = (c.i64 * (buffer.count + 1))()
    place = ctypes.addressof(offsets)
    fill, what = library().ptt_bytes_column, (buffer.pointer, buffer.count, name.encode(), place)
    size = int(fill(*what, None, 0))
    data = ctypes.create_string_buffer(max(size, 1))
    fill(*what, data, size)
    raw = data.raw
    return [raw[begin:end] for begin, end in pairwise(offsets)]


class Reader(Handle):
    """A traceset in the library; see `pttread.h`."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._own("open a reader", lib.ptt_reader_create(), lib.ptt_reader_destroy)

    def add_trace(self, uuid: bytes | None) -> int:
        """Add a trace and return its number."""
        return check("add a trace", self._lib.ptt_reader_add_trace(self.handle, uuid))

    def add_process(self, trace: int, index: int, pid: int) -> int:
        """Add a process image; return its number in the traceset."""
        status = self._lib.ptt_reader_add_process(self.handle, trace, index, pid)
        return check("add a process", status)

    def set_site(self, process: int, site: int, address: int) -> None:
        """Set the address behind a site id."""
        check("add a site", self._lib.ptt_reader_set_site(self.handle, process, site, address))

    def set_stack_sites(self, process: int, sites: Mapping[int, int]) -> None:
        """Replace the recorded call sites of events with a stack, by the number of the stack."""
        array = (ctypes.c_uint64 * (max(sites, default=-1) + 1))()
        for stack, site in sites.items():
            array[stack] = site
        status = self._lib.ptt_reader_set_stack_sites(self.handle, process, array, len(array))
        check("choose call sites", status)

    def set_tenants(self, process: int, tenants: Iterable[tuple[int, ...]]) -> None:
        """Set the modules that had the same addresses, sorted by range and time.

        Args:
            process: Number of the process.
            tenants: The fields of `struct ptt_tenant` for each module.
        """
        rows = [c.Tenant(*fields) for fields in tenants]
        array = (c.Tenant * len(rows))(*rows)
        status = self._lib.ptt_reader_set_tenants(self.handle, process, array, len(rows))
        check("add modules", status)

    def add_stream(self, trace: int) -> int:
        """Add a stream and return its number."""
        return check("add a stream", self._lib.ptt_reader_add_stream(self.handle, trace))

    def add_file(self, stream: int, path: str | os.PathLike[str]) -> None:
        """Add the next file of a stream."""
        status = self._lib.ptt_reader_add_file(self.handle, stream, os.fsencode(path))
        check(f"add {path}", status)

    def index(self, *, running: bool) -> None:
        """Find the packets of all files; a later call finds the packets written since then.

        Args:
            running: The recording goes on: an incomplete packet at the end of a file is no damage.
        """
        check("index the trace", self._lib.ptt_reader_index(self.handle, running))
        self.ensure_whole()

    def set_clock(self, trace: int, frequency: int, origin: int, shift_ns: int) -> None:
        """Set the clock of a trace: ns = (ticks - origin) * 1e9 / frequency + shift_ns."""
        status = self._lib.ptt_reader_set_clock(self.handle, trace, frequency, origin, shift_ns)
        check("set a clock", status)

    def key_ticks(self, *, on: bool) -> None:
        """Order events by ticks (all traces have the same clock) or by nanoseconds."""
        self._lib.ptt_reader_key_ticks(self.handle, on)

    def verify(self) -> int:
        """Check every packet; return the number of damages."""
        return int(self._lib.ptt_reader_verify(self.handle))

    def trace_info(self, trace: int) -> c.TraceInfo:
        """Return times, sizes and counts from the packets of a trace."""
        out = c.TraceInfo()
        status = self._lib.ptt_reader_trace_info(self.handle, trace, ctypes.byref(out))
        check("look at a trace", status)
        return out

    def stream_info(self, stream: int) -> c.StreamInfo:
        """Return times, sizes and counts from the packets of a stream."""
        out = c.StreamInfo()
        status = self._lib.ptt_reader_stream_info(self.handle, stream, ctypes.byref(out))
        check("look at a stream", status)
        return out

    def stream_count(self) -> int:
        """Return the number of streams."""
        return int(self._lib.ptt_reader_stream_count(self.handle))

    def processes(self, start: int = 0) -> list[tuple[int, int, int]]:
        """Return (trace, index, pid) of the processes from a number on."""
        count = self._lib.ptt_reader_process_count(self.handle)
        if count <= start:  # a fast path: every look-up of an address calls this function
            return []
        out, processes = c.ProcessInfo(), []
        for number in range(start, count):
            self._lib.ptt_reader_process_info(self.handle, number, ctypes.byref(out))
            processes.append((out.trace, out.index, out.pid))
        return processes

    def thread_count(self) -> int:
        """Return the number of threads."""
        return int(self._lib.ptt_reader_thread_count(self.handle))

    def threads(self, start: int = 0) -> list[tuple[int, int]]:
        """Return (process, tid) of the threads from a number on."""
        out, threads = c.ThreadInfo(), []
        for number in range(start, self._lib.ptt_reader_thread_count(self.handle)):
            self._lib.ptt_reader_thread_info(self.handle, number, ctypes.byref(out))
            threads.append((out.process, out.tid))
        return threads

    def ensure_whole(self) -> None:
        """Check that no file was truncated during reading, and no compact file was too large.

        Raises:
            TraceFormatError: A file became shorter, or its plain events take too much memory.
        """
        out = c.Damage()
        if self._lib.ptt_reader_cut(self.handle, ctypes.byref(out)):
            reason = out.reason.decode("utf-8", "replace")
            raise TraceFormatError(os.fsdecode(out.path), None, reason)

    def damages(self, start: int = 0) -> list[Damage]:
        """Return the unreadable parts that were found so far, from a number on."""
        self.ensure_whole()
        out, damages = c.Damage(), []
        for number in range(start, self._lib.ptt_reader_damage_count(self.handle)):
            self._lib.ptt_reader_damage(self.handle, number, ctypes.byref(out))
            path, reason = os.fsdecode(out.path), out.reason.decode("utf-8", "replace")
            damages.append(Damage(path, out.offset, out.size, reason))
        return damages

    def key_of_time(self, ts: int) -> int:
        """Return the least key at a time (ns) or later."""
        return int(self._lib.ptt_reader_key_of_time(self.handle, ts))

    def key_range(self) -> tuple[int, int] | None:
        """Return bounds of the keys of all events; None without packets."""
        first, last = c.u64(), c.u64()
        status = self._lib.ptt_reader_key_range(
            self.handle, ctypes.byref(first), ctypes.byref(last)
        )
        return (first.value, last.value) if status == 0 else None

    def time_of_key(self, key: int) -> int:
        """Return the time of a key, in ns."""
        return int(self._lib.ptt_reader_time_of_key(self.handle, key))

    def density(self, from_ns: int, width_ns: int, count: int) -> tuple[Any, Any]:
        """Return estimates of the events and of the lost events in each bin.

        Args:
            from_ns: Begin of the first bin.
            width_ns: Width of a bin.
            count: Number of bins.

        Returns:
            Two ctypes arrays of `count` uint64 values.
        """
        bins, lost = (c.u64 * count)(), (c.u64 * count)()
        status = self._lib.ptt_reader_density(self.handle, from_ns, width_ns, bins, lost, count)
        check("look at the packets", status)
        return bins, lost

    def find(self, ids: Iterable[int], budget: int) -> Iterable[Buffer]:
        """Yield events of some types, unordered, from the first `budget` bytes of packets."""
        wanted = bytearray(1024)
        for number in ids:
            wanted[number] = 1
        buffer, place = Buffer(65536), c.u64(0)
        while place.value != 2**64 - 1:
            before = place.value
            buffer.count = self._lib.ptt_reader_find(
                self.handle, bytes(wanted), budget, ctypes.byref(place), buffer.pointer, buffer.size
            )
            yield buffer
            if place.value == before:
                return

    def copy_stream(self, stream: int, what: Copy, fd: int) -> int:
        """Write a part of a stream to a file; return the number of events."""
        status = self._lib.ptt_copy_stream(self.handle, stream, ctypes.byref(what), fd)
        self.ensure_whole()
        return check("write a stream", status)


def recode(source: int, output: int, *, compact: bool) -> tuple[int | None, int]:
    """Write a stream file as a compact or as a plain stream file.

    Args:
        source: File descriptor of the stream file.
        output: File descriptor of the new file.
        compact: Whether the new file is compact.

    Returns:
        The number of written bytes, or None if a packet is damaged; and the offset of that packet.

    Raises:
        OSError: A file cannot be read or written.
        NativeError: Memory is out.
    """
    at = ctypes.c_uint64()
    status = int(library().ptt_recode(source, output, compact, ctypes.byref(at)))
    if status == -errno.EBADMSG:
        return None, at.value
    if status < 0 and status != -errno.ENOMEM:
        raise OSError(-status, os.strerror(-status))
    return check("write a stream", status), at.value


class Cursor(Handle):
    """A reading position in a traceset."""

    def __init__(self, reader: Reader) -> None:
        lib = library()
        self._lib = lib
        self.reader = reader
        address = lib.ptt_cursor_create(reader.handle)
        self._own("open a cursor", address, lib.ptt_cursor_destroy, reader)

    def seek_key(self, key: int) -> None:
        """Go to the first event with this key or a later one."""
        check("seek", self._lib.ptt_cursor_seek_key(self.handle, key))

    def seek(self, place: Position) -> bool:
        """Go to a saved position; return False if the traceset has no such event."""
        status = self._lib.ptt_cursor_seek(self.handle, ctypes.byref(place))
        if status == -errno.EINVAL:
            return False
        check("seek", status)
        return True

    def place(self) -> Position:
        """Return the position of the cursor."""
        out = Position()
        self._lib.ptt_cursor_position(self.handle, ctypes.byref(out))
        return out

    def limit_key(self, key: int) -> None:
        """Stop before this key."""
        self._lib.ptt_cursor_limit_key(self.handle, key)

    def limit(self, place: Position) -> None:
        """Stop before the event at this position."""
        self._lib.ptt_cursor_limit(self.handle, ctypes.byref(place))

    def no_limit(self) -> None:
        """Stop only at the end."""
        self._lib.ptt_cursor_no_limit(self.handle)

    def read(self, buffer: Buffer, limit: int | None = None) -> int:
        """Fill the buffer with the next events, at most `limit`; return their number."""
        most = buffer.size if limit is None else min(limit, buffer.size)
        status = self._lib.ptt_cursor_read(self.handle, buffer.pointer, most)
        buffer.count = check("read events", status)
        self.reader.ensure_whole()
        return buffer.count

    def pick(
        self, buffer: Buffer, places: Any, passing: Filter | None, budget: int
    ) -> tuple[int, int]:
        """Fill the buffer with the next events that pass a filter.

        Args:
            buffer: A buffer with all columns.
            places: An array of `buffer.size` `Position`s, which gets the positions of the events.
            passing: The filter; None for all events.
            budget: Greatest number of events to look at.

        Returns:
            The numbers of events that passed, and of events that were looked at.
        """
        looked = c.i64()
        status = self._lib.ptt_cursor_pick(
            self.handle, self.reader.handle, None if passing is None else passing.handle,
            buffer.pointer, places, buffer.size, budget, ctypes.byref(looked),
        )  # fmt: skip
        buffer.count = check("look for events", status)
        self.reader.ensure_whole()
        return buffer.count, looked.value

    def lane(self, stream: int) -> tuple[int, int]:
        """Return (packet, offset) of the next event of a stream."""
        packet, offset = c.u32(), c.u32()
        status = self._lib.ptt_cursor_lane(
            self.handle, stream, ctypes.byref(packet), ctypes.byref(offset)
        )
        check("look at a stream", status)
        return packet.value, offset.value

    def refresh(self) -> None:
        """Include the packets that the reader has indexed since; the position is kept."""
        check("read on", self._lib.ptt_cursor_refresh(self.handle))


class Filter(Handle):
    """Selects events. Without a restriction, all events pass."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._own("make a filter", lib.ptt_filter_create(), lib.ptt_filter_destroy)

    def allow_events(self, ids: Iterable[int]) -> None:
        """Restrict to these event types, by id."""
        for number in (ANY, *ids):
            self._lib.ptt_filter_allow_event(self.handle, number)

    def keep_events(self, ids: Iterable[int]) -> None:
        """Let these event types pass for any object and any call site."""
        for number in ids:
            self._lib.ptt_filter_keep_event(self.handle, number)

    def allow_threads(self, threads: Iterable[int]) -> None:
        """Restrict to these threads, by number in the traceset."""
        for number in (ANY, *threads):
            status = self._lib.ptt_filter_allow_thread(self.handle, number)
            check("make a filter", status)

    def allow_objects(self, objects: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Restrict to these objects: process, address, kind, begin and end of a window in ns.

        Process and kind may be `ANY`.
        """
        for key in ((ANY, 2**64 - 1, ANY, 0, 0), *objects):
            status = self._lib.ptt_filter_allow_object(self.handle, *key)
            check("make a filter", status)

    def allow_sites(self, sites: Iterable[tuple[int, int]]) -> None:
        """Restrict to these (process, address) pairs; process may be `ANY`."""
        for process, address in ((ANY, 2**64 - 1), *sites):
            status = self._lib.ptt_filter_allow_site(self.handle, process, address)
            check("make a filter", status)

    def apply(self, reader: Reader, buffer: Buffer) -> int:
        """Drop the events that do not pass; return the number of the others."""
        buffer.count = int(
            self._lib.ptt_filter_apply(self.handle, reader.handle, buffer.pointer, buffer.count)
        )
        return buffer.count


def count(
    reader: Reader, *, workers: int, objects: bool
) -> tuple[list[ThreadCount], list[ObjectRow], list[ThreadSpan]]:
    """Count all events.

    Args:
        reader: The traceset.
        workers: Number of threads that count.
        objects: Count by object, too.

    Returns:
        Counts by thread and type, counts by object (empty without `objects`), and the first and the
        last time of each thread.
    """
    lib = library()
    with _Counter(reader, workers=workers, objects=objects) as counter:
        threads = (ThreadCount * lib.ptt_counter_threads(counter.handle, None, 0))()
        lib.ptt_counter_threads(counter.handle, threads, len(threads))
        counts = (ObjectCount * lib.ptt_counter_objects(counter.handle, None, 0))()
        lib.ptt_counter_objects(counter.handle, counts, len(counts))
        spans = (ThreadSpan * lib.ptt_counter_spans(counter.handle, None, 0))()
        lib.ptt_counter_spans(counter.handle, spans, len(spans))
    reader.ensure_whole()
    # There may be millions of objects: tuples are made several times as fast as structures.
    return list(threads), list(iter_unpack("=IIQQ", counts)), list(spans)


class _Counter(Handle):
    """Counts of all events."""

    def __init__(self, reader: Reader, *, workers: int, objects: bool) -> None:
        lib = library()
        address = lib.ptt_counter_create(reader.handle, workers, objects)
        self._own("count events", address, lib.ptt_counter_destroy, reader)
