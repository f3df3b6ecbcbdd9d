"""The watched processes: programs with all processes that they have started, or all of a user."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._processes import (
    FLAGS,
    PARENT,
    START,
    STATE,
    SYSTEM,
    THREADS,
    USER,
    read_kernel,
    stat_fields,
)
from nptltrace.guard.allowance import Allowance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["MARK", "Stat", "Tree", "command_of", "new_mark", "stat_of"]

# The variable in the environment of a guarded program. Its value names the guard.
MARK = "PTT_GUARD"
_KERNEL_THREAD = 0x0020_0000
# The search for new processes may use this share of a processor, and as many seconds at once.
_SHARE, _AT_ONCE_S = 0.0004, 0.1
# Up to this number of new ids, a look at each is faster than a list of all processes. Such a list
# is made at least once in this time.
_FEW, _ALL_S = 256, 30.0
_ENDED = frozenset({"Z", "X"})


class Stat(NamedTuple):
    """Facts from `/proc/PID/stat`.

    Attributes:
        pid: The process.
        name: Its name in the kernel.
        state: The letter of the kernel for the main thread.
        parent: The parent process.
        start: When it began, in clock ticks since the start of the system.
        ticks: The used processor time in clock ticks.
        threads: The number of threads.
        is_kernel: It is a thread of the kernel.
    """

    pid: int
    name: str
    state: str
    parent: int
    start: int
    ticks: int
    threads: int
    is_kernel: bool

    @property
    def has_ended(self) -> bool:
        """Whether all threads have ended, and only the exit status is left."""
        return self.state in _ENDED and self.threads <= 1


def stat_of(pid: int) -> Stat | None:
    """Return facts about a process, None if it is gone."""
    name, fields = stat_fields(pid)
    if not fields:
        return None
    return Stat(
        pid, name, fields[STATE], int(fields[PARENT]), int(fields[START]),
        int(fields[USER]) + int(fields[SYSTEM]), int(fields[THREADS]),
        bool(int(fields[FLAGS]) & _KERNEL_THREAD),
    )  # fmt: skip


def new_mark() -> str:
    """Return a value for `MARK` that no other program has."""
    return f"{os.getpid()}-{time.monotonic_ns()}"


def command_of(pid: int) -> str:
    """Return the command line of a process, empty if it has none or may not be read."""
    return read_kernel(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ").decode(
        "utf-8", "surrogateescape"
    )  # fmt: skip


class Tree:
    """The watched processes.

    A process belongs to the tree of its parent, also if the parent ends later. If a parent ends
    before anybody looked, the kernel gives its child to an ancestor of the guard. Such a child is
    known by the mark in its environment.

    Args:
        roots: The programs.
        mark: The value of `MARK` in the environment of the programs; empty if they have none.
        user: Watch all processes of this user instead; None: only the programs.
        apart: Processes with the mark that do not belong to the tree.

    Attributes:
        members: The watched processes by id: each with the time of its start.
        roots: The program that each watched process comes from. Each process of a user is a
            program of its own.
    """

    def __init__(
        self, roots: Collection[int], mark: str = "", user: int | None = None,
        *, apart: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.members: dict[int, int] = {}
        self.roots: dict[int, int] = {}
        self._mark = f"{MARK}={mark}".encode() if mark else b""
        self._user = user
        self._seen: set[int] = set(apart)
        # The youngest ids at the last two searches, and the time of the last list.
        self._youngest = self._before = 0
        self._listed_s = 0.0
        self._allowance = Allowance(_SHARE, _AT_ONCE_S)
        self._first = next(iter(roots), 0)
        for pid in roots:
            if (stat := stat_of(pid)) is not None and _is_process(pid):
                self._add(stat)

    def leave(self, pid: int) -> None:
        """Forget a process that is gone."""
        self.members.pop(pid, None)
        self.roots.pop(pid, None)
        self._seen.discard(pid)

    def is_same(self, pid: int) -> bool:
        """Return whether the id still belongs to the process that was found, and it runs."""
        stat = stat_of(pid)
        return stat is not None and stat.start == self.members.get(pid) and not stat.has_ended

    def search(self, now_s: float, *, at_once: bool = False) -> list[int]:
        """Return the new processes in the tree, and add them.

        Args:
            now_s: The time of `time.monotonic()`.
            at_once: Search now, whatever it costs.
        """
        self._allowance.grow(now_s)
        if not self._allowance.left and not at_once:
            return []
        with self._allowance:
            return self._new(self._young(now_s, at_once=at_once))

    def _young(self, now_s: float, *, at_once: bool) -> Iterable[int]:
        """Return the ids of processes that were not seen before, and maybe other ids."""
        # The last field is the youngest id of a process or thread in this PID namespace.
        last = read_kernel("/proc/loadavg").rpartition(b" ")[2]
        before, self._before = self._before, self._youngest
        self._youngest = youngest = int(last) if last.strip().isdigit() else 0
        is_known = 0 < before <= self._before <= youngest <= before + _FEW
        if is_known and now_s - self._listed_s < _ALL_S and not at_once:
            # A process gets its id a moment before it is visible. So look at ids twice.
            return [pid for pid in range(before + 1, youngest + 1) if pid not in self._seen]
        self._listed_s = now_s
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
        young = pids - self._seen
        self._seen &= pids
        return young

    def _add(self, stat: Stat) -> None:
        self.members[stat.pid] = stat.start
        root = stat.pid if self._user is not None else self.roots.get(stat.parent, stat.pid)
        self.roots[stat.pid] = root
        self._seen.add(stat.pid)

    def _new(self, young: Iterable[int]) -> list[int]:
        """Return the new processes in the tree, and add them."""
        stats = {pid: stat for pid in young if (stat := stat_of(pid)) is not None}
        self._seen |= stats.keys()
        if self._user is not None:
            for stat in stats.values():
                if self._is_of_user(stat):
                    self._add(stat)
            return [pid for pid in stats if pid in self.members]
        if not stats:
            return []
        # Process 1 may be no ancestor: in a container, a process from outside has the parent 0.
        heirs = frozenset((1, *_ancestors(os.getpid()))) if self._mark else frozenset()
        for stat in stats.values():
            if stat.parent in heirs and self._has_mark(stat.pid) and _is_process(stat.pid):
                self._add(stat)
                self.roots[stat.pid] = self._first
        # A parent may be found after its child.
        while more := [s for s in stats.values() if s.pid not in self.members
                       and self._is_child(s)]:  # fmt: skip
            for stat in more:
                self._add(stat)
        return [pid for pid in stats if pid in self.members]

    def _is_child(self, stat: Stat) -> bool:
        # An older process is no child: the id of the parent was used again.
        is_child = self.members.get(stat.parent, stat.start + 1) <= stat.start
        return is_child and stat.pid != os.getpid() and _is_process(stat.pid)

    def _has_mark(self, pid: int) -> bool:
        return self._mark in read_kernel(f"/proc/{pid}/environ").split(b"\0")

    def _is_of_user(self, stat: Stat) -> bool:
        if stat.is_kernel or stat.pid == os.getpid() or not _is_process(stat.pid):
            return False
        try:
            return Path(f"/proc/{stat.pid}").stat().st_uid == self._user
        except OSError:
            return False


def _is_process(pid: int) -> bool:
    """Return whether an id is of a process, and not of one of its other threads."""
    return f"\nTgid:\t{pid}\n".encode() in read_kernel(f"/proc/{pid}/status")


def _ancestors(pid: int) -> Iterator[int]:
    """Yield a process, its parent, and so on."""
    while pid and (stat := stat_of(pid)) is not None:
        yield pid
        pid = stat.parent
