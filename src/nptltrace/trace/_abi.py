"""The reader library as ctypes sees it: its structs, its functions, and what their status means."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

from nptltrace import _paths
from nptltrace.errors import NativeError, PttError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

VERSION = 3

_u32, _u64, _i64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class Columns(ctypes.Structure):
    """Columns of events, by address; see `struct ptt_columns`."""

    _fields_ = (
        ("ts", ctypes.c_void_p),
        ("thread", ctypes.c_void_p),
        ("id", ctypes.c_void_p),
        ("cpu", ctypes.c_void_p),
        ("object", ctypes.c_void_p),
        ("site", ctypes.c_void_p),
        ("payload", ctypes.c_void_p),
    )


class Tenant(ctypes.Structure):
    """A module that shares its addresses with others; see `struct ptt_tenant`."""

    _fields_ = (
        ("range_start", _u64),
        ("range_end", _u64),
        ("start", _u64),
        ("end", _u64),
        ("since", _u64),
        ("generation", _u32),
        ("reserved", _u32),
    )


COLUMN_TYPES: dict[str, type[ctypes._SimpleCData[int]]] = {
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


class ProcessInfo(ctypes.Structure):
    """A process of a traceset."""

    _fields_ = (("trace", _u32), ("index", _u32), ("pid", _u32), ("reserved", _u32))


class ThreadInfo(ctypes.Structure):
    """A thread of a traceset."""

    _fields_ = (("process", _u32), ("tid", _u32))


class DamageEntry(ctypes.Structure):
    """A part that cannot be read."""

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


class MissingName(ctypes.Structure):
    """An address without a name."""

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
        ("sequence", _u32),
        ("tick_origin", _u64),
        ("tick_base", _u64),
        ("tick_mul", _u64),
        ("tick_div", _u64),
    )


_p = ctypes.c_void_p
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_read_version": (ctypes.c_int, ()),
    "ptt_reader_create": (_p, ()),
    "ptt_reader_destroy": (None, (_p,)),
    "ptt_reader_add_trace": (ctypes.c_int, (_p, ctypes.c_char_p)),
    "ptt_reader_add_process": (ctypes.c_int, (_p, _u32, _u32, _u32)),
    "ptt_reader_set_site": (ctypes.c_int, (_p, _u32, _u32, _u64)),
    "ptt_reader_set_tenants": (ctypes.c_int, (_p, _u32, _p, _u32)),
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
    "ptt_reader_cut": (ctypes.c_int, (_p, _p)),
    "ptt_reader_key_of_time": (_u64, (_p, _i64)),
    "ptt_reader_key_range": (ctypes.c_int, (_p, _p, _p)),
    "ptt_reader_time_of_key": (_i64, (_p, _u64)),
    "ptt_reader_density": (ctypes.c_int, (_p, _i64, _i64, _p, _p, _u32)),
    "ptt_cursor_create": (_p, (_p,)),
    "ptt_cursor_destroy": (None, (_p,)),
    "ptt_cursor_seek_key": (ctypes.c_int, (_p, _u64)),
    "ptt_cursor_seek": (ctypes.c_int, (_p, _p)),
    "ptt_cursor_position": (None, (_p, _p)),
    "ptt_cursor_limit_key": (None, (_p, _u64)),
    "ptt_cursor_limit": (None, (_p, _p)),
    "ptt_cursor_no_limit": (None, (_p,)),
    "ptt_cursor_read": (_i64, (_p, _p, _i64)),
    "ptt_cursor_lane": (ctypes.c_int, (_p, _u32, _p, _p)),
    "ptt_cursor_refresh": (ctypes.c_int, (_p,)),
    "ptt_reader_find": (_i64, (_p, ctypes.c_char_p, _u64, _p, _p, _i64)),
    "ptt_field_column": (_i64, (_p, _i64, ctypes.c_char_p, _p, _p)),
    "ptt_bytes_column": (_i64, (_p, _i64, ctypes.c_char_p, _p, _p, _i64)),
    "ptt_filter_create": (_p, ()),
    "ptt_filter_destroy": (None, (_p,)),
    "ptt_filter_allow_event": (ctypes.c_int, (_p, _u32)),
    "ptt_filter_allow_thread": (ctypes.c_int, (_p, _u32)),
    "ptt_filter_allow_object": (ctypes.c_int, (_p, _u32, _u64)),
    "ptt_filter_allow_site": (ctypes.c_int, (_p, _u32, _u64)),
    "ptt_filter_apply": (_i64, (_p, _p, _p, _i64)),
    "ptt_cursor_pick": (_i64, (_p, _p, _p, _p, _p, _i64, _i64, _p)),
    "ptt_counter_create": (_p, (_p, ctypes.c_int, ctypes.c_int)),
    "ptt_counter_destroy": (None, (_p,)),
    "ptt_counter_threads": (_i64, (_p, _p, _i64)),
    "ptt_counter_objects": (_i64, (_p, _p, _i64)),
    "ptt_counter_spans": (_i64, (_p, _p, _i64)),
    "ptt_names_create": (_p, (_p,)),
    "ptt_names_destroy": (None, (_p,)),
    "ptt_names_show_process": (None, (_p, ctypes.c_int)),
    "ptt_names_set_thread": (ctypes.c_int, (_p, _u32, ctypes.c_char_p)),
    "ptt_names_set_pthread": (ctypes.c_int, (_p, _u32, _u64, _i64, _u32)),
    "ptt_names_set": (ctypes.c_int, (_p, _u32, _u32, _u64, ctypes.c_char_p)),
    "ptt_names_add_range": (ctypes.c_int, (_p, _u32, _u64, _u64)),
    "ptt_names_missing": (_i64, (_p, _p, _i64, _p, _i64)),
    "ptt_text": (_i64, (_p, _p, _i64, ctypes.c_int, _p, _i64, _p)),
    "ptt_copy_stream": (_i64, (_p, _u32, _p, ctypes.c_int)),
}


def load(
    path: Path, prototypes: Mapping[str, tuple[Any, Sequence[Any]]], says: str, version: int
) -> ctypes.CDLL:
    """Load one of the native libraries.

    Args:
        path: Its file.
        prototypes: Result and arguments of its functions, by name.
        says: The function that returns its version.
        version: The one that fits.

    Raises:
        PttError: It belongs to another version.
    """
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    if getattr(lib, says)() != version:
        raise PttError(f"{path} belongs to another version of nptltrace: install both again")
    return lib


@cache
def library() -> ctypes.CDLL:
    """Load the reader library."""
    return load(_paths.reader_library(), _PROTOTYPES, "ptt_read_version", VERSION)


def check(what: str, status: int) -> int:
    """Return a status that is not negative; raise for one that is."""
    if status < 0:
        raise NativeError(f"cannot {what}", status)
    return status


def own(owner: object, release: Callable[..., object], *what: Any) -> weakref.finalize[..., Any]:
    """Release something when nobody refers to its owner any more; each handle is owned so.

    Nothing is released at the interpreter's exit: a thread may still be in it, and the system takes
    everything back.

    Args:
        owner: Whoever uses it keeps a reference to this.
        release: Is called with `what`, once; must not refer to the owner.
        what: What is released, and what must outlive it.
    """
    ending = weakref.finalize(owner, release, *what)
    ending.atexit = False
    return ending


def made(what: str, pointer: int | None) -> int:
    """Return a handle; raise for NULL, which always means that memory is out."""
    if not pointer:
        import errno

        raise NativeError(f"cannot {what}", errno.ENOMEM)
    return pointer
