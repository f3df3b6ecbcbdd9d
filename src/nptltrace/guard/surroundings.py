"""What stands around the threads in a report: processes, their pipes and locks, their output."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from nptltrace._files.whole import read_descriptor
from nptltrace._processes import read_kernel
from nptltrace._units import plural
from nptltrace.guard.tree import command_of, stat_of
from nptltrace.hang.targets.files import Files, holders_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.guard.tree import Stat
    from nptltrace.hang.targets.files import OpenFile

__all__ = ["file_lines", "output_tails", "tree_lines"]

# The largest number of descriptors to show of each process, and bytes of output to read.
_DESCRIPTORS, _TAIL = 256, 1 << 16
_LINES = 40
# `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; an arrow if the lock is awaited.
_LOCK = re.compile(r"\d+: (?:-> )?\w+ +\w+ +\w+ +(\d+) .*")
# A line of `/proc/PID/fdinfo/N`: `lock:\t1: OFDLCK ADVISORY  WRITE -1 08:01:1234 0 EOF`.
_OF_FILE = re.compile(r"^lock:\s*\d+: (OFDLCK .*)$", re.MULTILINE)
_SHOWN = frozenset({"pipe", "FIFO", "socket", "eventfd"})
_STATES = {
    "R": "runs", "S": "sleeps", "D": "in the kernel", "T": "stopped", "t": "stopped by a debugger",
    "Z": "ended", "I": "idle",
}  # fmt: skip


def tree_lines(pids: Sequence[int]) -> Iterator[str]:
    """Yield the processes as a tree: each with its state, age, processor time and command.

    Args:
        pids: The processes.
    """
    stats = {pid: known for pid in pids if (known := stat_of(pid)) is not None}
    children: dict[int, list[Stat]] = {}
    for known in stats.values():
        parent = known.parent if known.parent in stats else 0
        children.setdefault(parent, []).append(known)
    ticks = os.sysconf("SC_CLK_TCK")
    now = time.clock_gettime(time.CLOCK_BOOTTIME)

    waiting = [(known, 0) for known in reversed(children.get(0, []))]
    while waiting:
        known, depth = waiting.pop()
        threads = f"{known.threads} {plural(known.threads, 'thread')}"
        age = f"{now - known.start / ticks:.1f} s old, {known.ticks / ticks:.2f} s of processor"
        state = _STATES.get(known.state, known.state)
        command = command_of(known.pid) or known.name
        yield f"{'  ' * depth}{known.pid} {state}, {threads}, {age}: {command}"
        waiting += [(child, depth + 1) for child in reversed(children.get(known.pid, []))]


def file_lines(pids: Sequence[int]) -> Iterator[str]:
    """Yield the open pipes, sockets and file locks of processes, and who has the other ends.

    Args:
        pids: The processes.
    """
    opened = {pid: [*_opened(pid)] for pid in pids}
    keys = {
        (file.kind, key)
        for files in opened.values()
        for file in files
        for key in (file.key, file.peer)
        if key
    }
    held = holders_of(keys).by if keys else {}
    for pid, files in opened.items():
        if not files:
            continue
        yield f"process {pid} ({_name(pid)})"
        for file in files:
            ends = held.get((file.kind, file.peer or file.key))
            others = "" if ends is None else _ends(file, ends.readers, ends.writers)
            path = f" {file.path}" if file.path and file.path != file.kind else ""
            yield f"  fd {file.number}: {file.kind} {file.key or ''}{path}{others}".rstrip()
    if locks := [*_locks(frozenset(pids))]:
        yield "file locks, as in /proc/locks"
        yield from (f"  {line}" for line in locks)
    if locks := [line for pid in pids for line in _locks_of_files(pid)]:
        yield "file locks that belong to open files, not to processes"
        yield from (f"  {line}" for line in locks)


def output_tails(pids: Sequence[int]) -> Iterator[str]:
    """Yield the last lines of files that are the standard output or error of processes.

    The output is not kept if it goes to a terminal, a pipe or a socket.

    Args:
        pids: The processes.
    """
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        for number in (1, 2):
            path = f"/proc/{pid}/fd/{number}"
            with suppress(OSError):
                target = os.readlink(path)  # noqa: PTH115
                status = os.stat(path)  # noqa: PTH116
                key = status.st_dev, status.st_ino
                if not stat.S_ISREG(status.st_mode) or key in seen:
                    continue
                seen.add(key)
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
                begin = max(status.st_size - _TAIL, 0)
                data = read_descriptor(os.open(path, flags), path, begin, 2 * _TAIL)
                yield f"the end of {target}"
                lines = data.decode("utf-8", "replace").splitlines()[-_LINES:]
                yield from (f"  {line}" for line in lines)


def _descriptors(pid: int) -> list[int]:
    try:
        numbers = sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except OSError:
        return []
    return numbers[:_DESCRIPTORS]


def _opened(pid: int) -> Iterator[OpenFile]:
    files = Files(pid, pid)
    for number in _descriptors(pid):
        with suppress(OSError):
            file = files.opened(number)
            if file is not None and file.kind in _SHOWN:
                yield file


def _ends(file: OpenFile, readers: frozenset[int], writers: frozenset[int]) -> str:
    if file.kind in {"pipe", "FIFO"}:
        return f", read by {_list(readers)}, written by {_list(writers)}"
    return f", the other end is of {_list(readers)}" if file.peer else ""


def _list(pids: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(pids))) or "nobody"


def _locks(pids: frozenset[int]) -> Iterator[str]:
    with suppress(OSError), open("/proc/locks", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        for line in file:
            match = _LOCK.match(line)
            if match and int(match[1]) in pids:
                yield line.rstrip()


def _locks_of_files(pid: int) -> Iterator[str]:
    """Yield the locks of open file descriptions (fcntl(2), F_OFD_SETLK) with their descriptors."""
    for number in _descriptors(pid):
        info = read_kernel(f"/proc/{pid}/fdinfo/{number}").decode("ascii", "replace")
        for lock in _OF_FILE.findall(info):
            yield f"process {pid}, fd {number}: {lock}"


def _name(pid: int) -> str:
    known = stat_of(pid)
    return known.name if known is not None else "gone"
