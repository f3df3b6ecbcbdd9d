"""PTT, the POSIX Threads Trace Toolkit: record, read and analyse traces of multithreaded programs.

Importing the package costs next to nothing; each public name is loaded when it is first used.
"""

from __future__ import annotations

from nptltrace._version import __date__, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nptltrace.api import Traceset
    from nptltrace.api import open_traceset as open  # noqa: A004 -- as in gzip.open
    from nptltrace.errors import (
        NativeError,
        NativeFilesMissing,
        PttError,
        TraceFormatError,
        UsageError,
    )
    from nptltrace.here import record_here
    from nptltrace.recording.api import record
    from nptltrace.trace.reading.cursor import Position
    from nptltrace.user import is_traced, user_event

__all__ = [
    "NativeError",
    "NativeFilesMissing",
    "Position",
    "PttError",
    "TraceFormatError",
    "Traceset",
    "UsageError",
    "__date__",
    "__version__",
    "is_traced",
    "open",
    "record",
    "record_here",
    "user_event",
]

# Public name -> "module", or "module:name" if the module has another name for it.
_HOME = {
    "NativeError": "nptltrace.errors",
    "NativeFilesMissing": "nptltrace.errors",
    "Position": "nptltrace.trace.reading.cursor",
    "PttError": "nptltrace.errors",
    "TraceFormatError": "nptltrace.errors",
    "Traceset": "nptltrace.api",
    "UsageError": "nptltrace.errors",
    "is_traced": "nptltrace.user",
    "load_ipython_extension": "nptltrace.magic",
    "open": "nptltrace.api:open_traceset",
    "record": "nptltrace.recording.api",
    "record_here": "nptltrace.here",
    "user_event": "nptltrace.user",
}


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, theirs = home.partition(":")
    value = getattr(import_module(module), theirs or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)
