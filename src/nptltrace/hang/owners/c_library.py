"""Locks of the C library: which stream (x86-64) they are of, and locks that a handler waits for.

A signal handler waits for ever for a lock that the function has which it interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.hang.routines import is_plumbing, plain_name
from nptltrace.hang.stack.shown_frames import SignalFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_interrupted", "with_stream"]

_STANDARD = ("stdin", "stdout", "stderr")
# In a `FILE`: its descriptor, and where its lock is. An opened `FILE` has its lock behind it.
_DESCRIPTOR_AT, _LOCK_AT, _OPENED = 0x70, 0x88, 0xE0

# Functions of the C library that are called with the heap's lock in hand.
_LOCKED = frozenset({"int_malloc", "int_memalign", "int_realloc", "sysmalloc"})
# So many functions of the heap call one another.
_INNERMOST = 3


def with_stream(process: Target, names: Names, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the name of the stream that it waits for.

    Args:
        process: Whose it is.
        names: Names for what lies in it.
        seen: The thread as it was seen.
    """
    if seen.wait is None or seen.wait.kind != "stream":
        return seen
    name = _stream(process, names, seen.wait.object)
    return seen._replace(object_name=name) if name else seen


def _stream(process: Target, names: Names, lock: int) -> str:
    """Return the name of the stream of a lock, or the empty string."""
    for number, name in enumerate(_STANDARD):
        if names.object(lock) == f"_IO_stdfile_{number}_lock":
            return name
        variable = f"_IO_2_1_{name}_"
        files = (names.exported(module, variable).start for module in process.modules)
        if any(file and process.word(file + _LOCK_AT) == lock for file in files):
            return name
    file = lock - _OPENED
    if process.word(file + _LOCK_AT) != lock:
        return ""
    descriptor = process.read(file + _DESCRIPTOR_AT, 4)
    return f"of fd {int.from_bytes(descriptor, 'little', signed=True)}"


def with_interrupted(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the owners of the C library's locks that they wait for in handlers.

    Args:
        process: Whose they are.
        threads: As they were seen.
    """
    # A fork may have left a lock behind.
    is_single = sum(not seen.thread.has_ended for seen in threads) == 1
    alone = is_single and process.forked_from()[1] <= 1
    return [
        seen._replace(wait=seen.wait._replace(owner=seen.thread.inner_tid))
        if seen.wait is not None and _has_it(seen, seen.wait.kind, alone=alone)
        else seen
        for seen in threads
    ]


def _has_it(seen: ThreadPicture, kind: str, *, alone: bool) -> bool:
    """Return whether a thread has the lock that it waits for in a handler.

    The heap's functions show it. Of another lock, the thread must be the only one, and have been
    interrupted in the function that wants the lock again.
    """
    signals = [n for n, frame in enumerate(seen.frames) if isinstance(frame, SignalFrame)]
    if not signals:
        return False
    inner, behind = seen.frames[: signals[0]], seen.frames[signals[0] + 1 :]
    if kind == "malloc lock":
        return any(plain_name(frame.function) in _LOCKED for frame in behind[:_INNERMOST])
    if kind != "C library lock" or not alone:
        return False
    wants = next((frame for frame in inner if not is_plumbing(frame.function)), None)
    if wants is None or not wants.function:
        return False
    return any((f.function, f.module) == (wants.function, wants.module) for f in behind)
