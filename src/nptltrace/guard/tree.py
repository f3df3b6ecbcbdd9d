"""The watched processes: programs with all processes that they have started, or all of a user."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["MARK", "Stat", "Tree", "command_of", "stat_of"]

# The variable in the environment of a guarded program. Its value names the guard.
MARK = "PTT_GUARD"
# Fields of /proc/PID/stat behind the name; see proc_pid_stat(5).
_STATE, _PARENT, _FLAGS, _USER, _SYSTEM, _THREADS, _START = 0, 1, 6, 11, 12, 17, 19
_KERNEL_THREAD = 0x0020_0000
# The search for new processes may use this share of a processor, but searches now and then.
_SHARE, _LONGEST_S = 0.0003, 5.0
_MOST = 1 << 16
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
    head, _, rest = _read(f"/proc/{pid}/stat").decode("utf-8", "replace").rpartition(")")
    fields = rest.split()
    if len(fields) <= _START:
        return None
    return Stat(
        pid, head.partition("(")[2], fields[_STATE], int(fields[_PARENT]), int(fields[_START]),
        int(fields[_USER]) + int(fields[_SYSTEM]), int(fields[_THREADS]),
        bool(int(fields[_FLAGS]) & _KERNEL_THREAD),
    )  # fmt: skip


def command_of(pid: int) -> str:
    """Return the command line of a process, empty if it has none or may not be read."""
    return _read(f"/proc/{pid}/cmdline").rstrip(b"\0").replace(b"\0", b" ").decode(
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

    Attributes:
        members: The watched processes by id: each with the time of its start.
        roots: The program that each watched process comes from.
    """

    def __init__(self, roots: Collection[int], mark: str = "", user: int | None = None) -> None:
        self.members: dict[int, int] = {}
        self.roots: dict[int, int] = {}
        self._mark = f"{MARK}={mark}".encode() if mark else b""
        self._user = user
        self._seen: set[int] = set()
        self._last_pid = b""
        self._due_s = 0.0
        self._first = next(iter(roots), 0)
        for pid in roots:
            if (stat := stat_of(pid)) is not None:
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
        if now_s < self._due_s and not at_once:
            return []
        # The last field is the youngest id in this namespace: unchanged if nothing was created.
        last_pid = _read("/proc/loadavg").rpartition(b" ")[2]
        if last_pid == self._last_pid != b"" and not at_once:
            return []
        begin_s = time.thread_time()
        self._last_pid = last_pid
        found = self._new()
        cost_s = time.thread_time() - begin_s
        self._due_s = now_s + min(cost_s / _SHARE, _LONGEST_S)
        return found

    def _add(self, stat: Stat) -> None:
        self.members[stat.pid] = stat.start
        self.roots[stat.pid] = self.roots.get(stat.parent, stat.pid)
        self._seen.add(stat.pid)

    def _new(self) -> list[int]:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
        young = pids - self._seen
        self._seen &= pids
        self._seen |= young
        stats = {pid: stat for pid in young if (stat := stat_of(pid)) is not None}
        if self._user is not None:
            for stat in stats.values():
                if self._is_of_user(stat):
                    self._add(stat)
            return [pid for pid in stats if pid in self.members]
        heirs = frozenset(_ancestors(os.getpid())) if self._mark else frozenset()
        for stat in stats.values():
            if stat.parent in heirs and self._has_mark(stat.pid):
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
        return self.members.get(stat.parent, stat.start + 1) <= stat.start

    def _has_mark(self, pid: int) -> bool:
        return self._mark in _read(f"/proc/{pid}/environ").split(b"\0")

    def _is_of_user(self, stat: Stat) -> bool:
        if stat.is_kernel or stat.pid == os.getpid():
            return False
        try:
            return Path(f"/proc/{stat.pid}").stat().st_uid == self._user
        except OSError:
            return False


def _ancestors(pid: int) -> Iterator[int]:
    """Yield a process, its parent, and so on."""
    while pid and (stat := stat_of(pid)) is not None:
        yield pid
        pid = stat.parent


def _read(path: str) -> bytes:
    """Return the first bytes of a file of the kernel, empty if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _MOST)
        finally:
            os.close(file)
    except OSError:
        return b""
