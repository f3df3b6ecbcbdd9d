"""Levels of detail for the viewer: waits and holds in bins of pixel width; see `pttdetail.h`."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding.arrays import dtype_of
from nptltrace._binding.handle import Handle
from nptltrace._binding.headers import pttdetail as c
from nptltrace._binding.library import Library, check
from nptltrace.errors import NativeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace._binding.libptttrack_sums import Model

__all__ = ["BINS", "SPAN", "WAIT", "Detail"]

BINS = c.PTT_DETAIL_BINS
SPAN, WAIT, _BIN = dtype_of(c.DetailSpan), dtype_of(c.DetailWait), dtype_of(c.DetailBin)
_BY = {
    "thread": c.PTT_DETAIL_THREADS,
    "object": c.PTT_DETAIL_OBJECTS,
    "processor": c.PTT_DETAIL_PROCESSORS,
}
_SPANS = 1 << 14
_WAITS = 1 << 16


@cache
def library() -> Library:
    """Load the library."""
    version = ("ptt_detail_version", c.PTT_DETAIL_VERSION)
    return Library("libptttrack.so", c.FUNCTIONS, version, keeps_errno=True)


class Detail(Handle):
    """Waits and holds by row, in bins of pixel width.

    Args:
        fd: The file that keeps them; the caller may close it afterwards.
        identity: 32 bytes. Opens the levels that were finished with them. None: begin new levels.

    Raises:
        NativeError: The file cannot be used. ESTALE: the file has another identity.
    """

    def __init__(self, fd: int, identity: bytes | None = None) -> None:
        lib = library()
        self._lib = lib
        # The library keeps its own descriptor, because the file grows.
        self._fd = os.dup(fd)
        if identity is None:
            address = lib.ptt_detail_create(self._fd)
        else:
            address = lib.ptt_detail_open(self._fd, identity)
        if not address:
            code = ctypes.get_errno() or errno.EIO
            os.close(self._fd)
            raise NativeError("cannot use the levels of detail", code)
        self._own("draw", address, partial(_destroy, lib, self._fd))

    def events(self, ts: int, count: int) -> None:
        """Count events.

        Args:
            ts: Address of the times of the events, int64 in ns.
            count: Number of events.
        """
        check("count events", self._lib.ptt_detail_events(self.handle, ts, count))

    def feed(self, model: Model) -> None:
        """Add the rows that a model made since its last `drop_rows`."""
        tables = [ctypes.byref(model.raw(name)) for name in ("waits", "holds", "states", "objects")]
        check("keep waits and holds", self._lib.ptt_detail_feed(self.handle, *tables))

    def end(self) -> None:
        """Add the last states of the threads; no other call may add rows afterwards."""
        check("keep turns of threads", self._lib.ptt_detail_end(self.handle))

    def finish(self, identity: bytes) -> None:
        """Write the rest, so that the file is complete, with an identity of 32 bytes."""
        check("keep the levels of detail", self._lib.ptt_detail_finish(self.handle, identity))

    def rows(self, by: str) -> int:
        """Return the number of rows, including row 0."""
        return int(self._lib.ptt_detail_rows(self.handle, _BY[by]))

    def lanes(self, by: str, count: int) -> NDArray[np.uint16]:
        """Return the number of lanes of each of the first `count` rows."""
        lanes = np.empty(count, np.uint16)
        self._lib.ptt_detail_lanes(self.handle, _BY[by], lanes.ctypes.data, count)
        return lanes

    def row_of(self) -> NDArray[np.uint32]:
        """Return the row of each object of the model."""
        count = self._lib.ptt_detail_row_of(self.handle, None, 0)
        rows = np.zeros(count, np.uint32)
        self._lib.ptt_detail_row_of(self.handle, rows.ctypes.data, count)
        return rows

    def spans(
        self, by: str, rows: list[int], from_ns: int, to_ns: int, bin_ns: int
    ) -> NDArray[Any]:
        """Return the spans to draw in a window, as an array of `SPAN`; see `ptt_detail_spans`."""
        wanted = np.array(rows, np.uint32)
        room = _SPANS
        while True:
            out = np.empty(room, SPAN)
            status = self._lib.ptt_detail_spans(
                self.handle, _BY[by], wanted.ctypes.data, len(wanted), from_ns, to_ns, bin_ns,
                out.ctypes.data, room,
            )  # fmt: skip
            count = check("find what to draw", status)
            if count <= room:
                return out[:count]
            room = count

    def each(self, by: str, row: int, from_ns: int, to_ns: int, most: int) -> NDArray[Any] | None:
        """Return all spans of a row, as an array of `SPAN`; None if there are more than `most`."""
        wanted, out = np.array([row], np.uint32), np.empty(most, SPAN)
        status = self._lib.ptt_detail_spans(
            self.handle, _BY[by], wanted.ctypes.data, 1, from_ns, to_ns, 0, out.ctypes.data, most
        )  # fmt: skip
        count = check("find spans", status)
        return out[:count] if count <= most else None

    def find(self, by: str, row: int, lane: int, t_ns: int) -> Any:
        """Return the span of a lane at a time, as a row of `SPAN`, or None."""
        out = np.zeros(1, SPAN)
        status = self._lib.ptt_detail_find(
            self.handle, _BY[by], row, lane, t_ns, out.ctypes.data
        )  # fmt: skip
        return None if status < 0 else out[0]

    def wait(self, number: int) -> Any:
        """Return a wait, as a row of `WAIT`, or None."""
        out = np.zeros(1, WAIT)
        status = self._lib.ptt_detail_wait(self.handle, number, out.ctypes.data)
        return None if status < 0 else out[0]

    def waits(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all waits in pieces: the number of the first wait, and an array of `WAIT`.

        Unused numbers have thread 0.
        """
        first = 0
        while True:
            out = np.empty(_WAITS, WAIT)
            count = self._lib.ptt_detail_waits(self.handle, first, out.ctypes.data, _WAITS)
            if not count:
                return
            yield first, out[:count]
            first += count

    def overview(self) -> tuple[NDArray[Any], int, int]:
        """Return the bins of the whole trace, and begin and width of a bin in ns.

        A bin has `events`, and `wait_ns` of contended, idle and other waits.
        """
        out, begin, width = np.zeros(BINS, _BIN), c.i64(), c.i64()
        count = self._lib.ptt_detail_overview(
            self.handle, out.ctypes.data, ctypes.byref(begin), ctypes.byref(width)
        )
        return out[:count], begin.value, width.value


def _destroy(lib: Library, fd: int, address: int) -> None:
    lib.ptt_detail_destroy(address)
    os.close(fd)
