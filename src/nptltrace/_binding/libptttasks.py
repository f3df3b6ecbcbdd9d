"""libptttasks, which reads what the kernel says of threads; see `tasks.h`."""

from __future__ import annotations

import ctypes
import struct
from array import array
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers import tasks as c
from nptltrace._binding.library import Library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["GONE", "read", "turns"]

GONE = c.PTT_TASK_GONE
_SIZE = ctypes.sizeof(c.Task)
# The third member, at the second word, is how often a thread has had a processor.
_LAYOUT = struct.Struct("=iiqq6QQQ24sc7x")


@cache
def _lib() -> Library:
    return Library("libptttasks.so", c.FUNCTIONS, ("ptt_tasks_abi", c.PTT_TASKS_ABI))


def _tasks(tids: Sequence[int]) -> tuple[bytearray, ctypes.Array[ctypes.c_char]]:
    tasks = bytearray(_SIZE * len(tids))
    memoryview(tasks).cast("i")[:: _SIZE // 4] = memoryview(array("i", tids))
    return tasks, (ctypes.c_char * len(tasks)).from_buffer(tasks)


def read(pid: int, tids: Sequence[int], *, is_inside: bool) -> Iterator[tuple[Any, ...]]:
    """Yield threads of a process, as `struct ptt_task` has them: thousands.

    Args:
        pid: The process.
        tids: Its threads, one at least.
        is_inside: It is in a PID namespace of its own.
    """
    tasks, pointer = _tasks(tids)
    _lib().ptt_tasks_read(pid, pointer, len(tids), is_inside)
    return _LAYOUT.iter_unpack(tasks)


def turns(pid: int, tids: Sequence[int]) -> list[int]:
    """Return how often threads of a process have had a processor; -1 of one that is gone.

    Args:
        pid: The process.
        tids: The threads, one at least.
    """
    tasks, pointer = _tasks(tids)
    _lib().ptt_tasks_turns(pid, pointer, len(tids))
    return memoryview(tasks).cast("q").tolist()[1 :: _SIZE // 8]
