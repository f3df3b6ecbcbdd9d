"""The sums, rows and states of the tracker, as NumPy arrays; see `pttmodel.h`."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding.arrays import dtype_of, rows
from nptltrace._binding.handle import Handle, own
from nptltrace._binding.headers import model_rows
from nptltrace._binding.headers import pttmodel as c
from nptltrace._binding.libptttrack import NEVER, Tracker, load, times
from nptltrace._binding.library import check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from nptltrace._binding.libpttread import Buffer
    from nptltrace._binding.library import Library

__all__ = [
    "EDGES", "KINDS", "NEVER", "PAIRS", "PATH", "ROWS", "STATES_OF", "TYPE_SHIFT", "Lanes",
    "Model", "percentile",
]  # fmt: skip

ROWS, EDGES = c.PTT_MODEL_ROWS, c.PTT_MODEL_EDGES
PATH, PAIRS = c.PTT_MODEL_PATH, c.PTT_MODEL_PAIRS_OF
STATES_OF = c.PTT_MODEL_STATES_OF
BUCKETS = c.PTT_BUCKETS
KINDS = {
    1: "thread", 2: "mutex", 3: "rwlock", 4: "spinlock", 5: "cond", 6: "barrier", 7: "semaphore",
    8: "once", 10: "futex", 14: "lll",
}  # fmt: skip
END = 2**63 - 1
# From this bit on, the flags of a low-level lock say what it is for: a place in LLL_PURPOSES. Those
# of another object, unless 0, say of which type of LOCK_TYPES it is: one more than its place.
TYPE_SHIFT = c.PTT_OBJECT_TYPE_SHIFT
_ANY = 2**32 - 1

# Number of the table, and what a row of it is.
_TABLES: dict[str, tuple[int, np.dtype[Any]]] = {
    "objects": (c.PTT_MODEL_OBJECTS, dtype_of(model_rows.ModelObject)),
    "sites": (c.PTT_MODEL_SITES, dtype_of(model_rows.ModelSite)),
    "threads": (c.PTT_MODEL_THREADS, dtype_of(model_rows.ModelThread)),
    "pairs": (c.PTT_MODEL_PAIRS, dtype_of(model_rows.ModelPair)),
    "blames": (c.PTT_MODEL_BLAMES, dtype_of(model_rows.ModelBlame)),
    "causes": (c.PTT_MODEL_CAUSES, dtype_of(model_rows.ModelCause)),
    "wakers": (c.PTT_MODEL_WAKERS, dtype_of(model_rows.ModelWaker)),
    "edges": (c.PTT_MODEL_EDGES_TABLE, dtype_of(model_rows.ModelEdge)),
    "histograms": (c.PTT_MODEL_HISTOGRAMS, np.dtype([("counts", "u4", (c.PTT_BUCKETS,))])),
    "waits": (c.PTT_MODEL_WAITS, dtype_of(model_rows.ModelWait)),
    "holds": (c.PTT_MODEL_HOLDS, dtype_of(model_rows.ModelHold)),
    "wakeups": (c.PTT_MODEL_WAKEUPS, dtype_of(model_rows.ModelWakeup)),
    "open": (c.PTT_MODEL_OPEN, dtype_of(model_rows.ModelWait)),
    "segments": (c.PTT_MODEL_SEGMENTS, dtype_of(model_rows.ModelSegment)),
    "state": (c.PTT_MODEL_STATE, dtype_of(model_rows.ModelEvent)),
    "states": (c.PTT_MODEL_THREAD_STATES, dtype_of(model_rows.ModelState)),
}


@cache
def library() -> Library:
    """Load the library."""
    return load(c.FUNCTIONS, ("ptt_model_version", c.PTT_MODEL_VERSION))


def _temporary_file() -> int:
    """Return a new file without a name; `tempfile` takes longer to import than the file to make."""
    flags = os.O_TMPFILE | os.O_RDWR | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(os.environ.get("TMPDIR") or "/tmp", flags, 0o600)  # noqa: S108 -- no name
    except OSError:
        from tempfile import TemporaryFile

        with TemporaryFile(prefix="ptt-path-") as file:
            return os.dup(file.fileno())


class Model(Tracker):
    """The states of threads and objects, event by event.

    Args:
        flags: `ROWS`, `EDGES`, `PATH`, `PAIRS`, `STATES_OF`: what to keep beside the sums.
    """

    def __init__(self, flags: int = 0) -> None:
        lib = library()
        self._lib = lib
        self._process_of: dict[int, int] = {}
        self.counts_all = True
        self._own("make a model", lib.ptt_model_create(flags), lib.ptt_model_destroy)
        if flags & PATH:
            with suppress(OSError):  # without it short waits are left out
                file = _temporary_file()
                own(self, partial(os.close, file))
                lib.ptt_model_path_file(self.handle, file)

    def thread(self, number: int, process: int, tid: int) -> None:
        """Declare which thread the reader's number means."""
        super().thread(number, process, tid)
        self._process_of[number] = process

    def threads(self) -> dict[int, int]:
        """Return the processes of the threads that were declared, by the reader's numbers."""
        return self._process_of

    def space(self, process: int, space: int) -> None:
        """Declare among which processes a process id means this one; 0 for none."""
        check("tell processes apart", self._lib.ptt_model_space(self.handle, process, space))

    def site(self, process: int, site: int, use: int) -> None:
        """Declare what a call site is: `PTT_SITE_…` of the model, one or several of them."""
        check("follow a lock", self._lib.ptt_model_site(self.handle, process, site, use))

    def gate(self, process: int, address: int) -> None:
        """Declare where a process may have a lock at which it parks threads."""
        check("follow a lock", self._lib.ptt_model_gate(self.handle, process, address))

    def gil(self, process: int, address: int, hand_over: int) -> None:
        """Declare where a process has a part of an interpreter's lock.

        Args:
            process: Number of the process.
            address: Of the part.
            hand_over: From the first of its conditions to the second; 0 for other parts.
        """
        status = self._lib.ptt_model_gil(self.handle, process, address, hand_over)
        check("follow a lock", status)

    def semaphore(self, process: int, stack: int, purpose: int, *, units: bool) -> None:
        """Declare what semaphores are for that are initialized with a stack, and units or none."""
        status = self._lib.ptt_model_semaphore(self.handle, process, stack, units, purpose)
        check("follow a semaphore", status)

    def only_threads(self, numbers: list[int]) -> None:
        """Count only what these threads (the reader's numbers) do."""
        self.counts_all = False
        for number in (_ANY, *numbers):
            check("choose", self._lib.ptt_model_only_thread(self.handle, number))

    def only_objects(self, objects: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Count only these objects: process, address, kind, and between which times they begin.

        Process and kind may be `ANY` of the reader. Another choice is for the objects that are
        not known yet.
        """
        self.counts_all = False
        check("choose", self._lib.ptt_model_no_object(self.handle))
        for chosen in objects:
            check("choose", self._lib.ptt_model_only_object(self.handle, *chosen))

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

    def feed(self, buffer: Buffer) -> None:
        """Take in the events of a buffer, which may be without the column `cpu`."""
        status = self._lib.ptt_model_feed(self.handle, buffer.pointer, buffer.count)
        check("follow the events", status)

    def feed_early(self, buffer: Buffer) -> None:
        """Take in events that `state` has named, each as often as it says, in place of all."""
        status = self._lib.ptt_model_feed_early(self.handle, buffer.pointer, buffer.count)
        check("follow the events", status)

    def waiting(self, now_ns: int, ends: Sequence[int] = ()) -> NDArray[Any]:
        """Return the waits that are going on, as the table `open` has them; they go on.

        Args:
            now_ns: Until when they last so far.
            ends: When each process ended; its waits last no longer.
        """
        status = self._lib.ptt_model_waiting(self.handle, now_ns, times(list(ends)), len(ends))
        check("list the waits that go on", status)
        return self.table("open")

    def holding(self, now_ns: int) -> NDArray[Any]:
        """Return the holds that are going on, as the table `holds` has them; they go on.

        Rows that were there before are dropped.
        """
        self.drop_rows()
        check("list the holds that go on", self._lib.ptt_model_holding(self.handle, now_ns))
        holds = self.table("holds")
        self.drop_rows()
        return holds

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

    def resume(self, data: bytes) -> bool:
        """Go on where a model was saved: rows are as it would have made them; False as `load`."""
        return int(self._lib.ptt_model_resume(self.handle, data, len(data))) == 0

    def full(self, process: int) -> int:
        """Return bits of the kinds of which changes of state are recorded in a process."""
        return int(self._lib.ptt_model_full(self.handle, process))

    def set_full(self, process: int, kinds: int) -> None:
        """Say of which kinds changes of state are recorded in a process with known threads."""
        status = self._lib.ptt_model_set_full(self.handle, process, kinds)
        check("follow a process", status)

    def finish(self, killed: list[int | None], seen: list[int | None]) -> None:
        """End what is open.

        Args:
            killed: When each process was killed, None where it was not.
            seen: When else it, or its recording, was seen to have ended.
        """
        arrays = times(killed), times(seen)
        check("finish", self._lib.ptt_model_finish(self.handle, *arrays, len(seen)))

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
        array = rows(self, self.raw(name), _TABLES[name][1])
        return array.copy() if copy else array

    def raw(self, name: str) -> c.ModelTable:
        """Return a table as other libraries take it; valid until the model changes."""
        table = c.ModelTable()
        status = self._lib.ptt_model_table(self.handle, _TABLES[name][0], ctypes.byref(table))
        check("read a table", status)
        return table

    def drop_rows(self) -> None:
        """Drop the rows of waits, holds and wakeups so far."""
        self._lib.ptt_model_drop_rows(self.handle)


class Lanes(Handle):
    """Rows to draw intervals in, so that within a row none overlaps another."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._own("make rows", lib.ptt_model_lanes_create(), lib.ptt_model_lanes_destroy)

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
        check("place", self._lib.ptt_model_lanes_place(self.handle, *pointers, len(group)))
        return lanes

    def table(self) -> NDArray[Any]:
        """Return the rows: their `group`, and their `place` in it, from 0."""
        table = c.ModelTable()
        status = self._lib.ptt_model_lanes_table(self.handle, ctypes.byref(table))
        check("read a table", status)
        return rows(self, table, dtype_of(c.ModelLane)).copy()


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
