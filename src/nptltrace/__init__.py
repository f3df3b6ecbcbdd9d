"""PTT, the POSIX Threads Trace Toolkit: record, read and analyse traces of multithreaded programs.

Importing the package costs next to nothing; each public name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nptltrace.api import Traceset
    from nptltrace.api import open_traceset as open  # noqa: A004 -- as in gzip.open
    from nptltrace.errors import (
        NativeError,
        NativeFilesMissing,
        PttError,
        TraceFormatError,
        UsageError,
    )
    from nptltrace.record.api import record
    from nptltrace.trace.traceset import Position
    from nptltrace.user import user_event

__all__ = [
    "NativeError",
    "NativeFilesMissing",
    "Position",
    "PttError",
    "TraceFormatError",
    "Traceset",
    "UsageError",
    "__version__",
    "open",
    "record",
    "user_event",
]

__version__ = "0.1.0"

# Public name -> module that defines it, and its name there where that is another.
_HOME = {
    "NativeError": "nptltrace.errors",
    "NativeFilesMissing": "nptltrace.errors",
    "Position": "nptltrace.trace.traceset",
    "PttError": "nptltrace.errors",
    "TraceFormatError": "nptltrace.errors",
    "Traceset": "nptltrace.api",
    "UsageError": "nptltrace.errors",
    "open": "nptltrace.api:open_traceset",
    "record": "nptltrace.record",
    "user_event": "nptltrace.user",
}


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "record":  # a package that can be called
        return import_module(home)
    module, _, theirs = home.partition(":")
    value = getattr(import_module(module), theirs or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the package, those not yet loaded included."""
    return sorted({*globals(), *__all__})
