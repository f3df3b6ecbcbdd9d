"""Functions of the C and C++ libraries that the standard library of Python does not offer.

Each function may be missing in C libraries other than glibc.
"""

from __future__ import annotations

import ctypes
import errno
import os
from array import array
from functools import cache
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "clock_error_ns",
    "demangler",
    "duplicate",
    "few_arenas",
    "give_back",
    "let_look",
    "ptrace",
    "punch_hole",
    "read_memory",
    "register_set",
    "wake",
]

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of <sys/timex.h>
_TIMEX_WORDS = 26
_M_ARENA_MAX = -8  # of <malloc.h>
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of <linux/falloc.h>
_GETREGSET = 0x4204  # of <sys/ptrace.h>
_SYS_FUTEX, _FUTEX_WAKE = 202, 1
_SYS_PIDFD_GETFD = 438
_SET_PTRACER = 0x59616D61  # PR_SET_PTRACER of <linux/prctl.h>


class _Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _function(name: str, library: str | None = None) -> Any:
    try:
        return getattr(ctypes.CDLL(library, use_errno=True), name)
    except (OSError, AttributeError):
        return None


def clock_error_ns() -> int | None:
    """Return the greatest error of the time of day, in ns, from adjtimex(2).

    None if the clock is not synchronised, or if there is no adjtimex().
    """
    # struct timex: modes, offset, freq, maxerror, esterror, status, …
    state = (ctypes.c_long * _TIMEX_WORDS)()
    adjtimex = _function("adjtimex")
    if adjtimex is None:
        return None
    adjtimex(state)
    unset = state[5] & 0xFFFF_FFFF & _UNSYNCHRONISED
    return None if unset or state[3] < 0 else state[3] * 1000


def few_arenas(count: int) -> None:
    """Limit malloc to `count` arenas; see mallopt(3). Call it before threads start."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, count)


def give_back() -> None:
    """Give free memory back to the system; see malloc_trim(3). It walks through all free memory."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def punch_hole(fd: int, offset: int, size: int) -> None:
    """Free the memory or disk space of a part of a file, mapped or not; see fallocate(2)."""
    fallocate = _function("fallocate")
    if fallocate is not None:
        fallocate(
            ctypes.c_int(fd), ctypes.c_int(_KEEP_SIZE | _PUNCH_HOLE), ctypes.c_long(offset),
            ctypes.c_long(size),
        )  # fmt: skip


def read_memory(pid: int, pieces: Sequence[tuple[int, int]]) -> bytes:
    """Return memory of another process, up to the first unreadable piece; process_vm_readv(2).

    Args:
        pid: The process.
        pieces: Addresses and sizes in bytes.
    """
    places = array("Q", chain.from_iterable(pieces))
    memory = ctypes.create_string_buffer(sum(places[1::2]))
    local = _Piece(ctypes.addressof(memory), len(memory))
    remote = (_Piece * len(pieces)).from_buffer(places)
    read = _function("process_vm_readv")
    done = 0 if read is None else read(pid, ctypes.byref(local), 1, remote, len(remote), 0)
    return memory.raw[: max(done, 0)]


def duplicate(pid: int, number: int) -> int:
    """Duplicate a file descriptor of another process; see pidfd_getfd(2).

    Args:
        pid: The process.
        number: The descriptor in that process.

    Returns:
        A descriptor that the caller closes; -1 if the kernel refuses.
    """
    call = _function("syscall")
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return -1
    try:
        return -1 if call is None else int(call(_SYS_PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)


def ptrace(request: int, tid: int, address: int | None = None, data: int | None = None) -> int:
    """Make a ptrace request about a thread; return 0, or a negated error number."""
    call = _function("ptrace")
    if call is None:
        return -errno.ENOSYS
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return 0 if call(request, tid, address, data) == 0 else -ctypes.get_errno()


def let_look(pid: int) -> None:
    """Let a process and its descendants look into this process, where Yama asks for that.

    See PR_SET_PTRACER in prctl(2). Without Yama nothing changes.
    """
    prctl = _function("prctl")
    if prctl is not None:
        zero = ctypes.c_ulong(0)
        prctl(ctypes.c_int(_SET_PTRACER), ctypes.c_ulong(pid), zero, zero, zero)


def register_set(tid: int, kind: int, size: int) -> bytes | None:
    """Return a register set of a stopped thread (PTRACE_GETREGSET); None if it cannot be read.

    Args:
        tid: The thread.
        kind: The note type of the set, such as NT_PRSTATUS.
        size: Size of the set in bytes.
    """
    data = ctypes.create_string_buffer(size)
    piece = _Piece(ctypes.cast(data, ctypes.c_void_p), size)
    return None if ptrace(_GETREGSET, tid, kind, ctypes.addressof(piece)) else data.raw


def wake(address: int, count: int) -> None:
    """Wake up to `count` threads, of any process, that wait for the futex at an address."""
    call = _function("syscall")
    if call is not None:
        call(
            ctypes.c_long(_SYS_FUTEX), ctypes.c_void_p(address), ctypes.c_int(_FUTEX_WAKE),
            ctypes.c_int(count), None, None, ctypes.c_int(0),
        )  # fmt: skip


def demangler() -> Callable[[bytes], bytes | None]:
    """Return a function that demangles C++ names, and returns None for other names.

    It is `__cxa_demangle` of libstdc++ (Itanium C++ ABI); without it, every result is None.
    """
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
