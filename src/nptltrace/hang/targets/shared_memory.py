"""The processes that have mapped the same shared memory as a process."""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path

__all__ = ["sharers"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S{3}([ps]) \S+ (\S+ \d+) *(.*)")
# The kernel's name of shared memory without a file. Only forked processes can share it.
_ANONYMOUS = "/dev/zero (deleted)"
# The directory of shared memory and semaphores, and the mark after the name of a removed file.
_SHARED, _DELETED = "/dev/shm/", " (deleted)"  # noqa: S108 -- a name in a map
_PROC = Path("/proc")
_PARENT, _FLAGS = 0, 1
# PF_FORKNOEXEC: the process has executed no program since its fork. PF_KTHREAD: a kernel thread.
_FORKED, _OF_THE_KERNEL = 0x40, 0x200000


def sharers(pid: int, entry: int, address: int) -> frozenset[int] | None:
    """Return the other processes that have mapped a piece of memory.

    Args:
        pid: The process.
        entry: A thread of the process that has not ended.
        address: An address in the memory.

    Returns:
        None if not all are known, or if other processes can still map the memory by its name.
    """
    try:
        text = (_PROC / str(pid) / "task" / str(entry) / "maps").read_text("utf-8", "replace")
    except OSError:
        return None
    matches = (_MAPPING.fullmatch(line) for line in text.splitlines())
    own = next((m for m in matches if m and int(m[1], 16) <= address < int(m[2], 16)), None)
    if own is None or own[3] == "p":
        return None if own is None else frozenset()
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 -- names only
    # If process 1 is hidden, other processes are hidden, too (proc(5), hidepid).
    if not _is_closed(pid, own[4], own[5]) or 1 not in pids:
        return None
    ancestors = _ancestors(pid)
    mapped = {p: _has(p, f" {own[4]} ", ancestors) for p in pids if p != pid}
    if None in mapped.values():
        return None
    return frozenset(p for p, has in mapped.items() if has)


def _is_closed(pid: int, file: str, name: str) -> bool:
    """Return whether no process can map the memory by a name: the file has no name, or no more.

    `sem_open()` creates a file under a temporary name and links it to the final name. So a file
    with a removed name may still have another name.

    Args:
        pid: A process that has mapped the memory.
        file: Device and inode, as in `/proc/PID/maps`.
        name: The name in `/proc/PID/maps`.
    """
    if name == _ANONYMOUS:
        return True
    if not name.startswith(_SHARED) or not name.endswith(_DELETED):
        return False
    inode = int(file.partition(" ")[2])
    try:
        with os.scandir(f"{_PROC}/{pid}/root{_SHARED}") as entries:
            return all(entry.inode() != inode for entry in entries)
    except OSError:
        return False


def _ancestors(pid: int) -> frozenset[int]:
    """Return the ancestors of a process since the last `exec`, which had the same memory."""
    pids: set[int] = set()
    while _status(pid)[_FLAGS] & _FORKED and pid not in pids:
        pid = _status(pid)[_PARENT]
        pids.add(pid)
    return frozenset(pids)


def _has(pid: int, file: str, ancestors: frozenset[int]) -> bool | None:
    """Return whether a process has mapped a file; None if it may have, but cannot be read.

    Args:
        pid: The process.
        file: Device and inode, as in `/proc/PID/maps`.
        ancestors: The ancestors of the process that surely has mapped the file.
    """
    place = _PROC / str(pid)
    # A main thread that has ended shows no memory, but the other threads do.
    for maps in chain([place / "maps"], place.glob("task/*/maps")):
        try:
            text = maps.read_text("utf-8", "replace")
        except PermissionError:
            # A process that executes a program loses all memory. Kernel threads have none.
            flags = _status(pid)[_FLAGS]
            may_have = not flags & _OF_THE_KERNEL and (pid in ancestors or bool(flags & _FORKED))
            return None if may_have else False
        except OSError:
            continue  # the process has ended
        if text:
            return file in text
    return False


def _status(pid: int) -> tuple[int, int]:
    """Return the parent of a process, and its flags (`PF_…` of the kernel).

    For a process that has ended, the parent is 0 and all flags are set.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return 0, -1
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), int(fields[6])
