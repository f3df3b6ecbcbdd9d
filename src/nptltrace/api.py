"""What `nptltrace.open()` returns: a traceset that also answers what analysis knows of it.

The reader of traces knows nothing of analysis; the two meet here, and analysis is imported when it
is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.trace.traceset import Traceset as Reader

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from nptltrace.analysis.sql.query import Database
    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["Traceset", "open_traceset"]


class Traceset(Reader):
    """Traces opened for reading and for questions; see `nptltrace.open`."""

    _made: TraceTables | None = None
    _database: Database | None = None

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return one of the tables that `ptt sql` knows.

        Args:
            name: `waits`, `holds`, `threads`, …
            columns: Only these; None for all.

        Raises:
            UsageError: There is no such table.
        """
        return self._tables().table(name, columns)

    def table_batches(
        self, name: str, columns: Collection[str] | None = None
    ) -> Iterator[pa.Table]:
        """Yield a table in pieces, for one that does not fit into memory; see `table`."""
        yield from self._tables().batches(name, columns)

    def sql(self, query: str) -> pa.Table:
        """Return what an SQL query over the tables answers.

        Args:
            query: One or more statements; the last that returns rows counts.

        Raises:
            UsageError: The query is wrong; the text says where.
            PttError: DuckDB is not installed.
        """
        from nptltrace.analysis.sql.query import Database

        if self._database is None:
            self._database = Database(self._tables())
        return self._database.query(query)

    def findings(self) -> pa.Table:
        """Return the bugs that the traces show, as `ptt check` finds them."""
        return self.table("findings")

    def refresh(self) -> None:
        """Take in what a running recording has written since; the place is kept."""
        super().refresh()
        self._made = None
        if self._database is not None:
            self._database.close()
            self._database = None

    def _tables(self) -> TraceTables:
        from nptltrace.analysis.sql.tables import TraceTables

        if self._made is None:
            self._made = TraceTables(self)
        return self._made


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
