"""Logs of POSIX trace streams: what `<trace.h>` writes, read as a trace."""

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
_STEP = 64  # blocks of a log begin at multiples of it, from the beginning of the file on
_SEARCHED = 1 << 20


def is_log(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a log of a POSIX trace stream, as far as its first part says."""
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
    """Convert a log, and return the directory of the trace, which goes when this process ends.

    Args:
        log: The log's file.

    Raises:
        TraceFormatError: It holds no log, or cannot be read.
    """
    import shutil
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="ptt-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    directory = place / (Path(log).name or "log")
    directory.mkdir()
    library = Library("libpttposix.so", convert.FUNCTIONS)
    status = library.ptt_posix_convert(os.fsencode(log), os.fsencode(directory))
    if status:
        what = "holds no log of a trace stream" if -status == errno.EINVAL else os.strerror(-status)
        raise TraceFormatError(Path(log), None, what)
    return directory
