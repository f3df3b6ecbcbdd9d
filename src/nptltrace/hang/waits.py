"""What a thread that sleeps waits for: by its system call, words in memory and its stack."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.libptttasks import AROUND_FUTEX, BEFORE_FUTEX
from nptltrace._dataclasses import dataclass
from nptltrace.hang.conditions import LAYOUTS
from nptltrace.hang.routines import has_object, routine_kind, wants_to_write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.conditions import Layout
    from nptltrace.hang.targets.target import Call, Target, Thread

__all__ = ["Wait", "Waits", "is_call", "spin_of", "wait_of"]

# futex(), by architecture, and what calls are named that threads sleep in for long.
_FUTEX = {"x86_64": 202, "aarch64": 98}
# The call by which a thread goes on with a call with a time limit, when a stop of the process has
# interrupted it: with the same arguments.
_RESTART = {"x86_64": 219, "aarch64": 128}
_CALLS = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv",
        20: "writev", 23: "select", 34: "pause", 35: "nanosleep",
        40: "sendfile", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 56: "clone", 58: "vfork", 61: "wait4", 65: "semop",
        70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 128: "rt_sigtimedwait",
        130: "rt_sigsuspend", 208: "io_getevents", 219: "restart_syscall", 220: "semtimedop",
        230: "clock_nanosleep", 232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid",
        257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
        299: "recvmmsg", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2",
        449: "futex_waitv", 454: "futex_wake", 455: "futex_wait",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 71: "sendfile", 72: "pselect6",
        73: "ppoll", 82: "fsync", 95: "waitid", 101: "nanosleep", 115: "clock_nanosleep",
        128: "restart_syscall", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 193: "semop",
        202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg",
        212: "recvmsg", 220: "clone", 242: "accept4", 260: "wait4", 426: "io_uring_enter",
        435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
    },
}  # fmt: skip
# Operations of futex(), without the flags for private memory and the clock.
_WAIT, _LOCK_PI, _WAIT_BITSET, _WAIT_REQUEUE_PI, _LOCK_PI2 = 0, 6, 9, 11, 13
_PRIVATE, _OPERATION = 128, 127
_TID = 0x3FFF_FFFF
# The largest id of a thread that the kernel gives.
_TID_MAX = 1 << 22
# Bits of the kind of a mutex, and of the word of a robust one.
_ROBUST, _INHERITS = 16, 32
_WAITERS = 1 << 31
# Words of a rwlock: what a thread waits on that waits for the other phase, or for its own; of the
# number of readers, that it is the writers' phase, and that one of them has the lock.
_USED, _BUSY = 2, 3
_WRITE_PHASE, _WRITTEN = 1, 3
# The code of x86 that gives a call the address of a variable: directly, or through rax. So long it
# is at most.
_GIVES = re.compile(rb"(?:\x48\x8d\x3d(....)|\x48\x8d\x05(....)\x48\x89\xc7)\xe8....\Z", re.DOTALL)
_CALL = 15
# So much of a stack the functions of the C library take that wait for a mutex.
_FRAMES = 512
# The words of a mutex: the lock, how often it was taken, the owner, its users, the kind.
_MUTEX = struct.Struct("<IIIII")
# Instructions of x86's pthread_spin_lock(): the first one tries, and makes the lock's word 0 or
# less; the second one begins the loop of a thread that did not get the lock.
_TRIES, _PAUSES = b"\xf0\xff\x0f", b"\xf3\x90"
# Where the C library of x86-64 has a thread's own address and its id, from its `pthread_t` on; and
# the word on which whoever joins the thread sleeps, which is its id before 2.43.
_SELF_AT, _TID_AT, _JOIN_AT = 16, 720, 1576
# Where a condition of GLib has its futex.
_IN_G_COND = 8
# Rust's rwlock: where it has the word that writers sleep on; of its state the number of readers,
# which is the largest there is while it is held for writing.
_RUST_WRITERS, _RUST_READERS = 4, (1 << 30) - 1
# The instructions of x86 before the place behind a system call: the number, and the call.
_MAKES_CALL = re.compile(rb"\xb8(....)\x0f\x05", re.DOTALL)
_CALL_SIZE = 7
_SECOND_NS = 1_000_000_000


class Wait(NamedTuple):
    """What a thread waits for.

    Attributes:
        kind: `mutex`, `rwlock`, `condition`, `semaphore`, `barrier`, `join`, `once`; `static` for
            the initializer of a static variable; `future`; `stream`, `malloc lock` and others
            (`C library lock`) of the C library; `monitor` of Java, and `lock` of its
            `java.util.concurrent`; `gil` of CPython; `spin lock`, for which a thread does not
            sleep; `park` for a thread of Rust or Java
            that another one must unpark; `receive`, `send` and `scope` for what Rust parks threads
            for itself; `go` for what Go's runtime waits for; `futex` for a word of which nothing
            more is known; `call` for another system call.
        object: Address of the object, or of the futex; 0 of a call, or where it is not known.
        owner: The thread waited for, as the object names it; 0 when it names none.
        readers: How many threads hold the rwlock for reading.
        writes: The rwlock is wanted for writing.
        timed: The wait has a time limit.
        private: Only threads of the process can end it.
        call: Name of the system call.
        word: Address of the futex.
        free: Nobody has the mutex, or the thread waited for has ended.
        repeated: The thread wakes now and then by itself, only to ask for the same again.
    """

    kind: str
    object: int = 0
    owner: int = 0
    readers: int = 0
    writes: bool = False
    timed: bool = False
    private: bool = False
    call: str = "futex"
    word: int = 0
    free: bool = False
    repeated: bool = False


class Waits(NamedTuple):
    """What the stack of a thread says of its wait.

    Attributes:
        routine: The function that has a `routine_kind`, or empty.
        function: The innermost function that has a name, or empty.
        is_library: The C library waits for a lock of its own.
    """

    routine: str = ""
    function: str = ""
    is_library: bool = False

    @property
    def writes(self) -> bool:
        """Whether the thread wants to write what it waits for."""
        return wants_to_write(self.routine)


def wait_of(
    process: Target, thread: Thread, tids: frozenset[int], at: Waits, layout: Layout | None = None
) -> Wait | None:
    """Return what a thread waits for, None when it runs.

    Args:
        process: The process.
        thread: The thread.
        tids: The ids of all its threads, as it knows them itself.
        at: What its stack says.
        layout: The layout of conditions of its C library, None if it is not known.
    """
    if thread.call is None:
        return None
    call, routine = _begun(process, thread, thread.call, at), at.routine
    if call.number != _FUTEX.get(process.machine):
        known = _CALLS.get(process.machine, {}).get(call.number)
        return Wait("call", call=known or f"system call {call.number}")
    address, operation, value, limit = call.arguments[:4]
    kind = routine_kind(routine)
    futex = _Futex(
        process, thread, address, operation & _OPERATION, value & 0xFFFF_FFFF, tids, kind, at,
        process.read(address - BEFORE_FUTEX, AROUND_FUTEX),
        LAYOUTS if layout is None else (layout,),
    )  # fmt: skip
    of_others = has_object(routine)
    if of_others is None:
        wait = futex.object()
    elif kind == "rwlock" and of_others:
        wait = futex.rust_rwlock()
    else:
        address -= _IN_G_COND if routine.startswith("g_cond_wait") else 0
        wait = Wait(kind, address if of_others else 0)
    # Another process can wake a thread through memory that both have mapped; a thread's end
    # always comes from its own process, though the kernel says so by a word that is not private.
    private = bool(operation & _PRIVATE) or wait.kind == "join"
    return wait._replace(timed=bool(limit), private=private, word=futex.address)


def _begun(process: Target, thread: Thread, call: Call, at: Waits) -> Call:
    """Return the system call that a thread goes on with, where a stop has interrupted it.

    The kernel has a call of its own for that, with the arguments of the first one. Which one it
    was says the code, or the function that makes it. A function that makes any call may wait for a
    futex, which its arguments show.
    """
    machine = process.machine
    if call.number != _RESTART.get(machine):
        return call
    code = _MAKES_CALL.fullmatch(process.read(thread.pc - _CALL_SIZE, _CALL_SIZE))
    if code is not None and machine == "x86_64":
        return call._replace(number=int.from_bytes(code[1], "little"))
    number = _number_of(machine, at.function)
    if number is None and (routine_kind(at.routine) or _is_futex(process, call)):
        number = _FUTEX.get(machine)
    return call if number is None else call._replace(number=number)


def is_call(function: str) -> bool:
    """Return whether a function has the name of a system call that threads sleep in."""
    return any(_number_of(machine, function) is not None for machine in _CALLS)


@cache
def _number_of(machine: str, function: str) -> int | None:
    """Return the number of the system call of a function's name; None if there is none."""
    name = function.lstrip("_").removeprefix("GI_").lstrip("_").removeprefix("libc_")
    return next((n for n, known in _CALLS.get(machine, {}).items() if known == name), None)


def _is_futex(process: Target, call: Call) -> bool:
    """Return whether a system call's arguments are those of a futex wait with a time limit."""
    address, operation, value, limit = call.arguments[:4]
    word, time = process.read(address, 4), process.read(limit, 16)
    if len(word) < 4 or len(time) < 16 or address & 3:  # noqa: PLR2004 -- the sizes of both
        return False
    seconds, rest = struct.unpack("<qq", time)
    return (
        operation & _OPERATION in {_WAIT, _WAIT_BITSET}
        and int.from_bytes(word, "little") == value & 0xFFFF_FFFF
        and seconds >= 0
        and 0 <= rest < _SECOND_NS
    )


def spin_of(process: Target, thread: Thread, offset: int) -> Wait | None:
    """Return the spin lock for which a stopped thread spins; None where it may yet get it.

    Args:
        process: The process.
        thread: The thread, in `pthread_spin_lock()`.
        offset: How far it has come there.
    """
    code = process.read(thread.pc - offset, offset + len(_PAUSES))
    word = process.read(thread.argument, 4)
    if not thread.argument or _TRIES not in code or _PAUSES not in code or len(word) < 4:  # noqa: PLR2004
        return None
    if int.from_bytes(word, "little", signed=True) > 0:
        return None
    return Wait("spin lock", thread.argument, private=True, word=thread.argument)


@dataclass(slots=True)
class _Futex:
    """A futex that a thread sleeps on.

    Attributes:
        process: The process.
        thread: The thread.
        address: The word.
        operation: The operation, without flags.
        value: What the word was when the thread went to sleep.
        tids: Threads of the process.
        kind: What the stack says, or empty.
        at: What the stack says besides.
        around: The memory before and behind the word; nothing where that has no begin.
        layouts: The layouts that a condition may have.
    """

    process: Target
    thread: Thread
    address: int
    operation: int
    value: int
    tids: frozenset[int]
    kind: str
    at: Waits
    around: bytes
    layouts: Sequence[Layout]

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
        if self.kind == "mutex" and not self.value and 0 < self.address - self.thread.sp < _FRAMES:
            return self._refused_mutex()
        mutex = self._mutex()
        if mutex is not None and self.kind in {"mutex", "condition", ""}:
            return mutex
        return self._named() if self.kind else self._unnamed()

    def _named(self) -> Wait:
        """Return what the stack says it is."""
        if self.kind == "rwlock":
            return self._rwlock()
        if self.kind == "join":
            owner = self._thread_of(self.address - _JOIN_AT)
            return Wait("join", self.address, self.value & _TID if owner is None else owner)
        address = {
            "condition": self._condition() or self.address,
            "barrier": self.address - 4,
        }.get(self.kind, self.address)
        return Wait(self.kind, address)

    def _unnamed(self) -> Wait:
        """Return what memory alone says, where the stack has no names."""
        if self.operation == _WAIT_BITSET and self.value in self.tids:
            return Wait("join", self.address, self.value)
        if owner := self._streams_owner():
            return Wait("stream", self.address, owner)
        return Wait("C library lock" if self.at.is_library else "futex", self.address)

    def _words(self, address: int, layout: str) -> tuple[int, ...]:
        """Return numbers in memory, none if it cannot be read."""
        size = struct.calcsize(layout)
        at = address - self.address + BEFORE_FUTEX
        data = self.around[at : at + size] if at >= 0 else b""
        if len(data) < size:
            data = self.process.read(address, size)
        return struct.unpack(layout, data) if len(data) == size else ()

    def _mutex(self) -> Wait | None:
        """Return the mutex whose lock this word is, if it looks like a mutex that is held."""
        around = self.around
        if len(around) < BEFORE_FUTEX + _MUTEX.size:
            around = bytes(BEFORE_FUTEX) + self.process.read(self.address, _MUTEX.size)
        if len(around) < BEFORE_FUTEX + _MUTEX.size:
            return None
        lock, _, owner, users, kind = _MUTEX.unpack_from(around, BEFORE_FUTEX)
        if kind & ~0x3FF or users > _TID_MAX:
            return None
        # Others sleep on words with high bits as well: Rust's parked threads on a word that is -1.
        if kind & _ROBUST and self.value & _WAITERS and 0 < lock & _TID <= _TID_MAX:
            return Wait("mutex", self.address, lock & _TID)
        # the word of another lock with waiters
        is_held = self.value == 2 and lock <= 2 and 0 < owner <= _TID_MAX and users > 0  # noqa: PLR2004
        if is_held and (owner in self.tids or self.kind == "mutex"):
            return Wait("mutex", self.address, owner)
        return None

    def _refused_mutex(self) -> Wait:
        """Return the mutex that the kernel refused, as a deadlock of priority inheritance.

        The C library then sleeps for ever on a word of its own stack; the mutex is in a register
        that stands there too, or only in the code of the call.
        """
        values = {*self.process.words(self.thread.sp, _FRAMES)}
        arguments = {at for value in values if (at := self._given_before(value))}
        owners = {
            value: words[0] & _TID
            for value in values | arguments | {*self.thread.saved.values()}
            if (words := self._words(value, "<IIIII"))
            and words[4] & _INHERITS
            and not words[4] & ~0x3FF
            and words[0] & _TID == words[2] & _TID
            and words[0] & _TID in self.tids
        }
        # Locks that it has itself may lie on its stack as well.
        of_others = {value: o for value, o in owners.items() if o != self.thread.inner_tid}
        owners = of_others or owners
        if len(owners) != 1:
            return Wait("futex", self.address)
        ((address, owner),) = owners.items()
        return Wait("mutex", address, owner)

    def _given_before(self, returns: int) -> int:
        """Return the address that a call was given as its first argument; 0 if none is to be seen.

        Args:
            returns: Where the call returns to.
        """
        if self.process.map.only(returns - 1) is None:
            return 0
        code = self.process.read(returns - _CALL, _CALL)
        match = _GIVES.search(code)
        if match is None:
            return 0
        which = match.lastindex or 0
        end = returns - _CALL + match.end(which)
        return end + int.from_bytes(match[which], "little", signed=True)

    def _condition(self) -> int:
        """Return the condition that the word belongs to: 0 if its neighbours say otherwise."""
        # Of the words of its two groups of waiters; a thread that destroys it waits at the last one
        # until all have left.
        for waiters_at, signals_at in self.layouts:
            for base in (self.address - at for at in (signals_at, signals_at + 4, waiters_at)):
                # Sequence of waiters, and where the first group began.
                words = self._words(base, "<QQ")
                count = self._words(base + waiters_at, "<I")
                if not words or not count or words[1] >> 1 > words[0] >> 1:
                    continue
                if count[0] >> 3 in range(1, 1 << 20):
                    return base
        return 0

    def _streams_owner(self) -> int:
        """Return the thread that has the lock of a stream of the C library; 0 if it is none.

        The lock is a word, how often it was taken, and its owner as the C library knows it.
        """
        words = self._words(self.address, "<IIQ")
        if self.value != 2 or not words or not words[1] or not words[2]:  # noqa: PLR2004 -- has waiters
            return 0
        tid = self._thread_of(words[2])
        return tid if tid in self.tids else 0

    def _thread_of(self, pointer: int) -> int | None:
        """Return the id of the thread of a `pthread_t`; None if there is no thread's memory."""
        if pointer <= 0:
            return None
        own = self.process.read(pointer, 8) + self.process.read(pointer + _SELF_AT, 8)
        if own != 2 * pointer.to_bytes(8, "little"):
            return None
        return int.from_bytes(self.process.read(pointer + _TID_AT, 4), "little")

    def rust_rwlock(self) -> Wait:
        """Return the rwlock of Rust that the word is a part of."""
        base = self.address - (_RUST_WRITERS if self.at.writes else 0)
        state = self._words(base, "<I")
        readers = state[0] & _RUST_READERS if state else 0
        held = 0 if readers == _RUST_READERS else readers
        return Wait("rwlock", base, readers=held, writes=self.at.writes)

    def _rwlock(self) -> Wait:
        """Return the rwlock that the word belongs to."""
        # A writer waits for the phase of readers to end, or for another writer; a reader for the
        # phase of writers to end, or for the readers before a writer to leave.
        offset = (8 if self.value == _USED else 12) if self.at.writes else 8 * (self.value == _BUSY)
        base = self.address - offset
        words = self._words(base, "<IIIIIIi")
        if not words:
            return Wait("futex", self.address)
        readers, writer = words[0], words[6]
        written = readers & _WRITTEN == _WRITTEN
        return Wait(
            "rwlock", base, max(writer, 0) if written else 0,
            0 if readers & _WRITE_PHASE else readers >> 3, writes=self.at.writes,
        )  # fmt: skip
