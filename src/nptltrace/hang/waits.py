"""The wait of a sleeping thread, from its system call, words in memory, and its stack."""

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
    from collections.abc import Collection, Sequence

    from nptltrace.hang.c_library import CLibrary
    from nptltrace.hang.conditions import Layout
    from nptltrace.hang.targets.target import Call, Target, Thread

__all__ = ["Wait", "Waits", "is_call", "may_last", "numbers_of", "spin_of", "wait_of"]

# The numbers of futex() and of restart_syscall() by architecture. With restart_syscall(2), a thread
# continues a call with a time limit after a stop of the process, with the same arguments.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_RESTART = {"x86_64": 219, "aarch64": 128}
# The names of system calls that may sleep for long, by number.
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
# The largest thread id of the kernel.
_TID_MAX = 1 << 22
# Bits of the kind of a mutex, and of the word of a robust mutex.
_ROBUST, _INHERITS = 16, 32
_WAITERS = 1 << 31
# The values of a rwlock's futexes: the mark of waiters alone, and with the value 1. Bits in its
# number of readers: the writers' phase; the same, and a writer holds the lock.
_USED, _BUSY = 2, 3
_WRITE_PHASE, _WRITTEN = 1, 3
# The code of x86 that calls a function with the address of a variable, directly or through rax, and
# its largest size.
_GIVES = re.compile(rb"(?:\x48\x8d\x3d(....)|\x48\x8d\x05(....)\x48\x89\xc7)\xe8....\Z", re.DOTALL)
_CALL = 15
# The largest stack of the C library's functions that wait for a mutex, in bytes.
_FRAMES = 512
# The words of a mutex: lock, depth of recursion, owner, number of users, kind.
_MUTEX = struct.Struct("<IIIII")
# Instructions in x86's pthread_spin_lock(): the first tries the lock and decrements its word; the
# second is in the loop of a thread that did not get the lock.
_TRIES, _PAUSES = b"\xf0\xff\x0f", b"\xf3\x90"
# On x86-64, the memory at a `pthread_t` begins with its own address, and repeats it at this offset.
# A joining thread sleeps on a word further on. Before 2.43, this word is the thread id.
_SELF_AT, _JOIN_MAX = 16, 1 << 12
# The largest depth of recursion of a lock of a stream.
_DEPTH_MAX = 1 << 20
# The offset of the futex in a condition of GLib.
_IN_G_COND = 8
# Rust's rwlock: the offset of the futex of writers, and the mask of the number of readers in the
# state. If the lock is held for writing, all bits of the mask are set.
_RUST_WRITERS, _RUST_READERS = 4, (1 << 30) - 1
# The instructions of x86 before the return address of a system call: the number, and the call.
_MAKES_CALL = re.compile(rb"\xb8(....)\x0f\x05", re.DOTALL)
_CALL_SIZE = 7
_SECOND_NS = 1_000_000_000


# Calls that wait for time, signals or work from outside.
_OUTSIDE = frozenset(
    {
        "poll", "select", "pause", "nanosleep", "accept", "connect", "rt_sigtimedwait",
        "rt_sigsuspend", "io_getevents", "semtimedop", "clock_nanosleep", "mq_timedreceive",
        "pselect6", "ppoll", "accept4", "recvmmsg", "io_uring_enter", "restart_syscall",
    }
)  # fmt: skip
# Calls with a limit in ms as the fourth argument; -1 is no limit.
_EPOLL = frozenset({"epoll_wait", "epoll_pwait"})


class Wait(NamedTuple):
    """The wait of a thread.

    Attributes:
        kind: `mutex`, `rwlock`, `condition`, `semaphore`, `barrier`, `join`, `once`, `future`;
            `static`: the initialization of a static variable;
            `stream`, `malloc lock`, `C library lock`: locks of the C library;
            `monitor`, `lock`: of Java, Python or Ruby; `gil`: of CPython;
            `grace period`: of liburcu;
            `spin lock`: the thread runs and does not sleep;
            `park`: a thread of Rust or Java that another thread must unpark;
            `receive`, `send`, `scope`: Rust's reasons to park a thread;
            `go`: a wait of Go's runtime; `futex`: an unknown object; `call`: another system call.
        object: The address of the object or futex; 0 for a call, or if it is not known.
        owner: The owner of the object, or the joined thread, by its id in the process's PID
            namespace; 0 if it is not known.
        readers: The number of threads that hold the rwlock for reading.
        writes: The thread wants the rwlock for writing.
        timed: The wait has a time limit.
        private: Only threads of the process can end the wait.
        call: The name of the system call.
        word: The address of the futex.
        free: The mutex has no owner, or the joined thread has ended.
        repeated: The thread wakes now and then by itself, only to ask for the same object again.
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
    """The facts about a wait from the stack of the thread.

    Attributes:
        routine: The function with a `routine_kind`, or empty.
        function: The innermost function with a name, or empty.
        is_library: The C library waits for an internal lock.
    """

    routine: str = ""
    function: str = ""
    is_library: bool = False

    @property
    def writes(self) -> bool:
        """Whether the thread wants a rwlock for writing."""
        return wants_to_write(self.routine)


def wait_of(
    process: Target, thread: Thread, tids: frozenset[int], at: Waits, library: CLibrary
) -> Wait | None:
    """Return the wait of a thread, None for a running thread.

    Args:
        process: The process.
        thread: The thread.
        tids: The ids of all threads in the process's PID namespace.
        at: The facts from the stack.
        library: The known facts about the C library.
    """
    if thread.call is None:
        return None
    call, routine = _restarted(process, thread, thread.call, at), at.routine
    if call.number != _FUTEX.get(process.machine):
        known = _CALLS.get(process.machine, {}).get(call.number)
        return Wait("call", call=known or f"system call {call.number}")
    address, operation, value, limit = call.arguments[:4]
    kind = routine_kind(routine)
    futex = _Futex(
        process, thread, address, operation & _OPERATION, value & 0xFFFF_FFFF, tids, kind, at,
        process.read(address - BEFORE_FUTEX, AROUND_FUTEX),
        LAYOUTS if library.condition is None else (library.condition,), library.is_known,
    )  # fmt: skip
    of_others = has_object(routine)
    if of_others is None:
        wait = futex.object()
    elif kind == "rwlock" and of_others:
        wait = futex.rust_rwlock()
    else:
        address -= _IN_G_COND if routine.startswith("g_cond_wait") else 0
        wait = Wait(kind, address if of_others else 0)
    # Another process can wake a thread through shared memory. The end of a thread always comes from
    # its own process, though the kernel wakes a shared futex for it.
    private = bool(operation & _PRIVATE) or wait.kind == "join"
    return wait._replace(timed=bool(limit), private=private, word=futex.address)


def numbers_of(machine: str, names: Collection[str]) -> frozenset[int]:
    """Return the numbers of system calls.

    Args:
        machine: The architecture.
        names: The names of the calls.
    """
    calls = {**_CALLS.get(machine, {}), _FUTEX.get(machine, -1): "futex"}
    return frozenset(number for number, name in calls.items() if name in names)


def may_last(machine: str, number: int, arguments: Sequence[int]) -> bool:
    """Return whether a thread may sleep for ever in a call if no thread or process helps it.

    Args:
        machine: The architecture.
        number: The number of the call; negative if the thread is in none.
        arguments: The arguments of the call.
    """
    if number < 0:
        return False
    if number == _FUTEX.get(machine):
        return not arguments[3]
    name = _CALLS.get(machine, {}).get(number, "")
    if name in _EPOLL:
        return arguments[3] & 0xFFFF_FFFF == 0xFFFF_FFFF  # noqa: PLR2004 -- -1
    return bool(name) and name not in _OUTSIDE


def _restarted(process: Target, thread: Thread, call: Call, at: Waits) -> Call:
    """Return the original call in place of restart_syscall().

    The code of the call or the name of its function shows the original call. `syscall()` makes any
    call; there the arguments show whether the call is futex().
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
    """Return whether a function has the name of a system call that may sleep for long."""
    return any(_number_of(machine, function) is not None for machine in _CALLS)


@cache
def _number_of(machine: str, function: str) -> int | None:
    """Return the number of the system call with the name of a function, or None."""
    name = function.lstrip("_").removeprefix("GI_").lstrip("_").removeprefix("libc_")
    return next((n for n, call in _CALLS.get(machine, {}).items() if call == name), None)


def _is_futex(process: Target, call: Call) -> bool:
    """Return whether the arguments of a system call fit a futex wait with a time limit."""
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
    """Return the spin lock that a stopped thread spins for; None if the lock is free.

    Args:
        process: The process.
        thread: The thread, in `pthread_spin_lock()`.
        offset: The offset in this function.
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
    """The futex of a sleeping thread.

    Attributes:
        process: The process.
        thread: The thread.
        address: The address of the word.
        operation: The operation, without flags.
        value: The expected value of the word, as the thread passed it.
        tids: The ids of all threads in the process's PID namespace.
        kind: The kind of object from the stack, or empty.
        at: The other facts from the stack.
        around: The memory around the word; empty if its begin cannot be read.
        layouts: The possible layouts of a condition.
        is_known: Whether the offsets in rwlocks are known.
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
    is_known: bool

    def object(self) -> Wait:
        """Return the wait for the object that contains the word.

        The memory decides if possible. The stack may be wrong: at the end of a condition wait, the
        same function takes the mutex.
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
        return self._by_stack() if self.kind else self._by_memory()

    def _by_stack(self) -> Wait:
        """Return the wait of the kind that the stack shows."""
        if self.kind == "rwlock":
            return self._rwlock() if self.is_known else Wait("rwlock", writes=self.at.writes)
        if self.kind == "join":
            return Wait("join", self.address, self._joined() or 0)
        address = {
            "condition": self._condition() or self.address,
            "barrier": self.address - 4,
        }.get(self.kind, self.address)
        return Wait(self.kind, address)

    def _by_memory(self) -> Wait:
        """Return the wait that the memory shows, as the stack has no names."""
        if self.operation == _WAIT_BITSET and self._joined() == self.value in self.tids:
            return Wait("join", self.address, self.value)
        if owner := self._streams_owner():
            return Wait("stream", self.address, owner)
        return Wait("C library lock" if self.at.is_library else "futex", self.address)

    def _words(self, address: int, layout: str) -> tuple[int, ...]:
        """Return numbers from memory, an empty tuple if it cannot be read."""
        size = struct.calcsize(layout)
        at = address - self.address + BEFORE_FUTEX
        data = self.around[at : at + size] if at >= 0 else b""
        if len(data) < size:
            data = self.process.read(address, size)
        return struct.unpack(layout, data) if len(data) == size else ()

    def _mutex(self) -> Wait | None:
        """Return the wait for a mutex if the word looks like the lock of a held mutex."""
        around = self.around
        if len(around) < BEFORE_FUTEX + _MUTEX.size:
            around = bytes(BEFORE_FUTEX) + self.process.read(self.address, _MUTEX.size)
        if len(around) < BEFORE_FUTEX + _MUTEX.size:
            return None
        lock, _, owner, users, kind = _MUTEX.unpack_from(around, BEFORE_FUTEX)
        if kind & ~0x3FF or users > _TID_MAX:
            return None
        # Other futexes have high bits, too: the word of a parked thread of Rust is -1.
        if kind & _ROBUST and self.value & _WAITERS and 0 < lock & _TID <= _TID_MAX:
            return Wait("mutex", self.address, lock & _TID)
        # A mutex that is not robust has the value 2 if there are waiters.
        is_held = self.value == 2 and lock <= 2 and 0 < owner <= _TID_MAX and users > 0  # noqa: PLR2004
        if is_held and (owner in self.tids or self.kind == "mutex"):
            return Wait("mutex", self.address, owner)
        return None

    def _refused_mutex(self) -> Wait:
        """Return the mutex that the kernel refused because of a deadlock of priority inheritance.

        Then the C library sleeps for ever on a word of the stack. The address of the mutex is in a
        register that was saved on the stack, or only in the code of the call.
        """
        values = {*self.process.words(self.thread.sp, _FRAMES)}
        arguments = {at for value in values if (at := self._argument_before(value))}
        owners = {
            value: words[0] & _TID
            for value in values | arguments | {*self.thread.saved.values()}
            if (words := self._words(value, "<IIIII"))
            and words[4] & _INHERITS
            and not words[4] & ~0x3FF
            and words[0] & _TID == words[2] & _TID
            and words[0] & _TID in self.tids
        }
        # The thread's own locks may be on its stack, too.
        of_others = {value: o for value, o in owners.items() if o != self.thread.inner_tid}
        owners = of_others or owners
        if len(owners) != 1:
            return Wait("futex", self.address)
        ((address, owner),) = owners.items()
        return Wait("mutex", address, owner)

    def _argument_before(self, returns: int) -> int:
        """Return the address that the code passes as the first argument of a call, or 0.

        Args:
            returns: The return address of the call.
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
        """Return the condition that contains the word; 0 if the words around do not fit."""
        # The word is of one of the two groups of waiters, or the number of waiters. A thread that
        # destroys the condition sleeps on the number until all waiters have left.
        for waiters_at, signals_at in self.layouts:
            for base in (self.address - at for at in (signals_at, signals_at + 4, waiters_at)):
                # The sequence number of waiters, and the start of the first group.
                words = self._words(base, "<QQ")
                count = self._words(base + waiters_at, "<I")
                if not words or not count or words[1] >> 1 > words[0] >> 1:
                    continue
                if count[0] >> 3 in range(1, 1 << 20):
                    return base
        return 0

    def _streams_owner(self) -> int:
        """Return the owner of a lock of the C library's streams; 0 if the word is of no such lock.

        The lock is a word, the depth of recursion, and the owner as a `pthread_t`. In later glibc,
        the depth is 0 while the lock is taken once.
        """
        words = self._words(self.address, "<IIQ")
        has_waiters = self.value == 2  # noqa: PLR2004 -- the value with waiters
        if not has_waiters or not words or words[1] > _DEPTH_MAX or not words[2]:
            return 0
        tid = self._thread_of(words[2])
        return tid if tid in self.tids else 0

    def _joined(self) -> int | None:
        """Return the id of the thread whose memory has the word; None if there is no such thread.

        If the word is the thread id, the kernel has cleared it when the thread ended.
        """
        if self.process.machine != "x86_64":  # there the word is the thread id
            return self.value & _TID
        # The page before the thread's memory may not be mapped.
        for before in (self.address - _JOIN_MAX, self.address & -_JOIN_MAX):
            begin = max(before & ~7, 8)
            data = self.process.read(begin, self.address - begin)
            words = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) & ~7])
            for n in range(len(words) - 1, -1, -1):
                at = begin + 8 * n
                if words[n] == at and (tid := self._thread_of(at)) is not None:
                    is_id = at + self.process.tid_at == self.address
                    return self.value & _TID if is_id else tid
        return None

    def _thread_of(self, pointer: int) -> int | None:
        """Return the id of the thread with a `pthread_t`; None if the memory is not of a thread."""
        if pointer <= 0:
            return None
        pointers = self.process.read(pointer, 8) + self.process.read(pointer + _SELF_AT, 8)
        if pointers != 2 * pointer.to_bytes(8, "little"):
            return None
        return int.from_bytes(self.process.read(pointer + self.process.tid_at, 4), "little")

    def rust_rwlock(self) -> Wait:
        """Return the wait for the rwlock of Rust that contains the word."""
        base = self.address - (_RUST_WRITERS if self.at.writes else 0)
        state = self._words(base, "<I")
        readers = state[0] & _RUST_READERS if state else 0
        held = 0 if readers == _RUST_READERS else readers
        return Wait("rwlock", base, readers=held, writes=self.at.writes)

    def _rwlock(self) -> Wait:
        """Return the wait for the rwlock that contains the word."""
        # A writer waits for the end of the readers' phase, or for another writer. A reader waits
        # for the end of the writers' phase, or for the readers before a writer.
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
