"""libposixtrace: the functions of `<trace.h>`, and their errors as exceptions."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any

from nptltrace._binding.headers import trace as c
from nptltrace._binding.library import Library
from nptltrace.errors import PttError

__all__ = ["PosixTraceError", "call", "library", "ns_of", "timespec_of"]

_NS = 1_000_000_000
_OBJECTS = (ctypes.Structure, ctypes.Union, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t)


class PosixTraceError(PttError, OSError):
    """A function of `<trace.h>` failed.

    Args:
        what: The attempted action, such as "create".
        number: The error number of the function; the attribute `errno` has it, too.
    """

    def __init__(self, what: str, number: int) -> None:
        OSError.__init__(self, number, os.strerror(number))
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}: {self.strerror} ({errno.errorcode.get(self.errno or 0, self.errno)})"


def ns_of(time: c.Timespec) -> int:
    """Return a time in nanoseconds."""
    return time.tv_sec * _NS + time.tv_nsec


def timespec_of(time_ns: int) -> c.Timespec:
    """Return a time in nanoseconds as a `struct timespec`."""
    return c.Timespec(time_ns // _NS, time_ns % _NS)


@cache
def library() -> Library:
    """Load the library.

    Raises:
        NativeFilesMissing: The library was not found.
    """
    return Library("libposixtrace.so.0", c.FUNCTIONS)


def call(name: str, *arguments: Any, accept: tuple[int, ...] = ()) -> int:
    """Call a function of `<trace.h>`, again after each EINTR.

    Args:
        name: The function, without `posix_trace_`.
        arguments: The arguments; structs and numbers of ctypes are passed by address.
        accept: Error numbers that are returned instead of raised.

    Returns:
        0, or an error number of `accept`.

    Raises:
        PosixTraceError: The function failed.
    """
    function = getattr(library(), f"posix_trace_{name}")
    passed = [
        ctypes.byref(argument) if isinstance(argument, _OBJECTS) else argument
        for argument in arguments
    ]
    while True:
        error = int(function(*passed))
        if error == 0 or error in accept:
            return error
        if error != errno.EINTR:
            raise PosixTraceError(name, error)
