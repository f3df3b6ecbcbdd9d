"""Writes traces in other people's formats: one module a format, listed with what it is.

The module of a format has

* `write(traceset, out, **options)`: writes what `options` choose to a `Target`, and returns what
  it wrote in a few words, for the user to read. Every format takes the options `symbols` (a
  `Symbols`, names addresses) and `scope` (a `Scope`, what to write);
* `OPTIONS`, where it takes others: their names.

They are imported when they are used, for `ptt --help` must not wait for what they need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from nptltrace.export.writing.target import Target
    from nptltrace.trace.traceset import Traceset

__all__ = ["FORMATS", "Format", "load_format"]

FORMATS = {
    "chrome": "Chrome's JSON of trace events, which many viewers read",
    "csv": "CSV: one file a table in a directory; of a single table, that file",
    "firefox": "for profiler.firefox.com: a marker with a stack for each wait",
    "folded": "folded stacks, for flamegraph.pl: one line a stack, times in ns",
    "paje": "Pajé's, for ViTE and pajeng; what ptt_paje of 2006 wrote",
    "parquet": "Parquet, for DuckDB, pandas, Spark; data sets of many runs are one",
    "perfetto": "Perfetto's own: threads, locks and flows for ui.perfetto.dev",
    "pprof": "contentions and delay by stack, as Go's profiles, for go tool pprof",
    "speedscope": "flame graphs of everything and of each object, for speedscope.app",
}


class Format(Protocol):
    """The interface of the module of a format."""

    def write(self, traceset: Traceset, out: Target, **options: Any) -> str:
        """Write a traceset and return what was written, in a few words."""


def load_format(name: str) -> Format:
    """Import the module of a format.

    Args:
        name: As in `ptt export --format NAME`.

    Raises:
        UsageError: There is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}: there are {', '.join(FORMATS)}")
    return cast("Format", import_module(f"{__name__}.{name}"))
