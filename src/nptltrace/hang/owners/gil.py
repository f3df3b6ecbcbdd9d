"""Which thread of CPython has the lock of the interpreter (GIL) that others wait for.

A thread that wants the lock waits for a condition with a time limit, only to ask the holder for it
again. Before the condition stand the state of the thread that took the lock last, and whether it
is taken.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["GIL", "with_gils"]

# The kind of such a wait.
GIL = "gil"
# Before the condition, the same in CPython 3.8 to 3.14: the time limit in microseconds, the last
# holder, whether the lock is taken, and how often it changed hands.
_BEFORE = struct.Struct("<QQi4xQ")
# Where in a condition of the C library its waiters sleep.
_SLEEP_AT = (40, 44, 32, 36)


def with_gils(
    process: Target, states: Mapping[int, int], threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with the holders of the interpreter's lock that they wait for.

    Args:
        process: Whose they are.
        states: Threads of CPython by where their states are.
        threads: As they were seen.
    """
    return [_with_gil(process, states, seen) for seen in threads] if states else list(threads)


def _with_gil(process: Target, states: Mapping[int, int], seen: ThreadPicture) -> ThreadPicture:
    wait = seen.wait
    if wait is None or wait.kind != "condition" or not wait.timed:
        return seen
    # Where in a condition its waiters sleep depends on the C library; what stands before the
    # right one shows which it is.
    for condition in (wait.object, *(wait.word - offset for offset in _SLEEP_AT)):
        lock = condition - _BEFORE.size
        data = process.read(lock, _BEFORE.size)
        if len(data) == _BEFORE.size:
            limit, holder, taken, _ = _BEFORE.unpack(data)
            if limit and taken in {0, 1} and holder in states:
                break
    else:
        return seen
    # One that waits does not have the lock: it was given to it since.
    owner = states[holder] if taken and states[holder] != seen.thread.inner_tid else 0
    found = wait._replace(kind=GIL, object=lock, owner=owner, timed=False, repeated=True)
    return seen._replace(wait=found, object_name="GIL")
