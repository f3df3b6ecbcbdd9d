"""The threads that run the function of `pthread_once()`, or that initialize a static variable.

The object does not name the thread. glibc puts a cancellation handler on the stack around the
function. In the handler, the address of a function of glibc comes before the address of the object.
Rust's library has the address in the frame that calls the function. The thread that initializes a
static variable of a C++ function is in this function and does not wait there.
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

# The part of a stack that is searched, in bytes.
_STACK = 1 << 16
_ONCE, _STATIC = "once", "static"
_LIBRARY = ("libc.so", "libc-", "libpthread")


def with_runners(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the owners of the once controls that they wait for.

    Args:
        process: The process.
        threads: All threads of the process.
    """
    wanted = {s.wait.object for s in threads if s.wait is not None and s.wait.kind == _ONCE} - {0}
    if not wanted:
        return list(threads)
    runners = {
        address: seen.thread.inner_tid
        for seen in threads
        if _runs_function(seen)
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
        seen: The thread.
        threads: All threads of the process.
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
    """Return the functions of a frame, the innermost inlined function first."""
    inlined = frame.inlined if isinstance(frame, Location) else ()
    return [*(inner.function for inner in inlined), frame.function]


def _runs_function(seen: ThreadPicture) -> bool:
    """Return whether glibc runs a function for a once control in a thread."""
    routines = [
        routine_kind(frame.function) if has_object(frame.function) is None else ""
        for frame in seen.frames
    ]
    begin = 0
    if seen.wait is not None and seen.wait.kind == _ONCE:
        # Skip the functions that the thread waits in: up to two, as one calls the other. If a
        # function comes again, the running function has called it: a tail call leaves no frame.
        passed: set[str] = set()
        begin = next((n for n, kind in enumerate(routines) if kind == _ONCE), 0)
        while routines[begin:][:1] == [_ONCE] and seen.frames[begin].function not in passed:
            passed.add(seen.frames[begin].function)
            begin += 1
    return _ONCE in routines[begin:]


def _handled(process: Target, sp: int, wanted: Collection[int]) -> Iterator[int]:
    """Yield the objects that come after an address of the C library's code on a stack.

    Elsewhere the function of the program may come before the object, as an argument.
    """
    libraries = {m for m in process.modules if m.path.rpartition("/")[2].startswith(_LIBRARY)}
    for before, word in pairwise(process.words(sp, _STACK)):
        if word not in wanted:
            continue
        module = process.map.only(before)
        # A static program contains the C library.
        if module is not None and (module in libraries or not libraries):
            yield word
