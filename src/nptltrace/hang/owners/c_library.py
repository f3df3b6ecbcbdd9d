"""Locks of the C library: the streams of their locks (x86-64), and locks wanted in signal handlers.

A signal handler waits for ever for a lock that the interrupted function holds.
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
# Offsets in a `FILE`: its descriptor, and the pointer to its lock. The lock of an opened `FILE`
# comes at this distance from its begin.
_DESCRIPTOR_AT, _LOCK_AT, _OPENED = 0x70, 0x88, 0xE0

# Functions of the C library that run with the lock of the heap.
_LOCKED = frozenset({
    "int_malloc", "int_memalign", "int_realloc", "sysmalloc", "int_free_merge_chunk",
    "int_free_create_chunk", "int_free_maybe_trim",
})  # fmt: skip
# The depth of calls among functions of the heap.
_INNERMOST = 3


def with_stream(process: Target, names: Names, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the name of the stream that it waits for.

    Args:
        process: The process.
        names: The names in the process.
        seen: The thread.
    """
    if seen.wait is None or seen.wait.kind != "stream":
        return seen
    name = _stream(process, names, seen.wait.object)
    return seen._replace(object_name=name) if name else seen


def _stream(process: Target, names: Names, lock: int) -> str:
    """Return the name of the stream with a lock, or the empty string."""
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
    """Return the threads with themselves as owners of C library locks that they want in handlers.

    Args:
        process: The process.
        threads: All threads of the process.
    """
    # A fork may have copied a lock that another thread of the parent held.
    is_single = sum(not seen.thread.has_ended for seen in threads) == 1
    alone = is_single and process.forked_from()[1] <= 1
    return [
        seen._replace(wait=seen.wait._replace(owner=seen.thread.inner_tid))
        if seen.wait is not None and _holds_lock(seen, seen.wait.kind, alone=alone)
        else seen
        for seen in threads
    ]


def _holds_lock(seen: ThreadPicture, kind: str, *, alone: bool) -> bool:
    """Return whether a thread itself holds the lock that it wants in a handler.

    For the lock of the heap, the interrupted functions show it. For another lock, the thread must
    be alone in the process, and the interrupted function must be the function that wants the lock
    again.
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
