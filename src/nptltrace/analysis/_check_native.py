"""The checker library: one class a handle, tables as NumPy arrays; see `pttcheck.h`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace import _paths
from nptltrace.trace._abi import check, load, made, own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace._binding.libpttread import Buffer

__all__ = [
    "CLOSED", "DROPPED", "FACTS", "INCOMPLETE", "NEVER", "RAGGED", "REFUSED", "RUNNING", "STEPS",
    "SUSPECT", "WHOLE", "Check",
]  # fmt: skip

VERSION = 4
FACTS = (
    "wait-cycle", "wait-for-self", "order-cycle", "signal-missed", "release-of-others",
    "release-of-free", "destroy-in-use", "use-of-destroyed", "cond-mutex-not-held",
    "cond-two-mutexes", "end-with-hold", "end-unjoined", "barrier-incomplete", "long-hold",
    "wait-for-lower", "all-blocked", "wait-with-hold",
)  # fmt: skip
STEPS = (
    "took", "waits", "asked", "cond", "joins", "barrier", "released", "unlocks", "refused", "init",
    "destroyed", "used", "signalled", "broadcast", "ended", "created", "priority",
    "forked",
)  # fmt: skip
CLOSED, WHOLE, SUSPECT, DROPPED, REFUSED = 1, 2, 4, 8, 16
INCOMPLETE, RUNNING, RAGGED = 1, 2, 4
NEVER = -(2**63)

_TABLES: dict[str, tuple[int, Any]] = {
    "facts": (0, [
        ("ts", "i8"), ("value", "i8"), ("count", "u8"), ("kind", "u4"), ("flags", "u4"),
        ("process", "u4"), ("first_step", "u4"), ("steps", "u4"), ("reserved", "u4"),
    ]),
    "steps": (1, [
        ("ts", "i8"), ("object", "u8"), ("site", "u8"), ("value", "i8"), ("wait", "u8"),
        ("thread", "u4"), ("other", "u4"), ("process", "u4"), ("kind", "u2"), ("what", "u2"),
    ]),
    "threads": (2, [("process", "u4"), ("tid", "u4"), ("number", "u4"), ("reserved", "u4")]),
}  # fmt: skip


class _Table(ctypes.Structure):
    _fields_ = (
        ("items", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
    )
    items: int | None
    count: int
    stride: int


_p, _n, _u64, _i64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_check_version": (ctypes.c_int, ()),
    "ptt_check_create": (_p, (_i64, _i64)),
    "ptt_check_destroy": (None, (_p,)),
    "ptt_check_thread": (ctypes.c_int, (_p, _n, _n, _n)),
    "ptt_check_process": (ctypes.c_int, (_p, _n, _n)),
    "ptt_check_stack": (ctypes.c_int, (_p, _n, _u64)),
    "ptt_check_memory": (ctypes.c_int, (_p, _n, _u64, _u64)),
    "ptt_check_share": (ctypes.c_int, (_p, _n, _u64, _u64, _n, _u64)),
    "ptt_check_feed": (ctypes.c_int, (_p, _p, _i64)),
    "ptt_check_finish": (ctypes.c_int, (_p, _p, _n, _n)),
    "ptt_check_table": (ctypes.c_int, (_p, _n, _p)),
    "ptt_check_lost": (_u64, (_p,)),
    "ptt_check_crowded": (_u64, (_p,)),
    "ptt_check_futex_waits": (_u64, (_p,)),
}


@cache
def library() -> ctypes.CDLL:
    """Load the checker library."""
    return load(_paths.check_library(), _PROTOTYPES, "ptt_check_version", VERSION)


class Check:
    """Collects facts, event by event.

    Args:
        long_hold_ns: From which time on a hold is a fact.
        long_wait_ns: From which time on a wait is one.
    """

    def __init__(self, long_hold_ns: int, long_wait_ns: int) -> None:
        lib = library()
        self._lib = lib
        self.handle = made("make a check", lib.ptt_check_create(long_hold_ns, long_wait_ns))
        own(self, lib.ptt_check_destroy, self.handle)

    def thread(self, number: int, process: int, tid: int) -> None:
        """Tell which thread the reader's number means."""
        check("follow a thread", self._lib.ptt_check_thread(self.handle, number, process, tid))

    def process(self, number: int, parent: int) -> None:
        """Tell that a process was forked by another."""
        check("follow a process", self._lib.ptt_check_process(self.handle, number, parent))

    def stack(self, process: int, start: int) -> None:
        """Tell that nothing lies behind an address but the stack of the first thread."""
        check("follow a process", self._lib.ptt_check_stack(self.handle, process, start))

    def memory(self, process: int, start: int, end: int) -> None:
        """Tell of memory that is never used for anything else."""
        check("follow a process", self._lib.ptt_check_memory(self.handle, process, start, end))

    def share(self, process: int, start: int, end: int, memory: int, offset: int) -> None:
        """Tell of memory that several processes have mapped; objects in it are one for all."""
        status = self._lib.ptt_check_share(self.handle, process, start, end, memory, offset)
        check("follow a process", status)

    def feed(self, buffer: Buffer) -> None:
        """Take in the events of a buffer, which has all columns but `cpu`."""
        check(
            "follow the events", self._lib.ptt_check_feed(self.handle, buffer.pointer, buffer.count)
        )

    def finish(self, ends: list[int], flags: int) -> None:
        """End it; `ends` says when each process ended, flags what the trace is like."""
        array = (_i64 * max(len(ends), 1))(*ends)
        check("finish", self._lib.ptt_check_finish(self.handle, array, len(ends), flags))

    @property
    def lost(self) -> int:
        """Events that the trace itself says were lost."""
        return int(self._lib.ptt_check_lost(self.handle))

    @property
    def crowded(self) -> int:
        """How often a lock was asked for while too many others were held to keep the orders."""
        return int(self._lib.ptt_check_crowded(self.handle))

    @property
    def futex_waits(self) -> int:
        """Waits for locks that are not the thread library's, which are not judged."""
        return int(self._lib.ptt_check_futex_waits(self.handle))

    def table(self, name: str) -> NDArray[Any]:
        """Return a table, as in `pttcheck.h`; element 0 stands for none."""
        number, columns = _TABLES[name]
        found = _Table()
        check("read a table", self._lib.ptt_check_table(self.handle, number, ctypes.byref(found)))
        dtype = np.dtype(columns, align=True)
        if not found.items or not found.count:
            return np.empty(0, dtype)
        memory = (ctypes.c_uint8 * (found.count * found.stride)).from_address(found.items)
        view = memoryview(memory).cast("B")
        return np.ndarray((found.count,), dtype, view, strides=(found.stride,)).copy()
