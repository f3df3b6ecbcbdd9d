"""Names of the streams of the C library (x86-64) whose locks threads wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_streams"]

_STANDARD = ("stdin", "stdout", "stderr")
# In a `FILE`: its descriptor, and where its lock is. One that was opened has its lock behind it.
_DESCRIPTOR_AT, _LOCK_AT, _OPENED = 0x70, 0x88, 0xE0


def with_streams(
    process: Target, names: Names, threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with the names of the streams that they wait for.

    Args:
        process: Whose they are.
        names: Names for what lies in it.
        threads: As they were seen.
    """
    return [
        seen._replace(object_name=_name(process, names, seen.wait.object) or seen.object_name)
        if seen.wait is not None and seen.wait.kind == "stream"
        else seen
        for seen in threads
    ]


def _name(process: Target, names: Names, lock: int) -> str:
    """Return the name of the stream of a lock, or the empty string."""
    for number, name in enumerate(_STANDARD):
        if names.object(lock) == f"_IO_stdfile_{number}_lock":
            return name
        variable = f"_IO_2_1_{name}_"
        files = (names.exported(module, variable).start for module in process.modules)
        if any(file and _pointer(process, file + _LOCK_AT) == lock for file in files):
            return name
    file = lock - _OPENED
    if _pointer(process, file + _LOCK_AT) != lock:
        return ""
    descriptor = process.read(file + _DESCRIPTOR_AT, 4)
    return f"of fd {int.from_bytes(descriptor, 'little', signed=True)}"


def _pointer(process: Target, address: int) -> int:
    return int.from_bytes(process.read(address, 8), "little")
