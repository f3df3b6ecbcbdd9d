"""libptttasks: states of threads from the kernel, and rows of unwind tables.

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
# Bytes of memory that are read for each thread: of its stack, around its futex, before its futex.
MEMORY = c.PTT_TASK_MEMORY
STACK = c.PTT_TASK_STACK
AROUND_FUTEX = MEMORY - STACK
BEFORE_FUTEX = c.PTT_TASK_BEFORE
_SIZE = ctypes.sizeof(c.Task)
# The third member, at the second word, counts how often the thread got a processor.
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
    """Return the states of threads of a process, and `MEMORY` bytes of memory for each thread.

    Args:
        pid: The process.
        tids: The threads, at least one.
        is_inside: The process is in another PID namespace.
        meanwhile: Called while other processors read.

    Returns:
        The fields of `struct ptt_task` for each thread, and the memory.
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
    """Return how often each thread of a process got a processor; -1 for a thread that is gone.

    Args:
        pid: The process.
        tids: The threads, at least one.
    """
    tasks, pointer = _tasks(tids)
    _lib().ptt_tasks_turns(pid, pointer, len(tids))
    return memoryview(tasks).cast("q").tolist()[1 :: _SIZE // 8]


def callers_at(
    image: bytes, *, address: int, header: int, frames: int, processor: int, pc: int
) -> u.UnwindCallers | None:
    """Return where the registers of the caller are, from an unwind table; None if it has no row.

    Args:
        image: A copy of `.eh_frame_hdr` and `.eh_frame` (DWARF call frame information), with the
            same distance between them as in the module.
        address: Address of the copy in the module.
        header: Offset of `.eh_frame_hdr` in the copy; the size of the copy if there is none.
        frames: Offset of `.eh_frame` in the copy.
        processor: `PTT_UNWIND_X86_64` or `PTT_UNWIND_AARCH64`.
        pc: The program counter, as an address of the module.
    """
    callers = u.UnwindCallers()
    has_row = _lib().ptt_unwind_image_callers(
        image, len(image), address, header, frames, processor, pc, ctypes.byref(callers)
    )
    return callers if has_row else None
