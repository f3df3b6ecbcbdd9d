"""The common base of models, checks and verifiers: they follow threads and processes."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from nptltrace._binding.handle import Handle
from nptltrace._binding.headers import ptttrack as c
from nptltrace._binding.library import Library, check

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NEVER", "Tracker", "load"]

NEVER = -(2**63)


def load(functions: Mapping[str, Any], version: tuple[str, int]) -> Library:
    """Load the library with the functions of all trackers and the functions of one header.

    Args:
        functions: The functions of one header.
        version: The function that returns the version of the header, and the version.
    """
    return Library("libptttrack.so", {**c.FUNCTIONS, **functions}, version)


class Tracker(Handle):
    """Follows processes and threads by their events; see `ptttrack.h`."""

    _lib: Library

    def thread(self, number: int, process: int, tid: int) -> None:
        """Declare the process and the thread id of a thread, by its number in the reader."""
        status = self._lib.ptt_tracker_thread(self.handle, number, process, tid)
        check("follow a thread", status)

    def child(self, process: int, parent: int) -> None:
        """Declare the parent of a process; both must have declared threads."""
        check("follow a fork", self._lib.ptt_tracker_child(self.handle, process, parent))

    def level(self, process: int, kinds: int) -> None:
        """Declare the kinds of objects (bits) with all changes of state in a process."""
        check("follow a process", self._lib.ptt_tracker_level(self.handle, process, kinds))

    def share(self, process: int, start: int, end: int, memory: int, offset: int) -> None:
        """Declare that a process maps shared memory at [start, end).

        Args:
            process: Number of the process.
            start: First address.
            end: Address behind the last byte.
            memory: Number of the memory; processes that share it have the same number.
            offset: Offset of `start` in the memory.
        """
        status = self._lib.ptt_tracker_share(self.handle, process, start, end, memory, offset)
        check("follow shared memory", status)

    def ends(self, killed: list[int | None], seen: list[int | None]) -> list[int]:
        """Return when each process ended, in ns; call it after all events.

        Args:
            killed: When each process was killed; None if it was not killed.
            seen: When the end of each process, or of its recording, was noticed; None if never.
        """
        ends = times([0] * len(seen))
        arrays = times(killed), times(seen)
        self._lib.ptt_tracker_ends(self.handle, *arrays, len(seen), ends)
        return list(ends[: len(seen)])


def times(values: list[int | None] | list[int]) -> Any:
    """Return times as an array of C; None becomes `NEVER`."""
    return (ctypes.c_int64 * max(len(values), 1))(*(NEVER if ns is None else ns for ns in values))
