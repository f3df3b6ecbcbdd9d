"""Locks that nobody holds, though a thread sleeps until one is given back, and ended threads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["left_asleep", "stays_asleep", "with_free"]

_WORD = 4
# A thread that was woken has had a processor by then, or is no longer asleep.
_PATIENCE_S = 0.05


def with_free(process: Target, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with a note if the lock is free, or the joined thread has ended.

    Args:
        process: Whose it is.
        seen: The thread as it was seen.
    """
    wait = seen.wait
    if wait is None or not wait.word:
        return seen
    if wait.kind == "mutex" and not wait.owner and wait.object:
        is_free = process.read(wait.word, _WORD) == bytes(_WORD)
    elif wait.kind == "join" and wait.owner:
        is_free = process.read(wait.word, _WORD) != wait.owner.to_bytes(_WORD, "little")
    else:
        return seen
    return seen._replace(wait=wait._replace(free=is_free))


def left_asleep(
    threads: Sequence[ThreadPicture], look_again: Callable[[], Sequence[ThreadPicture]]
) -> list[ThreadPicture]:
    """Return the threads that sleep for mutexes that are free, and stay so.

    Whoever gives a mutex back wakes one thread, which takes it. Here nobody is on the way to it:
    each other thread sleeps all the time, or has run meanwhile.

    Args:
        threads: All threads of a process.
        look_again: Looks at them once more.
    """
    waiting = [
        seen
        for seen in threads
        if (wait := seen.wait) is not None and wait.kind == "mutex" and wait.free and wait.private
    ]
    if not waiting:
        return []
    time.sleep(_PATIENCE_S)
    later = {seen.thread.tid: seen for seen in look_again()}
    before = {seen.thread.tid: seen for seen in threads}
    if before.keys() != later.keys() or not all(
        _is_settled(before[tid], later[tid]) for tid in before
    ):
        return []
    return [
        seen
        for seen in waiting
        if seen.thread.turns == later[seen.thread.tid].thread.turns
        and seen.wait == later[seen.thread.tid].wait
    ]


def _is_settled(before: ThreadPicture, later: ThreadPicture) -> bool:
    if before.thread.turns != later.thread.turns:
        return True
    asleep = before.wait is not None and later.wait is not None
    return (asleep and later.thread.state == "S") or later.thread.has_ended


def stays_asleep(process: Target, seen: ThreadPicture) -> bool:
    """Return whether a thread has not been woken after some time.

    Args:
        process: Whose it is.
        seen: The thread.
    """
    time.sleep(_PATIENCE_S)
    later = process.thread(seen.thread.tid)
    return (
        later is not None
        and later.call == seen.thread.call is not None
        and later.turns == seen.thread.turns
    )
