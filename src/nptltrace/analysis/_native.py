"""The model library: one class a handle, tables as NumPy arrays; see `pttmodel.h`."""

from __future__ import annotations

import ctypes
import tempfile
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace import _paths
from nptltrace.trace._abi import check, load, made, own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace._binding.libpttread import Buffer

__all__ = [
    "CLASSES", "EDGES", "KINDS", "LLL_SHIFT", "NEVER", "PAIRS", "PATH", "ROWS", "WAKES", "Lanes",
    "Model", "percentile",
]  # fmt: skip

VERSION = 6
ROWS, EDGES, PATH, PAIRS = 1, 2, 4, 8
CLASSES = ("contended", "idle", "join", "timeout", "cancelled")
KINDS = {
    1: "thread", 2: "mutex", 3: "rwlock", 4: "spinlock", 5: "cond", 6: "barrier", 7: "semaphore",
    8: "once", 10: "futex", 14: "lll",
}  # fmt: skip
WAKES = ("", "unlock", "signal", "broadcast", "post", "barrier", "end", "once", "futex")
NEVER = -(2**63)
END = 2**63 - 1
# From this bit on, the flags of a low-level lock say what it is for: a place in LLL_PURPOSES.
LLL_SHIFT = 8
BUCKETS = 768
_ANY = 2**32 - 1

_SUMS = [
    ("wait_n", "u8", (5,)), ("wait_ns", "u8", (5,)), ("wait_max", "u8"), ("held_ns", "u8"),
    ("hold_n", "u8"), ("hold_ns", "u8"), ("hold_max", "u8"),
]  # fmt: skip


def _u32(*names: str) -> list[tuple[str, str]]:
    return [(name, "u4") for name in names]


# Number of the table, and its columns as they stand in the C structs.
_TABLES: dict[str, tuple[int, list[Any]]] = {
    "objects": (0, [
        *_SUMS, ("address", "u8"), ("first_ns", "i8"), ("last_ns", "i8"), ("wasted", "u8"),
        *_u32("process", "kind", "generation", "threads", "max_waiters", "waiters", "holders",
              "holder", "first_site", "histogram", "flags", "init_site", "attributes",
              "address_threads"),
    ]),
    "sites": (1, [
        *_SUMS, ("address", "u8"), ("caused_ns", "u8"),
        *_u32("process", "kind", "histogram", "reserved"),
    ]),
    "threads": (2, [
        *_SUMS, ("kind_ns", "u8", (16,)), ("caused_ns", "u8"), ("pthread", "u8"),
        ("routine", "u8"), ("first_ns", "i8"), ("last_ns", "i8"), ("create_ns", "i8"),
        ("end_ns", "i8"), ("join_ns", "i8"), ("buffer_ns", "u8"),
        *_u32("process", "tid", "generation", "creator", "create_site", "histogram", "flags",
              "held", "policy"),
        ("priority", "i4"),
    ]),
    "pairs": (3, [
        *_SUMS, ("caused_ns", "u8"), ("balance_ns", "i8"),
        *_u32("thread", "object", "balance", "used"),
    ]),
    "blames": (4, [("caused_ns", "u8"), *_u32("object", "thread", "site", "reserved")]),
    "causes": (5, [
        ("n", "u8"), ("ns", "u8"), ("held_ns", "u8"), ("max", "u8"),
        *_u32("thread", "object", "site", "cause", "cause_site", "wait_class"),
    ]),
    "wakers": (6, [("n", "u8"), ("ns", "u8"), *_u32("object", "thread", "site", "reserved")]),
    "edges": (7, [
        ("n", "u8"), ("first_ns", "i8"),
        *_u32("held", "wanted", "held_site", "wanted_site", "thread", "threads"),
        ("guard", "u4", (4,)), ("held_mode", "u1"), ("wanted_mode", "u1"), ("blocked", "u1"),
        ("tries", "u1"), ("reserved", "u4"),
    ]),
    "histograms": (8, [("counts", "u4", (BUCKETS,))]),
    "waits": (9, [
        ("t_ns", "i8"), ("dur_ns", "i8"), ("held_ns", "i8"), ("waker_t_ns", "i8"), ("id", "u8"),
        ("parent", "u8"), ("chain", "u8"),
        *_u32("thread", "object", "site", "owner", "owner_site", "waker", "waker_site",
              "queue_depth"),
        ("result", "i4"), ("wait_class", "u1"), ("kind", "u1"), ("mode", "u1"), ("open", "u1"),
    ]),
    "holds": (10, [
        ("t_ns", "i8"), ("dur_ns", "i8"),
        *_u32("thread", "object", "site", "release_site", "max_waiters"),
        ("mode", "u1"), ("open", "u1"), ("thread_place", "u1"), ("object_place", "u1"),
    ]),
    "wakeups": (11, [
        ("t_ns", "i8"), ("woken_ns", "i8"), ("wait", "u8"),
        *_u32("waker", "wakee", "object", "site"), ("kind", "u1"), ("reserved", "u1", (7,)),
    ]),
    "segments": (13, [
        ("start_ns", "i8"), ("end_ns", "i8"), *_u32("thread", "object", "site"), ("kind", "u1"),
        ("reserved", "u1", (3,)),
    ]),
    "state": (14, [("t_ns", "i8"), *_u32("thread", "times")]),
}  # fmt: skip
_TABLES["open"] = (12, _TABLES["waits"][1])
_LANE = np.dtype([("group", "u8"), *_u32("place", "reserved")], align=True)


class _Table(ctypes.Structure):
    _fields_ = (
        ("items", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
    )
    items: int | None
    count: int
    stride: int


_p, _n = ctypes.c_void_p, ctypes.c_uint32
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_model_version": (ctypes.c_int, ()),
    "ptt_model_create": (_p, (_n,)),
    "ptt_model_destroy": (None, (_p,)),
    "ptt_model_thread": (ctypes.c_int, (_p, _n, _n, _n)),
    "ptt_model_child": (ctypes.c_int, (_p, _n, _n)),
    "ptt_model_share": (
        ctypes.c_int,
        (_p, _n, ctypes.c_uint64, ctypes.c_uint64, _n, ctypes.c_uint64),
    ),
    "ptt_model_only_thread": (ctypes.c_int, (_p, _n)),
    "ptt_model_only_object": (ctypes.c_int, (_p, _n, ctypes.c_uint64)),
    "ptt_model_only_site": (ctypes.c_int, (_p, _n, ctypes.c_uint64)),
    "ptt_model_window": (None, (_p, ctypes.c_int64, ctypes.c_int64)),
    "ptt_model_undecided": (ctypes.c_uint64, (_p,)),
    "ptt_model_last": (None, (_p, _n, ctypes.c_int64)),
    "ptt_model_feed": (ctypes.c_int, (_p, _p, ctypes.c_int64)),
    "ptt_model_waiting": (ctypes.c_int, (_p, ctypes.c_int64)),
    "ptt_model_holding": (ctypes.c_int, (_p, ctypes.c_int64)),
    "ptt_model_state": (ctypes.c_int, (_p,)),
    "ptt_model_save": (ctypes.c_int64, (_p, ctypes.c_int)),
    "ptt_model_load": (ctypes.c_int, (_p, ctypes.c_char_p, ctypes.c_uint64)),
    "ptt_model_full": (ctypes.c_uint32, (_p, _n)),
    "ptt_model_set_full": (ctypes.c_int, (_p, _n, _n)),
    "ptt_model_finish": (ctypes.c_int, (_p, _p, _n)),
    "ptt_model_path_file": (None, (_p, ctypes.c_int)),
    "ptt_model_path": (ctypes.c_int, (_p, _n)),
    "ptt_model_path_next": (ctypes.c_int, (_p,)),
    "ptt_model_path_resolution": (ctypes.c_int64, (_p,)),
    "ptt_model_table": (ctypes.c_int, (_p, _n, _p)),
    "ptt_model_drop_rows": (None, (_p,)),
    "ptt_model_bucket_ns": (ctypes.c_double, (_n,)),
    "ptt_model_lost": (ctypes.c_uint64, (_p,)),
    "ptt_model_lanes_create": (_p, ()),
    "ptt_model_lanes_destroy": (None, (_p,)),
    "ptt_model_lanes_place": (ctypes.c_int, (_p, _p, _p, _p, _p, ctypes.c_int64)),
    "ptt_model_lanes_table": (ctypes.c_int, (_p, _p)),
}


@cache
def library() -> ctypes.CDLL:
    """Load the model library."""
    return load(_paths.model_library(), _PROTOTYPES, "ptt_model_version", VERSION)


class Model:
    """The states of threads and objects, event by event.

    Args:
        flags: `ROWS`, `EDGES`, `PATH`, `PAIRS`: what to keep beside the sums.
    """

    def __init__(self, flags: int = 0) -> None:
        lib = library()
        self._lib = lib
        self._process_of: dict[int, int] = {}
        self.counts_all = True
        self.handle = made("make a model", lib.ptt_model_create(flags))
        own(self, lib.ptt_model_destroy, self.handle)
        if flags & PATH:
            with suppress(OSError):  # without it short waits are left out
                file = tempfile.TemporaryFile(prefix="ptt-path-")  # noqa: SIM115 -- closed below
                own(self, file.close)
                lib.ptt_model_path_file(self.handle, file.fileno())

    def thread(self, number: int, process: int, tid: int) -> None:
        """Tell which thread the reader's number means."""
        status = self._lib.ptt_model_thread(self.handle, number, process, tid)
        check("follow a thread", status)
        self._process_of[number] = process

    def threads(self) -> dict[int, int]:
        """Return the processes of the threads that were told, by the reader's numbers."""
        return self._process_of

    def child(self, process: int, parent: int) -> None:
        """Tell who forked a process; both have threads that were told."""
        status = self._lib.ptt_model_child(self.handle, process, parent)
        check("follow a fork", status)

    def share(self, process: int, start: int, end: int, memory: int, offset: int) -> None:
        """Tell that [start, end) of a process is `memory` from `offset` on, as others have it."""
        status = self._lib.ptt_model_share(self.handle, process, start, end, memory, offset)
        check("follow shared memory", status)

    def only_threads(self, numbers: list[int]) -> None:
        """Count only what these threads (the reader's numbers) do."""
        self.counts_all = False
        for number in (_ANY, *numbers):
            check("choose", self._lib.ptt_model_only_thread(self.handle, number))

    def only_objects(self, objects: list[tuple[int, int]]) -> None:
        """Count only these (process, address) pairs; process may be `ANY` of the reader."""
        self.counts_all = False
        for process, address in ((_ANY, 2**64 - 1), *objects):
            check("choose", self._lib.ptt_model_only_object(self.handle, process, address))

    def only_sites(self, sites: list[tuple[int, int]]) -> None:
        """Count only what was called from these (process, site) pairs; of `ANY`, addresses."""
        self.counts_all = False
        for process, address in ((_ANY, 2**64 - 1), *sites):
            check("choose", self._lib.ptt_model_only_site(self.handle, process, address))

    def window(self, begin_ns: int | None, end_ns: int | None) -> None:
        """Count only what lies in [begin, end); before the first event. None stands for no limit.

        Events before it are to be fed too, and those behind it while `undecided` is not 0.
        """
        begin = NEVER if begin_ns is None else begin_ns
        self._lib.ptt_model_window(self.handle, begin, END if end_ns is None else end_ns)

    @property
    def undecided(self) -> int:
        """How many waits and holds that began before the window's end go on."""
        return int(self._lib.ptt_model_undecided(self.handle))

    def last(self, number: int, ts_ns: int) -> None:
        """Tell until when a thread (the reader's number) lives at least, unless it has ended."""
        self._lib.ptt_model_last(self.handle, number, ts_ns)

    def feed(self, buffer: Buffer) -> None:
        """Take in the events of a buffer, which has all columns but `cpu`."""
        status = self._lib.ptt_model_feed(self.handle, buffer.pointer, buffer.count)
        check("follow the events", status)

    def waiting(self, now_ns: int) -> NDArray[Any]:
        """Return the waits that are going on, as the table `open` has them; they go on."""
        check("see who waits", self._lib.ptt_model_waiting(self.handle, now_ns))
        return self.table("open")

    def holding(self, now_ns: int) -> NDArray[Any]:
        """Return the holds that are going on, as the table `holds` has them; they go on.

        Rows that were told before are dropped.
        """
        self.drop_rows()
        check("see who holds", self._lib.ptt_model_holding(self.handle, now_ns))
        found = self.table("holds")
        self.drop_rows()
        return found

    def state(self) -> NDArray[Any]:
        """Return the events that have led to what goes on, as the table `state` has them."""
        check("see what goes on", self._lib.ptt_model_state(self.handle))
        return self.table("state")

    def save(self, fd: int) -> int:
        """Write what goes on to a file; return the size of that."""
        return int(check("keep a state", self._lib.ptt_model_save(self.handle, fd)))

    def load(self, data: bytes) -> bool:
        """Take over what was saved, in place of all events up to there; False if it is damaged."""
        return int(self._lib.ptt_model_load(self.handle, data, len(data))) == 0

    def full(self, process: int) -> int:
        """Return bits of the kinds of which changes of state are recorded in a process."""
        return int(self._lib.ptt_model_full(self.handle, process))

    def set_full(self, process: int, kinds: int) -> None:
        """Tell of which kinds changes of state are recorded in a process with known threads."""
        status = self._lib.ptt_model_set_full(self.handle, process, kinds)
        check("follow a process", status)

    def finish(self, ends: list[int]) -> None:
        """End what is open; `ends` says when each process ended, `NEVER` where nobody knows."""
        array = (ctypes.c_int64 * max(len(ends), 1))(*ends)
        check("finish", self._lib.ptt_model_finish(self.handle, array, len(ends)))

    def path(self, thread: int = 0) -> Iterator[NDArray[Any]]:
        """Yield the critical path to the end of a thread (a row): pieces, the latest first.

        Each array, as the table `segments` has it, is valid until the next one.
        """
        check("find the critical path", self._lib.ptt_model_path(self.handle, thread))
        while True:
            check("find the critical path", self._lib.ptt_model_path_next(self.handle))
            pieces = self.table("segments", copy=False)
            if not len(pieces):
                return
            yield pieces

    @property
    def path_resolution_ns(self) -> int:
        """Waits shorter than this are not in the critical path; 0 when none was left out."""
        return int(self._lib.ptt_model_path_resolution(self.handle))

    @property
    def lost(self) -> int:
        """Events that the trace itself says were lost."""
        return int(self._lib.ptt_model_lost(self.handle))

    def table(self, name: str, *, copy: bool = True) -> NDArray[Any]:
        """Return a table; element 0 of those that rows are numbered in stands for none.

        Args:
            name: As in `pttmodel.h`, in lower case.
            copy: Otherwise it is valid until the model changes.
        """
        array = _array(self, self.raw(name), np.dtype(_TABLES[name][1], align=True))
        return array.copy() if copy else array

    def raw(self, name: str) -> _Table:
        """Return a table as other libraries take it; valid until the model changes."""
        found = _Table()
        status = self._lib.ptt_model_table(self.handle, _TABLES[name][0], ctypes.byref(found))
        check("read a table", status)
        return found

    def drop_rows(self) -> None:
        """Drop the rows of waits, holds and wakeups told so far."""
        self._lib.ptt_model_drop_rows(self.handle)


def _array(owner: object, table: _Table, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a table of the library as it lies in memory; the array keeps the owner of that."""
    if not table.items or not table.count:
        return np.empty(0, dtype)
    memory = (ctypes.c_uint8 * (table.count * table.stride)).from_address(table.items)
    vars(memory)["owner"] = owner
    return np.ndarray((table.count,), dtype, memoryview(memory).cast("B"), strides=(table.stride,))


class Lanes:
    """Rows to draw intervals in, so that within a row none overlaps another."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._handle = made("make rows", lib.ptt_model_lanes_create())
        own(self, lib.ptt_model_lanes_destroy, self._handle)

    def place(
        self, group: NDArray[Any], begin: NDArray[Any], end: NDArray[Any]
    ) -> NDArray[np.uint32]:
        """Return the row of each interval.

        Args:
            group: What shares rows: a thread, an object.
            begin: When they begin.
            end: When they end; few rows are needed if they come in this order.
        """
        lanes = np.empty(len(group), np.uint32)
        columns: tuple[NDArray[Any], ...] = (
            np.ascontiguousarray(group, np.uint64),
            np.ascontiguousarray(begin, np.int64),
            np.ascontiguousarray(end, np.int64),
            lanes,
        )
        pointers = [column.ctypes.data for column in columns]
        check("place", self._lib.ptt_model_lanes_place(self._handle, *pointers, len(group)))
        return lanes

    def table(self) -> NDArray[Any]:
        """Return the rows: their `group`, and their `place` in it, from 0."""
        found = _Table()
        status = self._lib.ptt_model_lanes_table(self._handle, ctypes.byref(found))
        check("read a table", status)
        return _array(self, found, _LANE).copy()


@cache
def _middles() -> NDArray[Any]:
    lib = library()
    return np.array([lib.ptt_model_bucket_ns(bucket) for bucket in range(BUCKETS)])


def percentile(histogram: NDArray[Any], share: float, most: int) -> int:
    """Return a percentile in ns, within 3 %; 0 without entries.

    Args:
        histogram: Counts by bucket.
        share: Between 0 and 1.
        most: The greatest of the values.
    """
    sums = np.cumsum(histogram, dtype=np.uint64)
    count = int(sums[-1])
    rank = max(int(np.ceil(share * count)), 1)
    if rank >= count:
        return most
    return min(int(_middles()[int(np.searchsorted(sums, rank))]), most)
