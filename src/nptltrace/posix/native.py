"""libposixtrace through ctypes: its structures, its functions, and their errors as exceptions."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any, ClassVar

from nptltrace import _paths
from nptltrace.errors import PttError

__all__ = [
    "EVENT_NAME_MAX",
    "NAME_MAX",
    "EventInfo",
    "PosixTraceError",
    "StatusInfo",
    "Timespec",
    "TraceAttr",
    "TraceEventSet",
    "call",
    "library",
]

LIBRARY = "libposixtrace.so.0"
EVENT_NAME_MAX = 63
NAME_MAX = 64
_NS = 1_000_000_000


class PosixTraceError(PttError, OSError):
    """A function of `<trace.h>` failed.

    Args:
        what: What was to be done, as in "create".
        number: The error number that the function gave; it is `errno` here.
    """

    def __init__(self, what: str, number: int) -> None:
        OSError.__init__(self, number, os.strerror(number))
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}: {self.strerror} ({errno.errorcode.get(self.errno or 0, self.errno)})"


class TraceAttr(ctypes.Structure):
    """As trace_attr_t: what is inside concerns the library only."""

    _fields_: ClassVar = [("inside", ctypes.c_uint64 * 64)]


class TraceEventSet(ctypes.Structure):
    """As trace_event_set_t, a value."""

    _fields_: ClassVar = [("inside", ctypes.c_uint64 * 16)]


class Timespec(ctypes.Structure):
    """As struct timespec."""

    _fields_: ClassVar = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]

    @classmethod
    def of_ns(cls, time_ns: int) -> Timespec:
        """Return a time in nanoseconds as this structure."""
        return cls(time_ns // _NS, time_ns % _NS)

    @property
    def ns(self) -> int:
        """The time in nanoseconds."""
        return int(self.tv_sec) * _NS + int(self.tv_nsec)


class EventInfo(ctypes.Structure):
    """As struct posix_trace_event_info."""

    _fields_: ClassVar = [
        ("event_id", ctypes.c_uint),
        ("pid", ctypes.c_int),
        ("prog_address", ctypes.c_void_p),
        ("thread_id", ctypes.c_ulong),
        ("timestamp", Timespec),
        ("truncation_status", ctypes.c_int),
    ]


class StatusInfo(ctypes.Structure):
    """As struct posix_trace_status_info."""

    _fields_: ClassVar = [
        ("stream_status", ctypes.c_int),
        ("stream_full_status", ctypes.c_int),
        ("stream_overrun_status", ctypes.c_int),
        ("stream_flush_status", ctypes.c_int),
        ("stream_flush_error", ctypes.c_int),
        ("log_overrun_status", ctypes.c_int),
        ("log_full_status", ctypes.c_int),
    ]


_ATTR = ctypes.POINTER(TraceAttr)
_SET = ctypes.POINTER(TraceEventSet)
_TIME = ctypes.POINTER(Timespec)
_INT = ctypes.POINTER(ctypes.c_int)
_SIZE = ctypes.POINTER(ctypes.c_size_t)
_ID = ctypes.POINTER(ctypes.c_uint)
_READ = [ctypes.c_uint, ctypes.POINTER(EventInfo), ctypes.c_void_p, ctypes.c_size_t, _SIZE, _INT]
# Arguments of the functions, named without posix_trace_; all give an error number.
_ARGUMENTS: dict[str, list[Any]] = {
    "attr_init": [_ATTR],
    "attr_destroy": [_ATTR],
    "attr_getgenversion": [_ATTR, ctypes.c_char_p],
    "attr_getname": [_ATTR, ctypes.c_char_p],
    "attr_setname": [_ATTR, ctypes.c_char_p],
    "attr_getcreatetime": [_ATTR, _TIME],
    "attr_getclockres": [_ATTR, _TIME],
    "attr_getinherited": [_ATTR, _INT],
    "attr_setinherited": [_ATTR, ctypes.c_int],
    "attr_getstreamfullpolicy": [_ATTR, _INT],
    "attr_setstreamfullpolicy": [_ATTR, ctypes.c_int],
    "attr_getlogfullpolicy": [_ATTR, _INT],
    "attr_setlogfullpolicy": [_ATTR, ctypes.c_int],
    "attr_getmaxdatasize": [_ATTR, _SIZE],
    "attr_setmaxdatasize": [_ATTR, ctypes.c_size_t],
    "attr_getstreamsize": [_ATTR, _SIZE],
    "attr_setstreamsize": [_ATTR, ctypes.c_size_t],
    "attr_getmaxsystemeventsize": [_ATTR, _SIZE],
    "attr_getmaxusereventsize": [_ATTR, ctypes.c_size_t, _SIZE],
    "attr_getlogsize": [_ATTR, _SIZE],
    "attr_setlogsize": [_ATTR, ctypes.c_size_t],
    "create": [ctypes.c_int, _ATTR, _ID],
    "create_withlog": [ctypes.c_int, _ATTR, ctypes.c_int, _ID],
    "flush": [ctypes.c_uint],
    "shutdown": [ctypes.c_uint],
    "clear": [ctypes.c_uint],
    "start": [ctypes.c_uint],
    "stop": [ctypes.c_uint],
    "get_attr": [ctypes.c_uint, _ATTR],
    "get_status": [ctypes.c_uint, ctypes.POINTER(StatusInfo)],
    "get_filter": [ctypes.c_uint, _SET],
    "set_filter": [ctypes.c_uint, _SET, ctypes.c_int],
    "eventid_open": [ctypes.c_char_p, _ID],
    "trid_eventid_open": [ctypes.c_uint, ctypes.c_char_p, _ID],
    "eventid_get_name": [ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p],
    "eventtypelist_getnext_id": [ctypes.c_uint, _ID, _INT],
    "eventtypelist_rewind": [ctypes.c_uint],
    "eventset_empty": [_SET],
    "eventset_fill": [_SET, ctypes.c_int],
    "eventset_add": [ctypes.c_uint, _SET],
    "eventset_del": [ctypes.c_uint, _SET],
    "eventset_ismember": [ctypes.c_uint, _SET, _INT],
    "getnext_event": _READ,
    "timedgetnext_event": [*_READ, _TIME],
    "trygetnext_event": _READ,
    "open": [ctypes.c_int, _ID],
    "rewind": [ctypes.c_uint],
    "close": [ctypes.c_uint],
}


@cache
def library() -> ctypes.CDLL:
    """Return the library with its functions declared.

    Raises:
        NativeFilesMissing: The library was not found.
    """
    # A CDLL lets other threads run while one of its functions does.
    loaded = ctypes.CDLL(str(_paths.library(LIBRARY)))
    for name, arguments in _ARGUMENTS.items():
        function = getattr(loaded, f"posix_trace_{name}")
        function.argtypes = arguments
        function.restype = ctypes.c_int
    loaded.posix_trace_event.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t]
    loaded.posix_trace_event.restype = None
    return loaded


def call(name: str, *arguments: Any, accept: tuple[int, ...] = ()) -> int:
    """Call a function; a call that a signal interrupted is made again when its handler has run.

    Args:
        name: The function, without posix_trace_.
        arguments: What it takes.
        accept: Error numbers to return instead of raising them.

    Raises:
        PosixTraceError: It failed.
    """
    function = getattr(library(), f"posix_trace_{name}")
    while True:
        error = int(function(*arguments))
        if error == 0 or error in accept:
            return error
        if error != errno.EINTR:
            raise PosixTraceError(name, error)
