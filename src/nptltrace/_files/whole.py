"""Files that are read as a whole, with a bound: another may have made a sparse one of 100 GB."""

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

# No recording has written more beside its streams, and this much can be held and taken apart.
_LARGEST = 3 << 28


def read_whole(
    path: str | Path, begin: int = 0, *, most: int = _LARGEST, follow: bool = True
) -> bytes:
    """Return what a file holds.

    Args:
        path: The file.
        begin: Where to begin in it.
        most: More bytes than this are too many.
        follow: Whether it may be a link.

    Raises:
        OSError: It cannot be read, is too large, or is a pipe or a device, which might never come
            to an end.
    """
    # Without O_NONBLOCK this waits for a writer of a pipe.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    return read_descriptor(os.open(path, flags), path, begin, most)


def read_descriptor(fd: int, path: str | Path, begin: int = 0, most: int = _LARGEST) -> bytes:
    """Return what an open file holds, and close it.

    Args:
        fd: The descriptor.
        path: The name for messages.
        begin: Where to begin in it.
        most: More bytes than this are too many.

    Raises:
        OSError: As above.
    """
    about = os.fstat(fd)
    # open() would leave the descriptor of a directory open.
    if not stat.S_ISREG(about.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with open(fd, "rb") as file:
        if about.st_size - begin > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        if begin:
            file.seek(begin)
        return file.read()


def json_of(data: bytes) -> Any:
    """Return what JSON means in which names and arguments are bytes, UTF-8 or not.

    Raises:
        ValueError: It is no JSON, or values lie in one another deeper than any recording has them.
    """
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("too deep") from None
