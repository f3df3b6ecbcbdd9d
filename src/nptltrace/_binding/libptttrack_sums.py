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
    "EDGES", "INSIDE_OF", "KINDS", "NEVER", "PAIRS", "PATH", "ROWS", "STATES_OF", "TYPE_SHIFT",
    "Lanes", "Model", "percentile",
]  # fmt: skip

ROWS, EDGES = c.PTT_MODEL_ROWS, c.PTT_MODEL_EDGES
PATH, PAIRS = c.PTT_MODEL_PATH, c.PTT_MODEL_PAIRS_OF
STATES_OF, INSIDE_OF = c.PTT_MODEL_STATES_OF, c.PTT_MODEL_INSIDE_OF
BUCKETS = c.PTT_BUCKETS
KINDS = {
    1: "thread", 2: "mutex", 3: "rwlock", 4: "spinlock", 5: "cond", 6: "barrier", 7: "semaphore",
    8: "once", 10: "futex", 14: "lll",
}  # fmt: skip
END = 2**63 - 1
# Object flags from this bit on. Low-level locks: the purpose, an index of LLL_PURPOSES.
# Other objects: 0, or 1 + the index of the lock type in LOCK_TYPES.
TYPE_SHIFT = c.PTT_OBJECT_TYPE_SHIFT
_ANY = 2**32 - 1

# Number of each table, and the type of its rows.
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
    "insides": (c.PTT_MODEL_INSIDES, dtype_of(model_rows.ModelInsideSum)),
    "hold_samples": (c.PTT_MODEL_INSIDE_ROWS, dtype_of(model_rows.ModelInside)),
}


@cache
def library() -> Library:
    """Load the library."""
    return load(c.FUNCTIONS, ("ptt_model_version", c.PTT_MODEL_VERSION))


def _temporary_file() -> int:
    """Return a new file without a name; an import of `tempfile` takes longer than this function."""
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
        flags: What to keep in addition to the sums: `ROWS`, `EDGES`, `PATH`, `PAIRS`, `STATES_OF`,
            `INSIDE_OF`.

    Attributes:
        counts_all: No call restricted the threads, objects or call sites that count.
    """

    def __init__(self, flags: int = 0) -> None:
        lib = library()
        self._lib = lib
        self._process_of: dict[int, int] = {}
        self.counts_all = True
        self._own("make a model", lib.ptt_model_create(flags), lib.ptt_model_destroy)
        if flags & PATH:
            with suppress(OSError):  # without the file, the path leaves out short waits
                file = _temporary_file()
                own(self, partial(os.close, file))
                lib.ptt_model_path_file(self.handle, file)

    def thread(self, number: int, process: int, tid: int) -> None:
        """Declare the process and the thread id of a thread, by its number in the reader."""
        super().thread(number, process, tid)
        self._process_of[number] = process

    def threads(self) -> dict[int, int]:
        """Return the processes of all declared threads, by the threads' numbers in the reader."""
        return self._process_of

    def space(self, process: int, space: int) -> None:
        """Declare the processes among which a pid means this one: processes of the same space.

        Args:
            process: Number of the process.
            space: Number of the space; 0: none.
        """
        check("tell processes apart", self._lib.ptt_model_space(self.handle, process, space))

    def site(self, process: int, site: int, use: int) -> None:
        """Declare the use of a call site: flags `PTT_SITE_…` of `pttmodel.h`."""
        check("follow a lock", self._lib.ptt_model_site(self.handle, process, site, use))

    def gate(self, process: int, address: int) -> None:
        """Declare the address of a lock where a process parks threads that have no work."""
        check("follow a lock", self._lib.ptt_model_gate(self.handle, process, address))

    def gil(self, process: int, address: int, hand_over: int) -> None:
        """Declare the address of a part of an interpreter's lock.

        Args:
            process: Number of the process.
            address: Address of the part.
            hand_over: Distance in bytes from the condition that a release signals to the condition
                that an acquisition signals; 0 for other parts.
        """
        status = self._lib.ptt_model_gil(self.handle, process, address, hand_over)
        check("follow a lock", status)

    def semaphore(self, process: int, stack: int, purpose: int, *, units: bool) -> None:
        """Declare the purpose of semaphores by the stack of their initialization.

        Args:
            process: Number of the process.
            stack: Number of the stack in the process.
            purpose: `PTT_FOR_…` of `pttmodel.h`.
            units: The purpose of semaphores that begin with units, or of semaphores without units.
        """
        status = self._lib.ptt_model_semaphore(self.handle, process, stack, units, purpose)
        check("follow a semaphore", status)

    def only_threads(self, numbers: list[int]) -> None:
        """Count only the waits and holds of these threads, by number in the reader."""
        self.counts_all = False
        for number in (_ANY, *numbers):
            check("choose", self._lib.ptt_model_only_thread(self.handle, number))

    def only_objects(self, objects: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Count only these objects: process, address, kind, begin and end of a window in ns.

        An object counts if its first event lies in the window. Process and kind may be `ANY` of the
        reader. A second call applies to objects without an event so far.
        """
        self.counts_all = False
        check("choose", self._lib.ptt_model_no_object(self.handle))
        for key in objects:
            check("choose", self._lib.ptt_model_only_object(self.handle, *key))

    def only_sites(self, sites: list[tuple[int, int]]) -> None:
        """Count only calls from these (process, site) pairs; with process `ANY`, from addresses."""
        self.counts_all = False
        for process, address in ((_ANY, 2**64 - 1), *sites):
            check("choose", self._lib.ptt_model_only_site(self.handle, process, address))

    def window(self, begin_ns: int | None, end_ns: int | None) -> None:
        """Count only the window [begin, end); None for no limit. Call it before the first event.

        Feed the events before the window, too, and the events after it until `undecided` is 0.
        """
        begin = NEVER if begin_ns is None else begin_ns
        self._lib.ptt_model_window(self.handle, begin, END if end_ns is None else end_ns)

    @property
    def undecided(self) -> int:
        """Number of unfinished waits and holds that began before the end of the window."""
        return int(self._lib.ptt_model_undecided(self.handle))

    def feed(self, buffer: Buffer) -> None:
        """Follow the events of a buffer, which may be without the column `cpu`."""
        status = self._lib.ptt_model_feed(self.handle, buffer.pointer, buffer.count)
        check("follow the events", status)

    def feed_early(self, buffer: Buffer) -> None:
        """Follow only the events that the table `state` names, each as often as the table says."""
        status = self._lib.ptt_model_feed_early(self.handle, buffer.pointer, buffer.count)
        check("follow the events", status)

    def waiting(self, now_ns: int, ends: Sequence[int] = ()) -> NDArray[Any]:
        """Return the unfinished waits, as rows of the table `open`, without ending them.

        Args:
            now_ns: The end of the waits so far; no event may be later.
            ends: When each process ended; the waits of the process end there at the latest.
        """
        status = self._lib.ptt_model_waiting(self.handle, now_ns, times(list(ends)), len(ends))
        check("list the waits that go on", status)
        return self.table("open")

    def holding(self, now_ns: int) -> NDArray[Any]:
        """Return the unfinished holds, as rows of the table `holds`, without ending them.

        This drops earlier rows of waits, holds and wake-ups.
        """
        self.drop_rows()
        check("list the holds that go on", self._lib.ptt_model_holding(self.handle, now_ns))
        holds = self.table("holds")
        self.drop_rows()
        return holds

    def state(self) -> NDArray[Any]:
        """Return the events that led to the current state, as rows of the table `state`."""
        check("see what goes on", self._lib.ptt_model_state(self.handle))
        return self.table("state")

    def save(self, fd: int) -> int:
        """Write the current state to a file; return its size in bytes."""
        return int(check("keep a state", self._lib.ptt_model_save(self.handle, fd)))

    def load(self, data: bytes) -> bool:
        """Restore a saved state, in place of all events before it.

        Returns:
            False if the state is damaged or from another build.
        """
        return int(self._lib.ptt_model_load(self.handle, data, len(data))) == 0

    def resume(self, data: bytes) -> bool:
        """Continue a saved model: later rows are the same as the rows of the saved model.

        Returns:
            False if the state is damaged or from another build.
        """
        return int(self._lib.ptt_model_resume(self.handle, data, len(data))) == 0

    def full(self, process: int) -> int:
        """Return the kinds of objects (bits) with recorded changes of state in a process."""
        return int(self._lib.ptt_model_full(self.handle, process))

    def set_full(self, process: int, kinds: int) -> None:
        """Set the kinds of objects (bits) with recorded changes of state in a process."""
        status = self._lib.ptt_model_set_full(self.handle, process, kinds)
        check("follow a process", status)

    def finish(self, killed: list[int | None], seen: list[int | None]) -> None:
        """End the unfinished waits and holds.

        Args:
            killed: When each process was killed, in ns; None if it was not killed.
            seen: When the end of each process, or of its recording, was noticed; None if never.
        """
        arrays = times(killed), times(seen)
        check("finish", self._lib.ptt_model_finish(self.handle, *arrays, len(seen)))

    def path(self, thread: int = 0) -> Iterator[NDArray[Any]]:
        """Yield the critical path to the end of a thread, in pieces, the latest first.

        Args:
            thread: Row of the thread in the table `threads`; 0 for the thread with the last event.

        Yields:
            Rows of the table `segments`, valid until the next array.
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
        """The critical path leaves out waits shorter than this; 0 if it has all waits."""
        return int(self._lib.ptt_model_path_resolution(self.handle))

    @property
    def lost(self) -> int:
        """Number of lost events, from the events of the trace."""
        return int(self._lib.ptt_model_lost(self.handle))

    def table(self, name: str, *, copy: bool = True) -> NDArray[Any]:
        """Return a table. In tables of threads, objects and sites, row 0 stands for none.

        Args:
            name: A key of `_TABLES`.
            copy: Return a copy. Without a copy, the array is valid until the model changes.

        Returns:
            An array of shape (rows,), with a dtype like the C struct.
        """
        array = rows(self, self.raw(name), _TABLES[name][1])
        return array.copy() if copy else array

    def raw(self, name: str) -> c.ModelTable:
        """Return a table as a C struct for other libraries; valid until the model changes."""
        table = c.ModelTable()
        status = self._lib.ptt_model_table(self.handle, _TABLES[name][0], ctypes.byref(table))
        check("read a table", status)
        return table

    def drop_rows(self) -> None:
        """Drop the rows of waits, holds and wake-ups so far."""
        self._lib.ptt_model_drop_rows(self.handle)


class Lanes(Handle):
    """Assigns intervals to rows for drawing, without overlaps within a row."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self._own("make rows", lib.ptt_model_lanes_create(), lib.ptt_model_lanes_destroy)

    def place(
        self, group: NDArray[Any], begin: NDArray[Any], end: NDArray[Any]
    ) -> NDArray[np.uint32]:
        """Return the row of each interval.

        Args:
            group: Intervals of the same group, such as a thread, share rows.
            begin: Begin of each interval.
            end: End of each interval. Intervals sorted by their ends need few rows.

        Returns:
            An array of uint32 with the length of the arguments.
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
        """Return the rows, each with its `group` and its `place` in the group, from 0."""
        table = c.ModelTable()
        status = self._lib.ptt_model_lanes_table(self.handle, ctypes.byref(table))
        check("read a table", status)
        return rows(self, table, dtype_of(c.ModelLane)).copy()


@cache
def _middles() -> NDArray[Any]:
    lib = library()
    return np.array([lib.ptt_model_bucket_ns(bucket) for bucket in range(BUCKETS)])


def percentile(histogram: NDArray[Any], share: float, most: int) -> int:
    """Return a percentile in ns, with an error of up to 3 %; `most` without entries.

    Args:
        histogram: Counts by bucket.
        share: The percentile as a fraction, from 0 to 1.
        most: The greatest value.
    """
    sums = np.cumsum(histogram, dtype=np.uint64)
    count = int(sums[-1])
    rank = max(int(np.ceil(share * count)), 1)
    if rank >= count:
        return most
    return min(int(_middles()[int(np.searchsorted(sums, rank))]), most)
