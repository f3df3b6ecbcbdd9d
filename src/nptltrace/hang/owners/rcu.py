"""Which reader of liburcu keeps a thread from the end of a grace period of RCU.

The library sleeps on a word of a global variable that names nobody. Readers are in lists, whose
heads the thread that waits has on its stack: a reader's counter says whether it is in a section
that began before the grace period, and behind its place in the list stands which thread it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["GRACE", "with_grace"]

# The kind of such a wait.
GRACE = "grace period"
_WORD = re.compile(r"(urcu_\w+)_gp\+0x8")
_FUTEX_AT = 8
# So much of a stack is looked through, and so many readers are in a list.
_STACK, _MOST = 1 << 13, 1 << 10
# In a reader of x86-64: its counter, as far before its place in a list; behind that its thread.
_COUNTER_BEFORE, _THREAD_AT = 128, 16
# Where the C library of x86-64 keeps the id of a thread, from its `pthread_t` on.
_TID_AT = 720
# Of a counter: how deep the reader is in sections, and in which phase they began.
_DEPTH, _PHASE = 0xFFFF_FFFF, 1 << 32


def with_grace(process: Target, tids: frozenset[int], seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the reader that keeps it from the end of a grace period.

    Args:
        process: Whose it is.
        tids: The ids of all its threads, as it knows them itself.
        seen: The thread as it was seen.
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
    """Yield the thread and the counter of each reader in the lists that a stack leads to."""
    done: set[int] = {0}
    for place in {*process.words(sp, _STACK)}:
        at = place
        for _ in range(_MOST):
            if at in done or at & 7:
                break
            done.add(at)
            following, before = process.word(at), process.word(at + 8)
            # The neighbours of a place in a list have the place behind and before them.
            if process.word(following + 8) != at or process.word(before) != at:
                break
            tid = process.word(process.word(at + _THREAD_AT) + _TID_AT) & 0xFFFF_FFFF
            if tid in tids:
                yield tid, process.word(at - _COUNTER_BEFORE)
            at = following
