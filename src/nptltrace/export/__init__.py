"""Exports of traces to other formats. Each format has a module.

The module of a format has

* `write(what, out)`: writes an `Export` to a `Target`, and returns a short text that tells the
  user how much was written;
* `OPTIONS`: the names of the options of the format, besides `symbols` and `scope`.

The modules are imported on use: `ptt --help` does not wait for pyarrow or NumPy.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.export.writing.stacks import Sample
    from nptltrace.export.writing.target import Target
    from nptltrace.export.writing.timeline import Timeline
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["ALIASES", "FORMATS", "SUFFIXES", "Export", "Format", "load_format"]

FORMATS = {
    "chrome": "Chrome's trace events as JSON, for many viewers",
    "ctf": "plain CTF of a compact trace, for babeltrace2 and others",
    "csv": "CSV: a directory with a file for each table, or a single file",
    "firefox": "for profiler.firefox.com: a marker with a stack for each wait",
    "folded": "folded stacks for flamegraph.pl: each stack on a line, times in ns",
    "paje": "Pajé, for ViTE and pajeng; the format of ptt_paje of 2006",
    "parquet": "Parquet, for DuckDB, pandas, Spark; many runs form one data set",
    "perfetto": "Perfetto: threads, locks and flows for ui.perfetto.dev",
    "pprof": "contentions and delay by stack, as Go's profiles, for go tool pprof",
    "speedscope": "flame graphs of everything and of each object, for speedscope.app",
}


# Other names of formats.
ALIASES = {"collapsed": "folded"}
# Suffixes of files that belong to one format.
SUFFIXES = {
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
    ".speedscope.json": "speedscope",
    ".pb.gz": "pprof",
    ".folded": "folded",
    ".collapsed": "folded",
    ".csv": "csv",
    ".parquet": "parquet",
    ".paje": "paje",
}


@dataclass(frozen=True)
class Export:
    """A request to export traces.

    Attributes:
        traceset: The opened traces.
        symbols: Gives names to addresses; None leaves addresses as numbers.
        scope: The part of the traces to write; None for everything.
        show: The measure of the formats with stacks; see `STACK_MEASURES`.
        tables: Names of the tables to write; all tables if empty.
    """

    traceset: Traceset
    symbols: Symbols | None = None
    scope: Scope | None = None
    show: str = "waits"
    tables: Sequence[str] = ()

    @cached_property
    def timeline(self) -> Timeline:
        """The states of threads and objects over time."""
        from nptltrace.export.writing.timeline import Timeline

        return Timeline(self.traceset, self.symbols, self.scope)

    @cached_property
    def trace_tables(self) -> TraceTables:
        """The tables of the traces in the scope."""
        from nptltrace.analysis.sql.tables import TraceTables

        return TraceTables(self.traceset, self.symbols, self.scope)

    @cached_property
    def shown(self) -> StackMeasure:
        """The measure that `show` names.

        Raises:
            UsageError: No measure has this name.
        """
        from nptltrace.analysis.report.stacks.sums import stack_measure

        return stack_measure(self.show)

    @cached_property
    def samples(self) -> list[Sample]:
        """The time of each pair of stack and object, the longest first."""
        from nptltrace.export.writing.stacks import samples

        return samples(self.trace_tables, self.shown)


class Format(Protocol):
    """The interface of the module of a format."""

    OPTIONS: tuple[str, ...]

    def write(self, what: Export, out: Target) -> str:
        """Write an export, and return a short text about the written data."""


def load_format(name: str) -> Format:
    """Import the module of a format.

    Args:
        name: As in `ptt export --format NAME`.

    Raises:
        UsageError: No format has this name.
    """
    name = ALIASES.get(name, name)
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}: there are {', '.join(FORMATS)}")
    return cast("Format", import_module(f"{__name__}.{name}"))
