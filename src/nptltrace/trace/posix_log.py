"""Reads a log of a POSIX trace stream, which `<trace.h>` writes, as a trace."""

from __future__ import annotations

import atexit
import errno
import os
from pathlib import Path

from nptltrace._binding.headers import convert
from nptltrace._binding.library import Library
from nptltrace.errors import TraceFormatError

__all__ = ["as_trace", "is_log"]

_MAGIC = b"PTXXBLK1"
_STEP = 64  # blocks of a log begin at multiples of this offset
_SEARCHED = 1 << 20


def is_log(path: str | os.PathLike[str]) -> bool:
    """Return whether a file looks like a log of a POSIX trace stream, by its first MiB."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            start = file.read(_SEARCHED)
    except OSError:
        return False
    at = start.find(_MAGIC)
    while at > 0 and at % _STEP:
        at = start.find(_MAGIC, at + 1)
    return at >= 0


def as_trace(log: str | os.PathLike[str]) -> Path:
    """Convert a log to a trace directory, which is removed when this process ends.

    Args:
        log: The file of the log.

    Returns:
        The directory.

    Raises:
        TraceFormatError: The file is not a log, or cannot be read.
    """
    import shutil
    import tempfile

    parent = Path(tempfile.mkdtemp(prefix="ptt-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    directory = parent / (Path(log).name or "log")
    directory.mkdir()
    library = Library("libpttposix.so", convert.FUNCTIONS)
    status = library.ptt_posix_convert(os.fsencode(log), os.fsencode(directory))
    if status:
        what = "holds no log of a trace stream" if -status == errno.EINVAL else os.strerror(-status)
        raise TraceFormatError(Path(log), None, what)
    return directory
