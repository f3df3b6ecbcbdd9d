"""Functions of the C library, and of C++'s, that Python has no other way to.

Each of them may be missing: other C libraries than glibc do without.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["clock_error_ns", "demangler", "few_arenas", "give_back"]

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of <sys/timex.h>
_TIMEX_WORDS = 26
_M_ARENA_MAX = -8  # of <malloc.h>


def _function(name: str, library: str | None = None) -> Any:
    try:
        return getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError):
        return None


def clock_error_ns() -> int | None:
    """Return how far the time of day may be off, as the kernel knows; None if nobody sets it."""
    # struct timex: modes, offset, freq, maxerror, esterror, status, …
    state = (ctypes.c_long * _TIMEX_WORDS)()
    adjtimex = _function("adjtimex")
    if adjtimex is None:
        return None
    adjtimex(state)
    unset = state[5] & 0xFFFF_FFFF & _UNSYNCHRONISED
    return None if unset or state[3] < 0 else state[3] * 1000


def few_arenas(count: int) -> None:
    """Let threads share so many arenas of malloc. To be called before there are threads."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, count)


def give_back() -> None:
    """Give free memory back to the system. It costs a walk through what is free."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def demangler() -> Callable[[bytes], bytes | None]:
    """Return a function that returns a C++ name as it was written, or None for what is none."""
    demangle = _function("__cxa_demangle", "libstdc++.so.6")
    if demangle is None:
        return lambda _: None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    free = ctypes.CDLL(None).free
    free.restype, free.argtypes = None, (ctypes.c_void_p,)

    def plain(name: bytes) -> bytes | None:
        pointer = demangle(name, None, None, None)
        if not pointer:
            return None
        try:
            return ctypes.string_at(pointer)
        finally:
            free(pointer)

    return plain
