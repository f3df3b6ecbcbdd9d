"""The input of kinds of findings and reports: facts, tables and SQL, each made on first use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread
from nptltrace.errors import UsageError
from nptltrace.findings.facts import FACTS
from nptltrace.trace.filtered import knows_orders

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from nptltrace.analysis.checking.named_facts import Facts
    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.sql.query import Database
    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.findings.facts import Fact
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["TraceData"]


class TraceData:
    """A traceset as `nptltrace.findings.Trace` describes it.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        facts: The facts of a checker; None to read the traces for facts on first use.
        scope: The part of the traces in the tables.
    """

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols | None,
        facts: Facts | None = None,
        scope: Scope | None = None,
    ) -> None:
        self._source, self._symbols, self._scope = source, symbols, scope
        self._facts = facts
        self._tables: TraceTables | None = None
        self._database: Database | None = None

    @property
    def thread_count(self) -> int:
        """The number of threads."""
        return len(self._source.thread_ids)

    def lifetimes(self) -> dict[int, NDArray[np.int64]]:
        """Return the lifetimes of threads by process; see `Trace.lifetimes`."""
        workers = len(os.sched_getaffinity(0))
        _, _, spans = libpttread.count(self._source.reader, workers=workers, objects=False)
        ns = np.array([span.last - span.first for span in spans], np.int64)
        of = np.array([process for process, _ in self._source.thread_ids], np.int64)
        order = np.argsort(of, kind="stable")
        processes, first = np.unique(of[order], return_index=True)
        return dict(zip(processes.tolist(), np.split(ns[order], first[1:]), strict=True))

    def facts(self, kind: str) -> Sequence[Fact]:
        """Return the facts of one kind; see `Trace.facts`.

        Raises:
            UsageError: There is no such kind.
        """
        if kind not in FACTS:
            raise UsageError(f"there are no facts {kind!r}: {', '.join(FACTS)}")
        if kind in {"order-cycle", "order-cycle-prevented"} and not knows_orders(self._source):
            return ()
        if self._facts is None:
            from nptltrace.analysis.checking.checker import checked
            from nptltrace.analysis.checking.named_facts import Facts

            self._facts = Facts(self._source, self._symbols, checked(self._source).check)
        return self._facts.of(kind)

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table; see `Trace.table`.

        Raises:
            UsageError: There is no such table or column.
        """
        return self._opened().alone(name, columns)

    def sql(self, query: str) -> pa.Table:
        """Return the rows of an SQL query over the tables; see `Trace.sql`.

        Raises:
            UsageError: The query is wrong.
            PttError: DuckDB is not installed.
        """
        if self._database is None:
            from nptltrace.analysis.sql.query import Database

            self._database = Database(self._opened())
        return self._database.query(query)

    def close(self) -> None:
        """Close the database, if there is one."""
        if self._database is not None:
            self._database.close()

    def _opened(self) -> TraceTables:
        if self._tables is None:
            from nptltrace.analysis.sql.tables import TraceTables

            self._tables = TraceTables(self._source, self._symbols, self._scope)
        return self._tables
