"""Answers questions about a part of a traceset, for commands, the viewer and Python callers.

Each method imports its modules itself, because most commands ask one question only.
"""

from __future__ import annotations

from contextlib import closing
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

from nptltrace.errors import UsageError
from nptltrace.trace.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from nptltrace.analysis.finding_rules import Rules
    from nptltrace.analysis.findings import Finding, Findings
    from nptltrace.analysis.gil import GilLine
    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.report.diff import Difference
    from nptltrace.analysis.report.figures import Contention
    from nptltrace.analysis.report.measures import Run
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.report.stacks.trees import ReportStacks
    from nptltrace.analysis.sql.query import Database
    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.reports import Report
    from nptltrace.trace.statistics import Statistics
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Answers", "all_tables"]


class Answers:
    """Answers questions about a part of a traceset.

    Args:
        traceset: The opened traces.
        symbols: Names addresses.
        selection: The threads, objects and call sites of the part; None for all.
        window: Begin and end of the part, in ns since the traceset's start; None for no bound.

    Attributes:
        traceset: The opened traces.
        symbols: Names addresses.
    """

    def __init__(
        self,
        traceset: Traceset,
        symbols: Symbols,
        selection: Selection | None = None,
        window: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.traceset, self.symbols = traceset, symbols
        self._selection = selection or Selection()
        self._window = window
        self._database: Database | None = None
        self._opening = Lock()

    @cached_property
    def scope(self) -> Scope:
        """The part, as numbers of threads, objects and call sites.

        Raises:
            UsageError: A value is wrong, or nothing has such a name.
        """
        from nptltrace.analysis.model import Window
        from nptltrace.analysis.question_scope import Scope

        return Scope.of(self.traceset, self.symbols, self._selection, Window(*self._window))

    @property
    def is_part(self) -> bool:
        """Whether the scope leaves anything out."""
        return bool(self._selection) or self._window != (None, None)

    # ---- figures ----

    def stat(self, *, most: int | None = None) -> Statistics:
        """Return the processes, threads, events, objects and losses of the part.

        Args:
            most: Return at most this many objects, the objects with most events; None for all.
        """
        from nptltrace.analysis.recording_state import ended_ns, is_recorded, killed
        from nptltrace.trace.statistics import Part, statistics

        part = None
        if self.is_part:
            chosen = self._selection.build(self.traceset, self.symbols)
            part = Part(chosen, *self._window)
        ended = ended_ns(self.traceset)
        stat = statistics(self.traceset, self.symbols, most=most, part=part, ended_ns=ended)
        if killed(self.traceset) and not is_recorded(self.traceset):
            stat.state = "killed"
        return stat

    def report(self, **options: Any) -> Contention:
        """Return the contention of the part: the waits of threads and their causes.

        Args:
            options: `named`, `causes`, `pairs` and `stacks` of `contention`.
        """
        from nptltrace.analysis.report.contention import contention

        window, counted = self.scope.window, self.scope.counted
        return contention(self.traceset, self.symbols, window=window, counted=counted, **options)

    def stacks(self, measure: StackMeasure) -> ReportStacks:
        """Return waits, holds or idle time by call stack, the longest first.

        Args:
            measure: The waits, holds or idle time to add up.
        """
        from nptltrace.analysis.report.stacks.trees import stack_figures

        return stack_figures(self.traceset, self.symbols, self.scope, measure)

    def rows(self, report: Report) -> pa.Table:
        """Return the rows of a report; see `nptltrace.reports`.

        Args:
            report: The report.

        Raises:
            UsageError: The function of the report failed; the text names the line.
        """
        import pyarrow as pa

        from nptltrace.analysis.trace_data import TraceData
        from nptltrace.scripts import place_of, what_failed

        with closing(TraceData(self.traceset, self.symbols, scope=self.scope)) as trace:
            try:
                rows: Any = report.make(trace)
                is_table = isinstance(rows, pa.Table)
                return rows if is_table else pa.Table.from_pylist(list(map(dict, rows)))
            except (Exception, SystemExit) as error:  # noqa: BLE001 -- whatever the user's code raises
                place = place_of(error, report.file)
                what = f"report {report.name} ({place}): {what_failed(error)}"
                raise UsageError(what) from None

    def gil(self) -> list[GilLine]:
        """Return holds of Python's interpreter lock and waits for it, by thread and line."""
        from nptltrace.analysis.gil import gil_lines

        return gil_lines(self.traceset, self.symbols, self.scope)

    def run(self, *, by: str, per: str = "run", step: Callable[[], None] = lambda: None) -> Run:
        """Return the sums of the part, for a comparison with the sums of other runs.

        Args:
            by: `site`, `stack`, `object` or `thread`.
            per: The unit to divide by: `run`, `second`, or the name of an event type.
            step: Called now and then while the trace is read. An exception ends the reading.

        Raises:
            UsageError: The trace has no time or no such events to divide by.
        """
        from nptltrace.analysis.report.measures import measure

        return measure(self.traceset, self.symbols, by=by, per=per, scope=self.scope, step=step)

    def diff(
        self, after: Iterable[Answers], *, before: Iterable[Answers] = (),
        by: str = "site", per: str = "run", confidence: float = 0.95,
    ) -> Difference:  # fmt: skip
        """Return the changes from this run to other runs.

        The runs are measured one after the other: first this run, then `before`, then `after`.

        Args:
            after: The runs after the change.
            before: More runs before the change.
            by: The things to compare: `site`, `stack`, `object` or `thread`.
            per: The unit to divide by; see `run`.
            confidence: The required confidence of a sure change, between 0.5 and 1.

        Raises:
            UsageError: A trace has no time or no such events to divide by.
        """
        from nptltrace.analysis.report.diff import compare

        sides = chain([self], before), after
        runs = [[answers.run(by=by, per=per) for answers in side] for side in sides]
        return compare(*runs, confidence=confidence)

    # ---- findings ----

    def check(self, rules: Rules, long_hold_ns: int) -> tuple[Findings, list[Finding]]:
        """Return all findings, and the findings that the rules and the scope choose.

        Args:
            rules: The findings to look for and to show.
            long_hold_ns: A hold of this time or longer is too long.
        """
        from nptltrace.analysis.findings import find

        result = find(
            self.traceset, self.symbols, long_hold_ns=long_hold_ns, wanted=rules.kinds
        )  # fmt: skip
        return result, self.within(rules.chosen(result.findings))

    def within(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are about the scope."""
        includes = self.scope.includes
        return [
            finding
            for finding in findings
            if includes(
                finding.ts_ns, finding.process, finding.threads, finding.places, finding.sites
            )
        ]

    # ---- tables ----

    @cached_property
    def tables(self) -> TraceTables:
        """The tables of the part."""
        return all_tables(self.traceset, self.symbols, self.scope)

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table; see `TraceTables.table`."""
        return self.tables.table(name, columns)

    @property
    def database(self) -> Database:
        """A database of the tables; `close` closes it."""
        from nptltrace.analysis.sql.query import Database

        with self._opening:
            if self._database is None:
                self._database = Database(self.tables)
            return self._database

    def sql(self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> pa.Table:
        """Return the rows of an SQL query over the tables; see `Database.query`."""
        return self.database.query(query, params)

    def close(self) -> None:
        """Close the database, if there is one."""
        if self._database is not None:
            self._database.close()
            self._database = None


def all_tables(
    traceset: Traceset, symbols: Symbols | None = None, scope: Scope | None = None
) -> TraceTables:
    """Return the tables of a traceset, with the table of findings; see `TraceTables`."""
    from nptltrace.analysis.findings import findings
    from nptltrace.analysis.sql.tables import TraceTables

    return TraceTables(traceset, symbols, scope, findings)
