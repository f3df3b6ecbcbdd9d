"""Sleeping threads with a free lock or an ended joined thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["left_asleep", "stays_asleep", "with_free"]

_WORD, _VALUE = 4, 2
# After this time, a woken thread has had a processor or is no longer asleep.
_PATIENCE_S = 0.05


def with_free(process: Target, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with a mark if its lock is free or the thread that it joins has ended.

    Args:
        process: The process.
        seen: The thread.
    """
    wait = seen.wait
    if wait is None or not wait.word:
        return seen
    if wait.kind == "mutex" and not wait.owner and wait.object:
        is_free = process.read(wait.word, _WORD) == bytes(_WORD)
    elif wait.kind == "join" and seen.thread.call is not None:
        # The word changes when the thread ends. It is the id of the thread, or a state of it.
        expected = (seen.thread.call.arguments[_VALUE] & 0xFFFF_FFFF).to_bytes(_WORD, "little")
        is_free = process.read(wait.word, _WORD) != expected
    else:
        return seen
    return seen._replace(wait=wait._replace(free=is_free))


def left_asleep(
    threads: Sequence[ThreadPicture], look_again: Callable[[], Sequence[ThreadPicture]]
) -> list[ThreadPicture]:
    """Return the threads that keep sleeping for free mutexes.

    The release of a mutex wakes one thread, which takes the mutex. Here no thread is about to take
    the mutex: each other thread slept all the time, or has run meanwhile.

    Args:
        threads: All threads of a process.
        look_again: Returns new pictures of the threads.
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
    if before.keys() != later.keys():
        return []
    if not all(_has_run_or_sleeps(before[tid], later[tid]) for tid in before):
        return []
    return [
        seen
        for seen in waiting
        if seen.thread.turns == later[seen.thread.tid].thread.turns
        and seen.wait == later[seen.thread.tid].wait
    ]


def _has_run_or_sleeps(before: ThreadPicture, later: ThreadPicture) -> bool:
    if before.thread.turns != later.thread.turns:
        return True
    asleep = before.wait is not None and later.wait is not None
    return (asleep and later.thread.state == "S") or later.thread.has_ended


def stays_asleep(process: Target, seen: ThreadPicture) -> bool:
    """Return whether a thread still sleeps in the same call after some time.

    Args:
        process: The process.
        seen: The thread.
    """
    time.sleep(_PATIENCE_S)
    later = process.thread(seen.thread.tid)
    return (
        later is not None
        and later.call == seen.thread.call is not None
        and later.turns == seen.thread.turns
    )
