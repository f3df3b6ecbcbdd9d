"""What `nptltrace.open()` returns: a traceset that also answers what analysis knows of it.

The reader of traces knows nothing of analysis; the two meet here, and analysis is imported when it
is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.trace.traceset import Traceset as Reader

if TYPE_CHECKING:
    import os

__all__ = ["Traceset", "open_traceset"]


class Traceset(Reader):
    """Traces opened for reading and for questions; see `nptltrace.open`."""


def open_traceset(*paths: str | os.PathLike[str]) -> Traceset:
    """Open traces for reading as one traceset.

    Args:
        paths: Trace directories.

    Raises:
        TraceFormatError: One of them is not a trace.
        UsageError: They cannot be read as one.

    Example:
        >>> import nptltrace
        >>> ts = nptltrace.open("run.ptt")      # doctest: +SKIP
        >>> ts.seek_time(1_000_000)             # doctest: +SKIP
        >>> ts.middle_time(max_events=50)       # doctest: +SKIP
    """
    return Traceset(*paths)
