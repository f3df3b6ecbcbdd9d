"""Cheap looks at processes: which threads have made progress, and which have come to rest.

The kernel sums the processor time of all threads of a process. If the sum has not changed, none of
the threads has run. So a process at rest costs one system call. For other processes, the numbers of
turns show which threads have run.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding import libptttasks
from nptltrace.guard.allowance import Allowance
from nptltrace.hang.targets.files import children_of
from nptltrace.hang.waits import may_last, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    # Thread id, stack pointer, and address of the code.
    Place = tuple[int, int, int]

__all__ = ["Progress"]

# The clock of a process for clock_gettime(2), as clock_getcpuclockid(3) returns it.
_CLOCK = 2
# The looks at the turns of threads may use this share of a processor, and as many seconds at once.
_SHARE, _AT_ONCE_S = 0.0003, 0.1
_FUTEX, _CHILDREN = frozenset({"futex"}), frozenset({"wait4", "waitid"})
# A process that ran within this time may go on.
_BUSY_S = 1.0
_ENDED = frozenset({b"Z", b"X"})
# A condition has several futexes within so many bytes.
_OBJECT = 48
# A process at rest is examined again after these times in s: another process may have changed.
_REVIEWS_S = (5.0, 30.0, 180.0)


class _Task(NamedTuple):
    """The state of a thread, as in `libptttasks`."""

    tid: int
    call: int
    arguments: tuple[int, ...]
    sp: int
    pc: int
    state: bytes


class _Watched:
    """What is known of a process.

    Attributes:
        pid: The process.
        ran: The used processor time in ns; or the turns of all threads.
        moved_s: When the processor time changed last.
        looked_s: When the turns of its threads were read last.
        turns: The turns of its threads.
        known: The turns of threads at rest that were reported before.
        settled: All threads were at rest when the turns were read last.
        closed: All threads were at rest, in calls that only another thread or process may end.
        excused: The futexes of waits for objects without owner, by thread, stack pointer and code.
        reviews: The number of reviews since a thread came to rest.
    """

    __slots__ = (
        "closed", "excused", "known", "looked_s", "moved_s", "pid", "ran", "reviews", "settled",
        "turns",
    )  # fmt: skip

    def __init__(self, pid: int, now_s: float) -> None:
        self.pid, self.ran = pid, -1
        self.moved_s, self.looked_s = now_s, 0.0
        self.turns: dict[int, int] = {}
        self.known: dict[int, int] = {}
        self.excused: Mapping[Place, int] = {}
        self.settled = self.closed = False
        self.reviews = 0


class Progress:
    """The progress of watched processes."""

    def __init__(self) -> None:
        self._watched: dict[int, _Watched] = {}
        self._allowance = Allowance(_SHARE, _AT_ONCE_S)
        self._machine = os.uname().machine
        self._futexes = numbers_of(self._machine, _FUTEX)
        self._for_children = numbers_of(self._machine, _CHILDREN)
        # Whether the kernel has clocks of other processes; None until that is known.
        self._has_clocks: bool | None = None

    def add(self, pids: Iterable[int], now_s: float) -> None:
        """Watch more processes.

        Args:
            pids: The processes.
            now_s: The time of `time.monotonic()`.
        """
        for pid in pids:
            self._watched[pid] = _Watched(pid, now_s)
            if self._has_clocks is None:
                self._has_clocks = _has_clock(pid)

    def moved_s(self, pids: Iterable[int]) -> float:
        """Return when a thread of these processes was last seen to run."""
        return max(
            (self._watched[pid].moved_s for pid in pids if pid in self._watched), default=0.0
        )

    def pause(self, length_s: float) -> None:
        """Leave out a time in which nobody looked.

        Args:
            length_s: The length in s.
        """
        for watched in self._watched.values():
            watched.moved_s += length_s

    def look(self, now_s: float) -> tuple[list[int], list[int]]:
        """Look at all processes.

        Args:
            now_s: The time of `time.monotonic()`.

        Returns:
            The processes in which threads have come to rest, the longest at rest first; and the
            processes that are gone.
        """
        gone: list[int] = []
        unsettled: list[_Watched] = []
        rested: list[int] = []
        for watched in self._watched.values():
            ran = _turns(watched.pid) if self._has_clocks is False else _ran_ns(watched.pid)
            if ran is None:
                gone.append(watched.pid)
            elif ran != watched.ran:
                watched.ran, watched.moved_s, watched.settled = ran, now_s, False
                unsettled.append(watched)
            elif not watched.settled:
                unsettled.append(watched)
            elif self._is_due(watched, now_s):
                watched.reviews += 1
                rested.append(watched.pid)
        self._leave(gone)
        return [*rested, *self._come_to_rest(unsettled, now_s)], gone

    def excuse(self, pid: int, places: Mapping[Place, int]) -> None:
        """Do not report that threads wait again where they have waited before.

        Args:
            pid: The process.
            places: The futexes of waits for objects without owner, by place.
        """
        if (watched := self._watched.get(pid)) is not None:
            # A thread that ran during the last look is still excused where it was before.
            kept = {at: futex for at, futex in watched.excused.items() if at[0] in watched.turns}
            watched.excused = {**kept, **places}

    def _leave(self, gone: list[int]) -> None:
        """Forget processes that are gone."""
        for pid in gone:
            del self._watched[pid]
        if gone:
            # The end of a process may be the reason that another waits for ever.
            for watched in self._watched.values():
                watched.reviews = 0

    def _come_to_rest(self, unsettled: list[_Watched], now_s: float) -> Iterator[int]:
        """Yield the processes in which threads have come to rest, as far as looks are allowed."""
        self._allowance.grow(now_s)
        # The processes at rest for the longest time come first, then the others in turn.
        unsettled.sort(key=lambda watched: (watched.moved_s, watched.looked_s))
        for watched in unsettled:
            if not self._allowance.left:
                break
            with self._allowance:
                rests = self._comes_to_rest(watched, now_s)
            if rests:
                yield watched.pid

    @staticmethod
    def _is_due(watched: _Watched, now_s: float) -> bool:
        if not watched.closed or watched.reviews >= len(_REVIEWS_S):
            return False
        return now_s - watched.moved_s >= _REVIEWS_S[watched.reviews]

    def _comes_to_rest(self, watched: _Watched, now_s: float) -> bool:
        """Read the turns of the threads, and return whether a thread has come to rest."""
        tids = _threads(watched.pid)
        if not tids:
            return False
        before, watched.looked_s = watched.turns, now_s
        turns = dict(zip(tids, libptttasks.turns(watched.pid, tids), strict=True))
        watched.turns = turns
        rest = {tid: count for tid, count in turns.items() if before.get(tid) == count}
        watched.settled = len(rest) == len(turns) == len(before)
        new = [tid for tid, count in rest.items() if watched.known.get(tid) != count]
        watched.known = rest
        watched.closed = False
        if not new:
            return False
        tasks = self._tasks(watched.pid, [*rest] if watched.settled else new)
        lasting = [task for task in tasks if may_last(self._machine, task.call, task.arguments)]
        watched.closed = watched.settled and len(lasting) == len(tasks) > 0
        watched.reviews = 0
        if watched.closed:
            return not self._waits_for_busy_child(watched.pid, tasks, now_s)
        # As other threads go on by themselves, only a wait for a lock may be a part of a cycle.
        return any(
            task.tid in new and task.call in self._futexes and not _is_excused(task, watched)
            for task in lasting
        )

    def _waits_for_busy_child(self, pid: int, tasks: list[_Task], now_s: float) -> bool:
        if not all(task.call in self._for_children for task in tasks):
            return False
        return any(now_s - self.moved_s([child]) < _BUSY_S for child in children_of(pid))

    @staticmethod
    def _tasks(pid: int, tids: list[int]) -> list[_Task]:
        """Return the states of threads that have not ended."""
        tasks, _ = libptttasks.read(pid, tids, is_inside=False, meanwhile=lambda: None)
        read = (_Task(task[0], task[3], task[4:10], task[10], task[11], task[13]) for task in tasks)
        return [task for task in read if task.state not in _ENDED]


def _is_excused(task: _Task, watched: _Watched) -> bool:
    """Return whether a thread waits for the same object as before, at the same place."""
    futex = watched.excused.get((task.tid, task.sp, task.pc))
    return futex is not None and abs(futex - task.arguments[0]) < _OBJECT


def _ran_ns(pid: int) -> int | None:
    """Return the processor time of all threads of a process; None if it is gone."""
    try:
        return time.clock_gettime_ns(~pid << 3 | _CLOCK)
    except OSError:
        return None


def _has_clock(pid: int) -> bool | None:
    """Return whether the kernel has a clock of a process; None if the process is gone."""
    if _ran_ns(pid) is not None:
        return True
    return False if os.path.exists(f"/proc/{pid}/stat") else None  # noqa: PTH110 -- short


def _turns(pid: int) -> int | None:
    """Return how often all threads of a process got a processor, for kernels without its clock."""
    tids = _threads(pid)
    return sum(libptttasks.turns(pid, tids)) if tids else None


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 -- names only
    except OSError:
        return []
