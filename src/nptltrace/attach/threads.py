"""Threads that can be stopped for a moment: asleep in a call of the program, outside of all locks.

The stopped thread will call `pthread_create()`, so it must hold no lock of the C library. So no
function of the C library, of the dynamic linker or of an allocator may have called the function
that sleeps. `Sleepers` walks the whole stack; a thread without a complete stack is left alone.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from nptltrace._binding import libpttinject
from nptltrace.hang.stack.stacks import Stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.stack.stacks import Frame
    from nptltrace.hang.targets.process import Process
    from nptltrace.hang.targets.target import Call
    from nptltrace.trace.symbols.location import Location

__all__ = ["Sleepers"]

# A relative time limit starts again when the call is restarted, so the limit must be short.
_SHORT_NS = 1_000_000_000
_C_LIBRARY = re.compile(r"libc(\.so\.6|-2\.\d+\.so)$")
_UNSAFE_MODULES = re.compile(
    r"ld-linux|ld-2\.|libjemalloc|libtcmalloc|libmimalloc|libnptltrace|/handlers/"
)
# The functions that a program calls to sleep, without leading underscores.
_SLEEPS = re.compile(
    r"accept4?|(clock_)?nanosleep|u?sleep|pause|epoll_p?wait|p?poll|p?select|read|recv(from|msg)?"
    r"|pthread_(barrier_wait|join|cond_(clock|timed)?wait)|(new_)?sem_(clock|timed)?wait(_slow\d*)?"
    r"|sigsuspend|sigwait(info)?|syscall|wait(4|id|pid)?"
)
_ALLOCATES = re.compile(
    r"(^|[_:])(malloc|calloc|realloc|free|memalign|operator new|operator delete)\b"
    r"|^(je|mi|tc)_|jemalloc|tcmalloc"
)
# Calls without a time limit, and calls that write the remaining time back: read, select,
# pause, accept, recvfrom, recvmsg, wait4, rt_sigsuspend, waitid, pselect6, ppoll, accept4.
_UNTIMED = frozenset({0, 23, 34, 43, 45, 47, 61, 130, 247, 270, 271, 288})
_FUTEX = 202
_EVENTS = frozenset({232, 281})  # epoll_wait, epoll_pwait
_FRAME_POINTER = 6
_WAIT, _WAIT_BITSET, _OPERATION = 0, 9, 127


class Sleepers:
    """Finds threads of a process that can be stopped.

    Args:
        process: The process.
        names: The names of its functions.
    """

    def __init__(self, process: Process, names: Names) -> None:
        self._process, self._names = process, names
        self._stacks = Stacks(process, names.files)

    def find(self) -> Iterator[libpttinject.Request]:
        """Return a request for each thread that can be stopped, with its registers of this moment.

        Raises:
            NativeError: The kernel does not allow us to stop the process.
        """
        threads = self._process.threads()
        # epoll_wait() last: the kernel does not restart it if this process is killed meanwhile.
        for thread in sorted(threads, key=lambda t: t.call is None or t.call.number in _EVENTS):
            call = thread.call
            if call is None or not self._is_restartable(call):
                continue
            if not self._process.takes_signals(thread.tid):
                continue
            request = libpttinject.Request(
                pid=self._process.pid, tid=thread.tid, number=call.number, pc=thread.pc,
                sp=thread.sp,
            )  # fmt: skip
            frames = self._stacks.of(thread)
            if not self._is_complete(frames) and self._caller_of_sleep(self._locations(frames)):
                # The kernel shows only a few registers of a sleeping thread.
                saved = libpttinject.registers(request)
                if saved is None:
                    continue
                request.fp = saved[_FRAME_POINTER]
                frames = self._stacks.of(thread._replace(saved=saved))
            if self._is_complete(frames) and self._is_outside_locks(self._locations(frames)):
                yield request

    def _is_complete(self, frames: Sequence[Frame]) -> bool:
        """Return whether unwind tables lead from the first to the last function of a stack."""
        return self._stacks.is_whole(frames) and all(frame.by_table for frame in frames)

    def _locations(self, frames: Sequence[Frame]) -> list[Location]:
        return [self._names.location(frame, innermost=not n) for n, frame in enumerate(frames)]

    def _is_restartable(self, call: Call) -> bool:
        """Return whether the program does not notice if the call is interrupted and restarted."""
        first, second, third, fourth = call.arguments[:4]
        checks: dict[int, Callable[[], bool]] = {
            _FUTEX: lambda: (
                second & _OPERATION == _WAIT_BITSET or (second & _OPERATION == _WAIT and not fourth)
            ),
            7: lambda: self._is_short_ms(third),  # poll
            35: lambda: self._is_short(first),  # nanosleep
            128: lambda: not third,  # rt_sigtimedwait
            230: lambda: bool(second) or self._is_short(third),  # clock_nanosleep
            232: lambda: self._is_short_ms(fourth),  # epoll_wait
            281: lambda: self._is_short_ms(fourth),  # epoll_pwait
        }
        check = checks.get(call.number)
        return check() if check is not None else call.number in _UNTIMED

    @staticmethod
    def _is_short_ms(limit: int) -> bool:
        limit &= 0xFFFF_FFFF
        return limit >= 1 << 31 or limit * 1_000_000 <= _SHORT_NS

    def _is_short(self, address: int) -> bool:
        data = self._process.read(address, 16)
        if len(data) < 16:  # noqa: PLR2004 -- struct timespec
            return False
        seconds, nanoseconds = struct.unpack("<qq", data)
        return bool(seconds * 1_000_000_000 + nanoseconds <= _SHORT_NS)

    @staticmethod
    def _caller_of_sleep(stack: Sequence[Location]) -> int:
        """Return the index of the program's function that called a function to sleep, or 0."""
        caller = next((n for n, at in enumerate(stack) if not _C_LIBRARY.match(at.module)), 0)
        if not caller:
            return 0
        name = stack[caller - 1].function.removeprefix("__GI_").lstrip("_").partition("@")[0]
        return caller if _SLEEPS.fullmatch(name.removeprefix("libc_")) else 0

    def _is_outside_locks(self, stack: Sequence[Location]) -> bool:
        """Return whether all callers of the sleeping function are the program's own code."""
        caller = self._caller_of_sleep(stack)
        # leave out the functions of the C library that started the thread
        last = len(stack)
        if last > 1 and "libc_start_main" in stack[-2].function:
            last -= 1  # _start(), where the program began
        while last and _C_LIBRARY.match(stack[last - 1].module):
            last -= 1
        return caller > 0 and not any(
            not at.module
            or _C_LIBRARY.match(at.module)
            or _UNSAFE_MODULES.search(at.module)
            or any(map(_ALLOCATES.search, (at.function, *(call.function for call in at.inlined))))
            for at in stack[caller:last]
        )
