"""Threads that can be stopped for a moment: asleep in a call of the program's, outside all locks.

The thread is to call pthread_create(). It must hold no lock of the C library, so it must have been
called by nothing of the C library, of the dynamic linker or of an allocator: its whole stack is
walked, and where that cannot be done the thread is left alone.
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

# A relative time limit begins anew when the call does, so the limit has to be short.
_SHORT_NS = 1_000_000_000
_C_LIBRARY = re.compile(r"libc(\.so\.6|-2\.\d+\.so)$")
_NOBODYS = re.compile(
    r"ld-linux|ld-2\.|libjemalloc|libtcmalloc|libmimalloc|libnptltrace|/handlers/"
)
# What the program calls to sleep, without leading underscores.
_SLEEPS = re.compile(
    r"accept4?|(clock_)?nanosleep|u?sleep|pause|epoll_p?wait|p?poll|p?select|read|recv(from|msg)?"
    r"|pthread_(barrier_wait|join|cond_(clock|timed)?wait)|(new_)?sem_(clock|timed)?wait(_slow\d*)?"
    r"|sigsuspend|sigwait(info)?|syscall|wait(4|id|pid)?"
)
_ALLOCATES = re.compile(
    r"(^|[_:])(malloc|calloc|realloc|free|memalign|operator new|operator delete)\b"
    r"|^(je|mi|tc)_|jemalloc|tcmalloc"
)
# Calls without a time limit, or whose rest of it the kernel writes down: read, select,
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
        names: Names for what lies in it.
    """

    def __init__(self, process: Process, names: Names) -> None:
        self._process, self._names = process, names
        self._stacks = Stacks(process, names.files)

    def find(self) -> Iterator[libpttinject.Request]:
        """Return the threads that could be stopped a moment ago, each as it was found.

        Raises:
            NativeError: The process may not be stopped.
        """
        threads = self._process.threads()
        # Waits for events last: the kernel does not begin them anew, should this process be killed.
        for thread in sorted(threads, key=lambda t: t.call is None or t.call.number in _EVENTS):
            call = thread.call
            if call is None or not self._may_begin_anew(call):
                continue
            if not self._process.takes_signals(thread.tid):
                continue
            request = libpttinject.Request(
                pid=self._process.pid, tid=thread.tid, number=call.number, pc=thread.pc,
                sp=thread.sp,
            )  # fmt: skip
            frames = self._stacks.of(thread)
            if not self._is_known(frames) and self._calls_sleep(self._seen(frames)):
                # Of a thread that sleeps the kernel says too little of its registers.
                saved = libpttinject.registers(request)
                if saved is None:
                    continue
                request.fp = saved[_FRAME_POINTER]
                frames = self._stacks.of(thread._replace(saved=saved))
            if self._is_known(frames) and self._is_outside(self._seen(frames)):
                yield request

    def _is_known(self, frames: Sequence[Frame]) -> bool:
        """Return whether tables have led from the first to the last function of a stack."""
        return self._stacks.is_whole(frames) and all(frame.by_table for frame in frames)

    def _seen(self, frames: Sequence[Frame]) -> list[Location]:
        return [self._names.location(frame, innermost=not n) for n, frame in enumerate(frames)]

    def _may_begin_anew(self, call: Call) -> bool:
        """Return whether it makes no difference that the call ends and is made again."""
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
    def _calls_sleep(seen: Sequence[Location]) -> int:
        """Return which is the program's own function that has called to sleep; 0 if none has."""
        called = next((n for n, at in enumerate(seen) if not _C_LIBRARY.match(at.module)), 0)
        if not called:
            return 0
        name = seen[called - 1].function.removeprefix("__GI_").lstrip("_").partition("@")[0]
        return called if _SLEEPS.fullmatch(name.removeprefix("libc_")) else 0

    def _is_outside(self, seen: Sequence[Location]) -> bool:
        """Return whether nothing but the program's own code has called what a thread is in."""
        called = self._calls_sleep(seen)
        # behind the program's own functions only the function that started the thread is left
        last = len(seen)
        if last > 1 and "libc_start_main" in seen[-2].function:
            last -= 1  # _start(), where the program began
        while last and _C_LIBRARY.match(seen[last - 1].module):
            last -= 1
        return called > 0 and not any(
            not at.module
            or _C_LIBRARY.match(at.module)
            or _NOBODYS.search(at.module)
            or any(map(_ALLOCATES.search, (at.function, *(call.function for call in at.inlined))))
            for at in seen[called:last]
        )
