"""The facts of the tracker, as NumPy arrays; see `pttcheck.h`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from nptltrace._binding.arrays import dtype_of, rows
from nptltrace._binding.headers import pttcheck as c
from nptltrace._binding.headers import ptttrack
from nptltrace._binding.libptttrack import NEVER, Tracker, load, times
from nptltrace._binding.library import check, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nptltrace._binding.libpttread import Buffer
    from nptltrace._binding.library import Library

__all__ = [
    "CLOSED", "DROPPED", "FACTS", "INCOMPLETE", "NEVER", "PREVENTED", "RAGGED", "REFUSED",
    "RUNNING", "STEPS", "SUSPECT", "UNLESS_HANDLER", "WHOLE", "Check",
]  # fmt: skip

FACTS = words_of(c, "PTT_FACT_")
STEPS = words_of(c, "PTT_STEP_")
PREVENTED = words_of(ptttrack, "PTT_PREVENTED_")
CLOSED, WHOLE, SUSPECT = c.PTT_FLAG_CLOSED, c.PTT_FLAG_WHOLE, c.PTT_FLAG_SUSPECT
DROPPED, REFUSED = c.PTT_FLAG_DROPPED, c.PTT_FLAG_REFUSED
UNLESS_HANDLER = c.PTT_FLAG_UNLESS_HANDLER
INCOMPLETE, RUNNING, RAGGED = c.PTT_CHECK_INCOMPLETE, c.PTT_CHECK_RUNNING, c.PTT_CHECK_RAGGED
SILENT_NS = ptttrack.PTT_SILENT_NS
# Flags of threads: the thread ended, was joined, or another thread has its kernel id now.
LEFT = ptttrack.PTT_THREAD_ENDED | ptttrack.PTT_THREAD_JOINED | ptttrack.PTT_THREAD_REPLACED
END = 2**63 - 1

# Number of each table, and the type of its rows.
_TABLES: dict[str, tuple[int, np.dtype[Any]]] = {
    "facts": (c.PTT_CHECK_FACTS, dtype_of(c.CheckFact)),
    "steps": (c.PTT_CHECK_STEPS, dtype_of(c.CheckStep)),
    "threads": (c.PTT_CHECK_THREADS, dtype_of(c.CheckThreadRow)),
}


@cache
def library() -> Library:
    """Load the library."""
    return load(c.FUNCTIONS, ("ptt_check_version", c.PTT_CHECK_VERSION))


class Check(Tracker):
    """Collects facts for findings, event by event.

    Args:
        long_hold_ns: A hold of this length or longer is a fact.
        long_wait_ns: A wait of this length or longer is a fact.
    """

    def __init__(self, long_hold_ns: int, long_wait_ns: int) -> None:
        lib = library()
        self._lib = lib
        address = lib.ptt_check_create(long_hold_ns, long_wait_ns)
        self._own("make a check", address, lib.ptt_check_destroy)

    def stack(self, process: int, start: int) -> None:
        """Declare that all memory from an address on is the stack of the first thread."""
        check("follow a process", self._lib.ptt_check_stack(self.handle, process, start))

    def memory(self, process: int, start: int, end: int) -> None:
        """Declare memory with lasting objects, such as global variables."""
        check("follow a process", self._lib.ptt_check_memory(self.handle, process, start, end))

    def clocks(self, process: int, realtime_ns: int, monotonic_ns: int) -> None:
        """Declare the clocks of a process at time 0 of the traceset; 0: unknown."""
        status = self._lib.ptt_check_clocks(self.handle, process, realtime_ns, monotonic_ns)
        check("follow a process", status)

    def semaphore(self, process: int, stack: int, use: int, line: int, *, units: bool) -> None:
        """Declare the use of semaphores by the stack of their initialization.

        Args:
            process: Number of the process.
            stack: Number of the stack in the process.
            use: `pttcheck.PTT_USED_…`.
            line: A number for all stacks that begin at the same source line; 0: unknown.
            units: The use of semaphores that begin with units, or of semaphores without units.
        """
        status = self._lib.ptt_check_semaphore(self.handle, process, stack, units, use, line)
        check("follow a semaphore", status)

    def waits_for_posts(self, process: int) -> bool:
        """Return whether a thread of a process still waits for a semaphore at the end."""
        return bool(self._lib.ptt_check_waits_for_posts(self.handle, process))

    def no_handlers(self, process: int, *, may: bool) -> None:
        """Declare that only threads of a process, no signal handlers, post its semaphores.

        Args:
            process: Number of the process.
            may: Signal handlers may post them, too.
        """
        check("end the events", self._lib.ptt_check_no_handlers(self.handle, process, may))

    def has_limited_waits(self, process: int) -> bool:
        """Return whether a thread still waits for a condition, with a time limit, at the end."""
        return bool(self._lib.ptt_check_has_limited_waits(self.handle, process))

    def gil(self, process: int, condition: int, hand_over: int) -> None:
        """Declare the two conditions of an interpreter's lock.

        Args:
            process: Number of the process.
            condition: Threads that want the lock wait for it again and again.
            hand_over: A thread that has released the lock waits for it.
        """
        check("end the events", self._lib.ptt_check_gil(self.handle, process, condition, hand_over))

    def feed(self, buffer: Buffer) -> None:
        """Follow the events of a buffer, which may be without the column `cpu`."""
        check(
            "follow the events", self._lib.ptt_check_feed(self.handle, buffer.pointer, buffer.count)
        )

    def finish(self, ends: list[int], flags: int) -> None:
        """End the check.

        Args:
            ends: When each process ended, in ns.
            flags: Properties of the trace: `INCOMPLETE`, `RUNNING`, `RAGGED`.
        """
        status = self._lib.ptt_check_finish(self.handle, times(ends), len(ends), flags)
        check("finish", status)

    @property
    def lost(self) -> int:
        """Number of lost events, from the events of the trace."""
        return int(self._lib.ptt_check_lost(self.handle))

    @property
    def crowded(self) -> int:
        """Number of requests for a lock with too many locks held to record all lock orders."""
        return int(self._lib.ptt_check_crowded(self.handle))

    def nested_semaphores(self, process: int) -> int:
        """Return how often a thread of a process nested semaphores that are used as locks."""
        return int(self._lib.ptt_check_nested_semaphores(self.handle, process))

    @property
    def futex_waits(self) -> int:
        """Number of waits for locks of other libraries, which the check does not judge."""
        return int(self._lib.ptt_check_futex_waits(self.handle))

    def table(self, name: str) -> NDArray[Any]:
        """Return a copy of a table: `facts`, `steps` or `threads`; row 0 stands for none."""
        number, dtype = _TABLES[name]
        table = c.CheckTable()
        check("read a table", self._lib.ptt_check_table(self.handle, number, ctypes.byref(table)))
        return rows(self, table, dtype).copy()
