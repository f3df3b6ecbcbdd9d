"""What a thread that sleeps waits for: by its system call, words in memory and its stack."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nptltrace.hang.process import Process, Thread

__all__ = ["Wait", "routine_kind", "wait_of"]

# futex(), by architecture, and what calls are named that threads sleep in for long.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_CALLS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 17: "pread64", 23: "select", 34: "pause", 35: "nanosleep",
        42: "connect", 43: "accept", 45: "recvfrom", 47: "recvmsg", 61: "wait4", 65: "semop",
        70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 128: "rt_sigtimedwait",
        130: "rt_sigsuspend", 208: "io_getevents", 220: "semtimedop", 230: "clock_nanosleep",
        232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid", 270: "pselect6", 271: "ppoll",
        281: "epoll_pwait", 288: "accept4", 299: "recvmmsg", 426: "io_uring_enter",
        441: "epoll_pwait2", 449: "futex_waitv", 454: "futex_wake", 455: "futex_wait",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 63: "read", 64: "write", 72: "pselect6",
        73: "ppoll", 82: "fsync", 95: "waitid", 101: "nanosleep", 115: "clock_nanosleep",
        133: "rt_sigsuspend", 137: "rt_sigtimedwait", 193: "semop", 202: "accept", 203: "connect",
        207: "recvfrom", 212: "recvmsg", 242: "accept4", 260: "wait4", 426: "io_uring_enter",
        441: "epoll_pwait2", 449: "futex_waitv",
    },
}  # fmt: skip
# Operations of futex(), without the flags for private memory and the clock.
_WAIT, _LOCK_PI, _WAIT_BITSET, _WAIT_REQUEUE_PI, _LOCK_PI2 = 0, 6, 9, 11, 13
_PRIVATE, _OPERATION = 128, 127
_TID = 0x3FFF_FFFF
_INHERITS, _SHARED_KIND = 32, 128
# What the functions of the C library are for that threads wait in, without leading underscores.
_ROUTINES = {
    "mutex": (
        "pthread_mutex_lock", "pthread_mutex_lock_full", "pthread_mutex_timedlock",
        "pthread_mutex_clocklock", "mtx_lock", "mtx_timedlock",
    ),
    "condition": (
        "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait",
        "cnd_timedwait",
    ),
    "rwlock": (
        "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_rwlock_timedrdlock",
        "pthread_rwlock_timedwrlock", "pthread_rwlock_clockrdlock", "pthread_rwlock_clockwrlock",
    ),
    "semaphore": ("sem_wait", "sem_timedwait", "sem_clockwait", "new_sem_wait_slow64"),
    "barrier": ("pthread_barrier_wait",),
    "join": (
        "pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np", "pthread_clockjoin_ex",
        "thrd_join",
    ),
    "once": ("pthread_once", "pthread_once_slow", "call_once"),
}  # fmt: skip
_KIND_OF = {routine: kind for kind, routines in _ROUTINES.items() for routine in routines}


@dataclass(frozen=True, slots=True)
class Wait:
    """What a thread waits for.

    Attributes:
        kind: `mutex`, `rwlock`, `condition`, `semaphore`, `barrier`, `join`, `once`; `futex` for a
            word of which nothing more is known; `call` for another system call.
        object: Address of the object, or of the futex; 0 of a call.
        owner: The thread waited for, as the object names it; 0 when it names none.
        readers: How many threads hold the rwlock for reading.
        writes: The rwlock is wanted for writing.
        timed: The wait has a time limit.
        private: Only threads of the process can end it.
        call: Name of the system call.
    """

    kind: str
    object: int = 0
    owner: int = 0
    readers: int = 0
    writes: bool = False
    timed: bool = False
    private: bool = False
    call: str = "futex"


def wait_of(
    process: Process, thread: Thread, tids: Collection[int], functions: Iterable[str]
) -> Wait | None:
    """Return what a thread waits for, None when it runs.

    Args:
        process: The process.
        thread: The thread.
        tids: The ids of all its threads, as it knows them itself.
        functions: Names of the functions on its stack, the innermost first.
    """
    call = thread.call
    if call is None:
        return None
    machine = os.uname().machine
    if call.number != _FUTEX.get(machine):
        known = _CALLS.get(machine, {}).get(call.number)
        return Wait("call", call=known or f"system call {call.number}")
    address, operation, value, limit = call.arguments[:4]
    kind = next((k for f in functions if (k := routine_kind(f))), "")
    futex = _Futex(
        process, address, operation & _OPERATION, value & 0xFFFF_FFFF, frozenset(tids), kind
    )
    found = futex.object()
    # Another process can wake a thread through memory that both have mapped; a thread's end
    # always comes from its own process, though the kernel says so by a word that is not private.
    private = bool(operation & _PRIVATE) or found.kind == "join"
    return Wait(
        found.kind, found.object, found.owner, found.readers, found.writes, bool(limit), private
    )


def routine_kind(function: str) -> str:
    """Return the kind of object that a function of the C library waits for, or empty.

    Args:
        function: One of its names there: `___pthread_mutex_lock`, `__GI___pthread_cond_wait`.
    """
    return _KIND_OF.get(function.removeprefix("__GI_").lstrip("_").partition("@")[0], "")


@dataclass(frozen=True, slots=True)
class _Futex:
    """A futex that a thread sleeps on.

    Attributes:
        process: The process.
        address: The word.
        operation: The operation, without flags.
        value: What the word was when the thread went to sleep.
        tids: Threads of the process.
        kind: What the stack says, or empty.
    """

    process: Process
    address: int
    operation: int
    value: int
    tids: frozenset[int]
    kind: str

    def object(self) -> Wait:
        """Return the object that the word is a part of.

        The memory decides where it can: at the end of a condition wait a thread takes the mutex
        again, in the same function.
        """
        if self.operation in {_LOCK_PI, _LOCK_PI2}:
            word = self._words(self.address, "<I")
            return Wait("mutex", self.address, word[0] & _TID if word else 0)
        if self.operation not in {_WAIT, _WAIT_BITSET, _WAIT_REQUEUE_PI}:
            return Wait("futex", self.address)
        mutex = self._mutex()
        if mutex is not None and self.kind in {"mutex", "condition", ""}:
            return mutex
        return self._named() if self.kind else self._unnamed()

    def _named(self) -> Wait:
        """Return what the stack says it is."""
        if self.kind == "rwlock":
            return self._rwlock()
        if self.kind == "join":
            return Wait("join", self.address, self.value & _TID)
        address = {
            "condition": self._condition() or self.address,
            "barrier": self.address - 4,
        }.get(self.kind, self.address)
        return Wait(self.kind, address)

    def _unnamed(self) -> Wait:
        """Return what memory alone says, where the stack has no names."""
        if self.operation == _WAIT_BITSET and self.value in self.tids:
            return Wait("join", self.address, self.value)
        condition = self._condition()
        return Wait("condition", condition) if condition else Wait("futex", self.address)

    def _words(self, address: int, layout: str) -> tuple[int, ...]:
        """Return numbers in memory, none if it cannot be read."""
        size = struct.calcsize(layout)
        data = self.process.read(address, size)
        return struct.unpack(layout, data) if len(data) == size else ()

    def _mutex(self) -> Wait | None:
        """Return the mutex whose lock this word is, if it looks like one that is held."""
        found = self._words(self.address, "<IIIII")
        if not found:
            return None
        lock, _, owner, users, kind = found
        robust = self.value & ~_TID and self.value & _TID
        if kind & ~0x3FF or users > 1 << 22:
            return None
        if robust:
            return Wait("mutex", self.address, lock & _TID)
        if self.value != 2 or lock > 2 or not owner or users == 0:  # noqa: PLR2004 -- lock with waiters
            return None
        if owner in self.tids or self.kind == "mutex":
            return Wait("mutex", self.address, owner)
        return None

    def _condition(self) -> int:
        """Return the condition that the word belongs to: 0 if its neighbours say otherwise."""
        for base in (self.address - 40, self.address - 44):
            found = self._words(base, "<QQIIIIII")
            # Sequence of waiters, where the first group began, references, sizes, waiters.
            if found and found[1] >> 1 <= found[0] >> 1 and found[7] >> 3 in range(1, 1 << 20):
                return base
        return 0

    def _rwlock(self) -> Wait:
        """Return the rwlock that the word belongs to."""
        for offset in (8, 12, 0):  # the phase, the writers, the readers
            base = self.address - offset
            found = self._words(base, "<IIIIIIi")
            if not found:
                continue
            readers, writers, phase, _, _, _, writer = found
            # Bits of the phase and of a waiting writer stand below the number of readers.
            holders = 0 if readers & 1 else readers >> 3
            if phase <= 3 and writers <= 1 << 30 and (writer > 0 or holders):  # noqa: PLR2004
                return Wait("rwlock", base, max(writer, 0), holders, writes=offset != 8)  # noqa: PLR2004
        return Wait("futex", self.address)
