"""Files that are read as a whole, with a bound: another may have made a sparse one of 100 GB."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_descriptor", "read_whole"]

# No recording has written more beside its streams, and this much can be held and taken apart.
_LARGEST = 3 << 28


def read_whole(path: str | Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: It cannot be read, is too large, or is a pipe or a device, which might never come
            to an end.
    """
    # Without O_NONBLOCK this waits for a writer of a pipe.
    return read_descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), path)


def read_descriptor(fd: int, path: str | Path, begin: int = 0) -> bytes:
    """Return what an open file holds, and close it.

    Args:
        fd: The descriptor.
        path: The name for messages.
        begin: Where to begin in it.

    Raises:
        OSError: As above.
    """
    with open(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        if about.st_size - begin > _LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        if begin:
            file.seek(begin)
        return file.read()
