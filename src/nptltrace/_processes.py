"""What the kernel says of processes in /proc."""

from __future__ import annotations

import os

__all__ = [
    "FLAGS",
    "PARENT",
    "START",
    "STATE",
    "SYSTEM",
    "THREADS",
    "USER",
    "read_kernel",
    "stat_fields",
]

# Fields of /proc/PID/stat behind the name; see proc_pid_stat(5).
STATE, PARENT, FLAGS, USER, SYSTEM, THREADS, START = 0, 1, 6, 11, 12, 17, 19
_MOST = 1 << 16


def read_kernel(path: str) -> bytes:
    """Return the first 64 KiB of a file of the kernel, empty if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _MOST)
        finally:
            os.close(file)
    except OSError:
        return b""


def stat_fields(pid: int) -> tuple[str, list[str]]:
    """Read `/proc/PID/stat`.

    Args:
        pid: The process.

    Returns:
        The name, and the fields behind the name. Both are empty if there is no such process.
    """
    text = b""
    if pid == os.getpid():
        # A processor emulator reports another start time in /proc/PID/stat of the calling process.
        text = read_kernel(f"/proc/self/task/{pid}/stat")
    text = text or read_kernel(f"/proc/{pid}/stat")
    head, _, rest = text.decode("utf-8", "replace").rpartition(")")
    fields = rest.split()
    return (head.partition("(")[2], fields) if len(fields) > START else ("", [])
