"""libptttasks: what the kernel says of threads, and rows of unwind tables.

See `tasks.h` and `unwind_image.h`.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers import tasks as c
from nptltrace._binding.headers import unwind_image as u
from nptltrace._binding.library import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = ["AROUND_FUTEX", "BEFORE_FUTEX", "GONE", "MEMORY", "STACK", "callers_at", "read", "turns"]

GONE = c.PTT_TASK_GONE
# So much memory is read of each: of its stack, and around its futex, of which so much is before it.
MEMORY = c.PTT_TASK_MEMORY
STACK = c.PTT_TASK_STACK
AROUND_FUTEX = MEMORY - STACK
BEFORE_FUTEX = c.PTT_TASK_BEFORE
_SIZE = ctypes.sizeof(c.Task)
# The third member, at the second word, is how often a thread has had a processor.
_LAYOUT = struct.Struct("=iiqq6QQQ24scBB5x")


@cache
def _lib() -> Library:
    return Library("libptttasks.so", c.FUNCTIONS | u.FUNCTIONS, ("ptt_tasks_abi", c.PTT_TASKS_ABI))


def _tasks(tids: Sequence[int]) -> tuple[bytearray, ctypes.Array[ctypes.c_char]]:
    tasks = bytearray(_SIZE * len(tids))
    memoryview(tasks).cast("i")[:: _SIZE // 4] = memoryview(array("i", tids))
    return tasks, (ctypes.c_char * len(tasks)).from_buffer(tasks)


def read(
    pid: int, tids: Sequence[int], *, is_inside: bool, meanwhile: Callable[[], None]
) -> tuple[Iterator[tuple[Any, ...]], bytes]:
    """Return threads of a process, as `struct ptt_task` has them, and `MEMORY` bytes for each.

    Args:
        pid: The process.
        tids: Its threads, one at least.
        is_inside: It is in a PID namespace of its own.
        meanwhile: What is done while other processors read.
    """
    tasks, pointer = _tasks(tids)
    memory = bytearray(MEMORY * len(tids))
    room = (ctypes.c_char * len(memory)).from_buffer(memory)
    reading = _lib().ptt_tasks_begin(pid, pointer, room, len(tids), is_inside)
    try:
        meanwhile()
    finally:
        _lib().ptt_tasks_end(reading)
    return _LAYOUT.iter_unpack(tasks), bytes(memory)


def turns(pid: int, tids: Sequence[int]) -> list[int]:
    """Return how often threads of a process have had a processor; -1 of one that is gone.

    Args:
        pid: The process.
        tids: The threads, one at least.
    """
    tasks, pointer = _tasks(tids)
    _lib().ptt_tasks_turns(pid, pointer, len(tids))
    return memoryview(tasks).cast("q").tolist()[1 :: _SIZE // 8]


def callers_at(
    image: bytes, *, address: int, header: int, frames: int, processor: int, pc: int
) -> u.UnwindCallers | None:
    """Return where the registers of a caller are, as an unwind table says; None if it does not.

    Args:
        image: A copy of `.eh_frame_hdr` and `.eh_frame`, as far from each other as in the module.
        address: Where the copy lies in the module.
        header: Where `.eh_frame_hdr` lies in the copy; the size of the copy if there is none.
        frames: Where `.eh_frame` lies in the copy.
        processor: `PTT_UNWIND_X86_64` or `PTT_UNWIND_AARCH64`.
        pc: The place, as the module counts addresses.
    """
    callers = u.UnwindCallers()
    known = _lib().ptt_unwind_image_callers(
        image, len(image), address, header, frames, processor, pc, ctypes.byref(callers)
    )
    return callers if known else None
