"""Writes traces in other people's formats: one module a format, found by its name.

A format is a module of this package whose name does not start with an underscore. It has

* `SUMMARY`: one line, which goes on after "the format is";
* `write(traceset, out, **options)`: writes what `options` choose to a `Target`, and returns what
  it wrote in a few words, for the user to read. Every format takes the options `symbols` (a
  `Symbols`, names addresses) and `window` (a `Window`, the part to write);
* `OPTIONS`, where it takes others: their names.

Modules import nothing heavy at their top, so that listing the formats costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, cast

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from nptltrace.export._target import Target
    from nptltrace.trace.traceset import Traceset

__all__ = ["Format", "format_names", "load_format"]


class Format(Protocol):
    """What the module of a format offers."""

    SUMMARY: str

    def write(self, traceset: Traceset, out: Target, **options: Any) -> str:
        """Write a traceset and return what was written, in a few words."""


def format_names() -> list[str]:
    """Return the names of all formats."""
    return sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def load_format(name: str) -> Format:
    """Import the module of a format.

    Args:
        name: As in `ptt export --to NAME`.

    Raises:
        UsageError: There is no such format.
    """
    names = format_names()
    if name not in names:
        raise UsageError(f"no format {name!r}: there are {', '.join(names)}")
    return cast("Format", import_module(f"{__name__}.{name}"))
