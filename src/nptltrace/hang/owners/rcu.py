"""The reader of liburcu that keeps a grace period from its end.

The waiting thread sleeps on a word of a global variable, which names no thread. The readers are in
lists, and the heads of the lists are on the stack of the waiting thread. The counter of a reader
tells whether its critical section began before the grace period. The thread of a reader is stored
after its list node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["GRACE", "with_grace"]

# The kind of a wait for the end of a grace period.
GRACE = "grace period"
_WORD = re.compile(r"(urcu_\w+)_gp\+0x8")
_FUTEX_AT = 8
# The part of a stack that is searched, in bytes, and the largest number of readers in a list.
_STACK, _MOST = 1 << 13, 1 << 10
# In a reader of x86-64: the counter is so far before the list node, and the thread so far after.
_COUNTER_BEFORE, _THREAD_AT = 128, 16
# In a counter: the depth of nested critical sections, and the phase of their begin.
_DEPTH, _PHASE = 0xFFFF_FFFF, 1 << 32


def with_grace(process: Target, tids: frozenset[int], seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the reader that keeps the grace period from its end.

    Args:
        process: The process.
        tids: The ids of all threads, in the process's PID namespace.
        seen: The thread.
    """
    match = _WORD.fullmatch(seen.object_name)
    if seen.wait is None or seen.wait.kind != "futex" or match is None:
        return seen
    now = process.word(seen.wait.object - _FUTEX_AT)
    old = {
        tid
        for tid, counter in _readers(process, tids, seen.thread.sp)
        if counter & _DEPTH and (counter ^ now) & _PHASE
    }
    wait = seen.wait._replace(kind=GRACE, owner=old.pop() if len(old) == 1 else 0)
    return seen._replace(wait=wait, object_name=match[1])


def _readers(process: Target, tids: frozenset[int], sp: int) -> Iterator[tuple[int, int]]:
    """Yield the thread and the counter of each reader in the lists with a node on a stack."""
    done: set[int] = {0}
    for word in {*process.words(sp, _STACK)}:
        at = word
        for _ in range(_MOST):
            if at in done or at & 7:
                break
            done.add(at)
            following, before = process.word(at), process.word(at + 8)
            # In a list, both neighbours of a node point back to the node.
            if process.word(following + 8) != at or process.word(before) != at:
                break
            tid = process.word(process.word(at + _THREAD_AT) + process.tid_at) & 0xFFFF_FFFF
            if tid in tids:
                yield tid, process.word(at - _COUNTER_BEFORE)
            at = following
