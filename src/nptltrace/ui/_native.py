"""The library of the levels of detail: one class a handle; see `pttdetail.h`."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace import _paths
from nptltrace.errors import NativeError
from nptltrace.trace._abi import check, load, own

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.analysis._native import Model

__all__ = ["BINS", "SPAN", "WAIT", "Detail"]

VERSION = 2
BINS = 8192
_BY = {"thread": 0, "object": 1}

# As they stand in the C structs.
SPAN = np.dtype(
    [
        ("t_ns", "i8"), ("dur_ns", "i8"), ("busy_ns", "i8"), ("row", "u4"), ("count", "u4"),
        ("other", "u4"), ("depth", "u4"), ("wait", "u4"), ("lane", "u2"), ("state", "u1"),
        ("flags", "u1"),
    ]
)  # fmt: skip
WAIT = np.dtype(
    [
        ("t_ns", "i8"), ("dur_ns", "i8"), ("held_ns", "i8"), ("waker_t_ns", "i8"),
        *((name, "u4") for name in ("parent", "thread", "object", "site", "owner", "owner_site",
                                    "waker", "waker_site")),
        ("queue_depth", "u2"), ("result", "i2"), ("wait_class", "u1"), ("kind", "u1"),
        ("mode", "u1"), ("open", "u1"),
    ]
)  # fmt: skip
_BIN = np.dtype([("events", "u8"), ("wait_ns", "u8", (3,))])
_SPANS = 1 << 14

_p, _u32, _i64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_detail_version": (ctypes.c_int, ()),
    "ptt_detail_create": (_p, (ctypes.c_int,)),
    "ptt_detail_open": (_p, (ctypes.c_int, ctypes.c_char_p)),
    "ptt_detail_destroy": (None, (_p,)),
    "ptt_detail_events": (ctypes.c_int, (_p, _p, _i64)),
    "ptt_detail_feed": (ctypes.c_int, (_p, _p, _p, _p)),
    "ptt_detail_finish": (ctypes.c_int, (_p, ctypes.c_char_p)),
    "ptt_detail_rows": (_u32, (_p, _u32)),
    "ptt_detail_lanes": (ctypes.c_int, (_p, _u32, _p, _u32)),
    "ptt_detail_row_of": (_i64, (_p, _p, _u32)),
    "ptt_detail_spans": (_i64, (_p, _u32, _p, _u32, _i64, _i64, _i64, _p, _i64)),
    "ptt_detail_find": (ctypes.c_int, (_p, _u32, _u32, _u32, _i64, _p)),
    "ptt_detail_wait": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_detail_overview": (_i64, (_p, _p, _p, _p)),
}


@cache
def _library() -> ctypes.CDLL:
    path = _paths.detail_library()
    lib = load(path, _PROTOTYPES, "ptt_detail_version", VERSION)
    # The same file again, so that what its functions leave in errno is seen.
    seen = ctypes.CDLL(str(path), use_errno=True)
    for name in ("ptt_detail_create", "ptt_detail_open"):
        function = getattr(seen, name)
        function.restype, function.argtypes = _PROTOTYPES[name]
        setattr(lib, name, function)
    return lib


class Detail:
    """Waits and holds by row, as fine as pixels are.

    Args:
        fd: The file they are kept in; it may be closed afterwards.
        identity: 32 bytes: open what was finished under them. Without them, begin anew.

    Raises:
        NativeError: The file cannot be used; ESTALE: it is of something else.
    """

    def __init__(self, fd: int, identity: bytes | None = None) -> None:
        lib = _library()
        self._lib = lib
        # Where it is written to, the file grows under a descriptor of its own.
        self._fd = os.dup(fd)
        if identity is None:
            handle = lib.ptt_detail_create(self._fd)
        else:
            handle = lib.ptt_detail_open(self._fd, identity)
        if not handle:
            code = ctypes.get_errno() or errno.EIO
            os.close(self._fd)
            raise NativeError("cannot use the levels of detail", code)
        self._handle = handle
        self._close = own(self, _destroy, lib, handle, self._fd)

    def events(self, ts: int, count: int) -> None:
        """Count events by the address of their times."""
        check("count events", self._lib.ptt_detail_events(self._handle, ts, count))

    def feed(self, model: Model) -> None:
        """Take in the rows that a model told since its `drop_rows`."""
        tables = [ctypes.byref(model.raw(name)) for name in ("waits", "holds", "objects")]
        check("keep waits and holds", self._lib.ptt_detail_feed(self._handle, *tables))

    def finish(self, identity: bytes) -> None:
        """Make the file whole."""
        check("keep the levels of detail", self._lib.ptt_detail_finish(self._handle, identity))

    def rows(self, by: str) -> int:
        """Return how many rows there are, row 0 included."""
        return int(self._lib.ptt_detail_rows(self._handle, _BY[by]))

    def lanes(self, by: str, count: int) -> NDArray[np.uint16]:
        """Return the number of lanes of the first rows."""
        found = np.empty(count, np.uint16)
        self._lib.ptt_detail_lanes(self._handle, _BY[by], found.ctypes.data, count)
        return found

    def row_of(self) -> NDArray[np.uint32]:
        """Return the row of each object of the model."""
        count = self._lib.ptt_detail_row_of(self._handle, None, 0)
        found = np.zeros(count, np.uint32)
        self._lib.ptt_detail_row_of(self._handle, found.ctypes.data, count)
        return found

    def spans(
        self, by: str, rows: list[int], from_ns: int, to_ns: int, bin_ns: int
    ) -> NDArray[Any]:
        """Return what to draw, as `SPAN`; see `ptt_detail_spans`."""
        wanted = np.array(rows, np.uint32)
        room = _SPANS
        while True:
            out = np.empty(room, SPAN)
            status = self._lib.ptt_detail_spans(
                self._handle, _BY[by], wanted.ctypes.data, len(wanted), from_ns, to_ns, bin_ns,
                out.ctypes.data, room,
            )  # fmt: skip
            count = check("find what to draw", status)
            if count <= room:
                return out[:count]
            room = count

    def find(self, by: str, row: int, lane: int, t_ns: int) -> Any:
        """Return the wait or hold of a lane at a time, as a row of `SPAN`, or None."""
        out = np.zeros(1, SPAN)
        status = self._lib.ptt_detail_find(
            self._handle, _BY[by], row, lane, t_ns, out.ctypes.data
        )  # fmt: skip
        return None if status < 0 else out[0]

    def wait(self, number: int) -> Any:
        """Return a wait, as a row of `WAIT`, or None."""
        out = np.zeros(1, WAIT)
        status = self._lib.ptt_detail_wait(self._handle, number, out.ctypes.data)
        return None if status < 0 else out[0]

    def overview(self) -> tuple[NDArray[Any], int, int]:
        """Return the bins (`events`, and `wait_ns` contended, idle, other), begin and width."""
        out, begin, width = np.zeros(BINS, _BIN), _i64(), _i64()
        count = self._lib.ptt_detail_overview(
            self._handle, out.ctypes.data, ctypes.byref(begin), ctypes.byref(width)
        )
        return out[:count], begin.value, width.value

    def close(self) -> None:
        """Give it up; nobody may ask any more."""
        self._close()


def _destroy(lib: ctypes.CDLL, handle: int, fd: int) -> None:
    lib.ptt_detail_destroy(handle)
    os.close(fd)
