"""Reads whole files, up to a limit: another user may have made a sparse file of 100 GB."""

from __future__ import annotations

import errno
import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

__all__ = ["json_of", "read_descriptor", "read_whole"]

# Files beside the streams are smaller in all recordings, and so much fits in memory.
_LARGEST = 3 << 28


def read_whole(
    path: str | Path, begin: int = 0, *, most: int = _LARGEST, follow: bool = True
) -> bytes:
    """Return the contents of a file.

    Args:
        path: The file.
        begin: The offset to begin at, in bytes.
        most: The limit, in bytes.
        follow: Whether the file may be a symbolic link.

    Raises:
        OSError: The file cannot be read, exceeds the limit, or is not a regular file. A pipe or a
            device may have no end.
    """
    # Without O_NONBLOCK, open() waits for a writer of a pipe.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    return read_descriptor(os.open(path, flags), path, begin, most)


def read_descriptor(fd: int, path: str | Path, begin: int = 0, most: int = _LARGEST) -> bytes:
    """Return the contents of an open file, and close the descriptor.

    Args:
        fd: The descriptor.
        path: The path for messages.
        begin: The offset to begin at, in bytes.
        most: The limit, in bytes.

    Raises:
        OSError: As `read_whole`.
    """
    status = os.fstat(fd)
    # open() below does not close the descriptor if it is a directory.
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with open(fd, "rb") as file:
        if status.st_size - begin > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        if begin:
            file.seek(begin)
        return file.read()


def json_of(data: bytes) -> Any:
    """Return the value of JSON. Bytes that are not UTF-8 become surrogates, as in file names.

    Raises:
        ValueError: The data is not JSON, or its values are nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
