"""Whether a process is the only one that has a piece of memory, though it could share it."""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path

__all__ = ["is_alone_with"]

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S{3}([ps]) \S+ (\S+ \d+) *(.*)")
# What the kernel calls shared memory that is of no file: only a process that was forked has it too.
_ANONYMOUS = "/dev/zero (deleted)"
_PROC = Path("/proc")
# Flags of a process: it has executed no program since it was forked; it is a thread of the kernel.
_FORKED, _OF_THE_KERNEL = 0x40, 0x200000


def is_alone_with(pid: int, entry: int, address: int) -> bool:
    """Return whether it is known that no other process has a piece of memory, or can come to it.

    Args:
        pid: The process.
        entry: A thread of it that has not ended.
        address: The memory.
    """
    try:
        text = (_PROC / str(pid) / "task" / str(entry) / "maps").read_text("utf-8", "replace")
    except OSError:
        return False
    found = (_MAPPING.fullmatch(line) for line in text.splitlines())
    own = next((m for m in found if m and int(m[1], 16) <= address < int(m[2], 16)), None)
    if own is None or own[3] == "p":
        return own is not None
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 -- names only
    # Where the first process is hidden, so are others.
    if own[5] != _ANONYMOUS or 1 not in pids:
        return False
    forked = bool(_flags(pid) & _FORKED)
    return not any(_may_have(other, f" {own[4]} ", forked=forked) for other in pids if other != pid)


def _may_have(pid: int, file: str, *, forked: bool) -> bool:
    """Return whether a process has a file mapped, or may have it, where that is not to be seen.

    Args:
        pid: The process.
        file: Device and inode, as they stand in its map.
        forked: It may be the one from which the process was forked that is known to have the file.
    """
    place = _PROC / str(pid)
    # A first thread that has ended has no memory any more, the others do.
    for maps in chain([place / "maps"], place.glob("task/*/maps")):
        try:
            text = maps.read_text("utf-8", "replace")
        except PermissionError:
            # What executes a program loses all memory; threads of the kernel have none.
            flags = _flags(pid)
            return not flags & _OF_THE_KERNEL and (forked or bool(flags & _FORKED))
        except OSError:
            continue  # it has ended
        if text:
            return file in text
    return False


def _flags(pid: int) -> int:
    """Return the flags of a process (`PF_…` of the kernel), all of them where it has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return -1
    return int(text.rpartition(")")[2].split()[6])
