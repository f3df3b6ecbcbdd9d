"""Reads small files of a trace as a whole; what is no file, such as a pipe, is refused."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_whole"]


def read_whole(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: It cannot be read, or is a pipe or a device, which might never come to an end.
    """
    with open(path, "rb", opener=_open) as file:
        return file.read()


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK this waits for a writer of a pipe.
    fd = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(fd).st_mode) or stat.S_ISDIR(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "is not a regular file", path)
