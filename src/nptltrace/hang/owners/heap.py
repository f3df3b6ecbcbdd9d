"""Which thread has the lock of the heap that a signal handler waits for: the one it interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.hang.routines import plain_name
from nptltrace.hang.stack.shown import SignalFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_heaps"]

# Functions of the C library that are called with the lock in hand.
_LOCKED = frozenset({"int_malloc", "int_memalign", "int_realloc", "sysmalloc"})
# So many functions of the heap call one another.
_INNERMOST = 3


def with_heaps(threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the owners of the heap's locks that they wait for in handlers.

    Args:
        threads: As they were seen.
    """
    return [
        seen._replace(wait=seen.wait._replace(owner=seen.thread.inner_tid))
        if seen.wait is not None and seen.wait.kind == "malloc lock" and _interrupted(seen)
        else seen
        for seen in threads
    ]


def _interrupted(seen: ThreadPicture) -> bool:
    """Return whether the handler that a thread is in has interrupted it with the lock in hand."""
    signals = [n for n, frame in enumerate(seen.frames) if isinstance(frame, SignalFrame)]
    behind = seen.frames[signals[0] + 1 :][:_INNERMOST] if signals else ()
    return any(plain_name(frame.function) in _LOCKED for frame in behind)
