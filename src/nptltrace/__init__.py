"""PTT, the POSIX Threads Trace Toolkit: record, read and analyse traces of multithreaded programs.

Importing the package costs next to nothing; each public name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nptltrace.errors import (
        NativeError,
        NativeFilesMissing,
        PttError,
        TraceFormatError,
        UsageError,
    )

__all__ = [
    "NativeError",
    "NativeFilesMissing",
    "PttError",
    "TraceFormatError",
    "UsageError",
    "__version__",
]

__version__ = "0.1.0"

# Public name -> module that defines it.
_HOME = {
    "NativeError": "nptltrace.errors",
    "NativeFilesMissing": "nptltrace.errors",
    "PttError": "nptltrace.errors",
    "TraceFormatError": "nptltrace.errors",
    "UsageError": "nptltrace.errors",
}


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the package, those not yet loaded included."""
    return sorted({*globals(), *__all__})
