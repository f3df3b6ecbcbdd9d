"""The mutexes that threads of Ruby (3.0 to 3.4) wait for, and their owners. Monitors have a mutex.

A waiting thread sleeps on a condition of its own, or polls, which does not name the mutex. But it
has put a structure on its stack and linked it into the mutex's list of waiters: the mutex, the
thread of Ruby, its fiber, and the links. The mutex refers to the fiber that owns it, and a fiber
refers to its stack. The owner is the thread on this stack.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_ruby_mutexes"]

_RUBY = ("libruby", "ruby")
# The part of a stack that is searched, in bytes, and the structure of a waiter: the mutex, thread
# and fiber, then the links.
_STACK = 1 << 13
_WAITER = struct.Struct("<5Q")
# An object with data of a type: flags and class, the type, 1, the address of the data.
_OBJECT = struct.Struct("<16xQQQ")
# A mutex: the fiber that owns it, the next mutex of the fiber, the list of waiters.
_MUTEX = struct.Struct("<Q8x2Q")
_LIST_AT = 16
# A fiber has, somewhere in its first bytes, the begin, end and size of its stack.
_FIBER = 0x400
_STACK_OF_FIBER = struct.Struct("<3Q")
_PAGE, _LONGEST = 1 << 12, 1 << 32


def with_ruby_mutexes(process: Target, threads: Sequence[ThreadPicture]) -> list[ThreadPicture]:
    """Return the threads with the mutexes of Ruby that they wait for.

    Args:
        process: The process.
        threads: All threads of the process.
    """
    names = {module.path.rpartition("/")[2] for module in process.modules}
    if not any(name.startswith(_RUBY) for name in names):
        return list(threads)
    return [_with_mutex(process, seen, threads) for seen in threads]


def _with_mutex(
    process: Target, seen: ThreadPicture, threads: Sequence[ThreadPicture]
) -> ThreadPicture:
    wait = seen.wait
    if wait is None or wait.kind not in {"condition", "call"} or not seen.thread.sp:
        return seen
    mutex, at, fiber = _wanted(process, seen.thread.sp)
    if not mutex:
        return seen
    owner = _on_stack_of(process, fiber, threads)
    # The time limit is Ruby's: it checks the mutex and waits again.
    wait = wait._replace(kind="lock", object=at, owner=owner, timed=False, repeated=True, call="")
    return seen._replace(wait=wait, object_name=f"Mutex@{mutex:#x}", limit=None, peers=None)


def _wanted(process: Target, sp: int) -> tuple[int, int, int]:
    """Return the mutex that a thread waits for, the address of its data, and the owning fiber."""
    sp &= ~7
    stack = process.read(sp, _STACK)
    for at in range(0, len(stack) - _WAITER.size + 1, 8):
        mutex, thread, fiber, after, before = _WAITER.unpack_from(stack, at)
        if not all(word and not word & 7 for word in (mutex, thread, fiber, after, before)):
            continue
        node = sp + at + 24
        if process.word(before) != node or process.word(after + 8) != node:
            continue
        data = _data_of(process, mutex)
        holder, first, _ = _MUTEX.unpack(process.read(data, _MUTEX.size)) if data else (0, 0, 0)
        if holder and first and _is_in_list(process, data + _LIST_AT, node):
            return mutex, data, holder
    return 0, 0, 0


def _data_of(process: Target, mutex: int) -> int:
    """Return the address of the data of a mutex; 0 for another object."""
    raw = process.read(mutex, _OBJECT.size)
    kind, flag, data = _OBJECT.unpack(raw) if len(raw) == _OBJECT.size else (0, 0, 0)
    if flag != 1 or not data or data & 7:
        return 0
    # A core file has no constants: then only the links are checked.
    if process.read(process.word(kind), 6) not in {b"mutex\0", b""}:
        return 0
    return int(data) if len(process.read(data, _MUTEX.size)) == _MUTEX.size else 0


def _is_in_list(process: Target, head: int, node: int) -> bool:
    at = process.word(head)
    for _ in range(_PAGE):
        if at in {0, head, node}:
            break
        at = process.word(at)
    return at == node


def _on_stack_of(process: Target, fiber: int, threads: Sequence[ThreadPicture]) -> int:
    """Return the thread on the stack of a fiber, 0 if no sleeping thread is on this stack."""
    data = process.read(fiber, _FIBER)
    for at in range(0, len(data) - _STACK_OF_FIBER.size + 1, 8):
        begin, end, size = _STACK_OF_FIBER.unpack_from(data, at)
        if not _PAGE < size < _LONGEST or not 0 <= begin - end < size:
            continue
        for seen in threads:
            if begin - size <= seen.thread.sp < begin:
                return seen.thread.inner_tid
    return 0
