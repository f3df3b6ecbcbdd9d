"""Which other processes have a piece of memory that a process shares."""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path

__all__ = ["sharers"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S{3}([ps]) \S+ (\S+ \d+) *(.*)")
# What the kernel calls shared memory that is of no file: only a process that was forked has it too.
_ANONYMOUS = "/dev/zero (deleted)"
# Files of shared memory, as those of semaphores are, and what stands behind the name of a file that
# was removed.
_SHARED, _DELETED = "/dev/shm/", " (deleted)"  # noqa: S108 -- a name in a map
_PROC = Path("/proc")
# Flags of a process: it has executed no program since it was forked; it is a thread of the kernel.
_PARENT, _FLAGS = 0, 1
_FORKED, _OF_THE_KERNEL = 0x40, 0x200000


def sharers(pid: int, entry: int, address: int) -> frozenset[int] | None:
    """Return the other processes that have a piece of memory, None if more may come to it.

    Args:
        pid: The process.
        entry: A thread of it that has not ended.
        address: The memory.
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
    # Where the first process is hidden, so are others.
    if not _is_closed(pid, own[4], own[5]) or 1 not in pids:
        return None
    forebears = _forebears(pid)
    others = {p: _has(p, f" {own[4]} ", forebears) for p in pids if p != pid}
    if None in others.values():
        return None
    return frozenset(other for other, has in others.items() if has)


def _is_closed(pid: int, file: str, name: str) -> bool:
    """Return whether nobody can come to memory by a name: the file has none, or none any more.

    `sem_open()` makes a file by another name, and gives it the final name in the end.

    Args:
        pid: A process that has the memory.
        file: Device and inode, as they stand in its map.
        name: The name there.
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


def _forebears(pid: int) -> frozenset[int]:
    """Return the processes whose memory a process was forked with; the last of them ran a program.

    Args:
        pid: The process.
    """
    pids: set[int] = set()
    while _status(pid)[_FLAGS] & _FORKED and pid not in pids:
        pid = _status(pid)[_PARENT]
        pids.add(pid)
    return frozenset(pids)


def _has(pid: int, file: str, forebears: frozenset[int]) -> bool | None:
    """Return whether a process has a file mapped; None where it may have it unseen.

    Args:
        pid: The process.
        file: Device and inode, as they stand in its map.
        forebears: The forebears of the process that is known to have the file.
    """
    place = _PROC / str(pid)
    # A first thread that has ended has no memory any more, the others do.
    for maps in chain([place / "maps"], place.glob("task/*/maps")):
        try:
            text = maps.read_text("utf-8", "replace")
        except PermissionError:
            # What executes a program loses all memory; threads of the kernel have none.
            flags = _status(pid)[_FLAGS]
            hides = not flags & _OF_THE_KERNEL and (pid in forebears or bool(flags & _FORKED))
            return None if hides else False
        except OSError:
            continue  # it has ended
        if text:
            return file in text
    return False


def _status(pid: int) -> tuple[int, int]:
    """Return the parent of a process, and its flags (`PF_…` of the kernel).

    All flags are set where it has ended.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return 0, -1
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), int(fields[6])
