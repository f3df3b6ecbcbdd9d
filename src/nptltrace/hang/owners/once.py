"""Which thread runs the function that others wait for in `pthread_once()`, or initializes a static.

The object names nobody. Around the function glibc has a handler for cancellation on the stack, in
which a function of its own is followed by the address of the object. Rust's library has the address
in the frame that calls the function. A static variable of a function of C++ is initialized by a
thread that is in this function, and does not wait there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nptltrace.hang.routines import has_object, routine_kind
from nptltrace.trace.symbols.location import Location

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ShownFrame, ThreadPicture

__all__ = ["with_initializer", "with_runners"]

# So much of a stack is looked through.
_STACK = 1 << 16
_ONCE, _STATIC = "once", "static"
_LIBRARY = ("libc.so", "libc-", "libpthread")


def with_runners(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the owners of what they wait for in `pthread_once()`.

    Args:
        process: Whose they are.
        threads: As they were seen.
    """
    wanted = {s.wait.object for s in threads if s.wait is not None and s.wait.kind == _ONCE} - {0}
    if not wanted:
        return list(threads)
    runners = {
        address: seen.thread.inner_tid
        for seen in threads
        if _runs_one(seen)
        for address in _handled(process, seen.thread.sp, wanted)
    }
    for seen in threads:
        for part in seen.runs_once:
            words = process.words(part.start, min(len(part), _STACK))
            for address in wanted.intersection(words):
                runners[address] = seen.thread.inner_tid
    return [
        seen._replace(wait=seen.wait._replace(owner=runners.get(seen.wait.object, 0)))
        if seen.wait is not None and seen.wait.kind == _ONCE and seen.wait.object
        else seen
        for seen in threads
    ]


def with_initializer(seen: ThreadPicture, threads: Sequence[ThreadPicture]) -> ThreadPicture:
    """Return a thread with the owner of the static variable of C++ that it waits for.

    The owner is the only thread that is in the function of the variable and does not wait there.

    Args:
        seen: The thread as it was seen.
        threads: All threads.
    """
    if seen.wait is None or seen.wait.kind != _STATIC:
        return seen
    kinds = [routine_kind(frame.function) for frame in seen.frames]
    behind = kinds.index(_STATIC) + 1 if _STATIC in kinds else len(kinds)
    function = _functions(seen.frames[behind])[0] if behind < len(kinds) else ""
    tids = {
        other.thread.inner_tid
        for other in threads
        for inner, frame in pairwise(other.frames)
        if behind < len(kinds)
        and function in _functions(frame)
        and routine_kind(inner.function) != _STATIC
    }
    return seen._replace(wait=seen.wait._replace(owner=tids.pop() if len(tids) == 1 else 0))


def _functions(frame: ShownFrame) -> list[str]:
    """Return what a frame is, the innermost inlined function first."""
    inlined = frame.inlined if isinstance(frame, Location) else ()
    return [*(inner.function for inner in inlined), frame.function]


def _runs_one(seen: ThreadPicture) -> bool:
    """Return whether a thread is in such a function of glibc, and not only waits for one."""
    routines = [
        routine_kind(frame.function) if has_object(frame.function) is None else ""
        for frame in seen.frames
    ]
    begin = 0
    if seen.wait is not None and seen.wait.kind == _ONCE:
        # What it waits in may be two functions, where one calls the other. A function that is there
        # again was called by the function that runs; a tail call has ended its own frame.
        passed: set[str] = set()
        begin = next((n for n, kind in enumerate(routines) if kind == _ONCE), 0)
        while routines[begin:][:1] == [_ONCE] and seen.frames[begin].function not in passed:
            passed.add(seen.frames[begin].function)
            begin += 1
    return _ONCE in routines[begin:]


def _handled(process: Target, sp: int, wanted: Collection[int]) -> Iterator[int]:
    """Yield the objects that stand behind a place in the code of the C library on a stack.

    What runs may stand in front of the object as well, as an argument: that is no code of glibc's.
    """
    own = {m for m in process.modules if m.path.rpartition("/")[2].startswith(_LIBRARY)}
    for before, word in pairwise(process.words(sp, _STACK)):
        if word not in wanted:
            continue
        module = process.map.only(before)
        # A static program has the C library in it.
        if module is not None and (module in own or not own):
            yield word
