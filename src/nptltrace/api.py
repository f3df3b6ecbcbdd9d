"""The traceset that `nptltrace.open()` returns: reads events and answers questions about them.

The reader of traces does not depend on analysis. This module joins the two, and imports analysis
on demand.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from contextlib import contextmanager
from html import escape
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from nptltrace._binding import libpttread
from nptltrace.errors import PttError, UsageError, near
from nptltrace.trace.reading.cursor import EventCursor, check_fields, check_time, joined
from nptltrace.trace.selection import Choice, plain, selection_of
from nptltrace.trace.traceset import Traceset as NamedTraces

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from nptltrace.analysis.answers import Answers
    from nptltrace.analysis.vocabulary.document_types import Check, Diff, Report, Stat
    from nptltrace.trace.objects.chosen import Chosen
    from nptltrace.trace.reading.cursor import Position
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["Choice", "Traceset", "open_traceset"]

# Patterns of functions and modules: one text with commas, or several texts.
Patterns = str | Iterable[str]
# Arguments that choose a part: start_ns, end_ns, pid, tid, object, site.
_Part = tuple[int | None, int | None, Choice, Choice, Choice, Choice]
# Public attributes of the base class.
_OFFERED = (
    "alignment", "closed", "damages", "paths", "processes", "remarks", "running", "start_unix_ns",
)  # fmt: skip


class Traceset(NamedTraces):
    """Traces opened for reading and for questions; see `nptltrace.open`.

    Use it in a `with` statement, or call `close`. `stat`, `report`, `check` and `diff` return the
    documents that the commands print with `--format json`; the page "JSON" in the reference lists
    their fields. Tables and views are also attributes and items: `ts.waits`, `ts["named_waits"]`.

    Many methods take the same arguments for a part of the traces:

    - `start_ns`, `end_ns`: a window, in ns since the traceset's start
    - `pid`, `tid`, `object`, `site`: one value or several. Pass numbers, names, or addresses, as
      numbers or as text (`0x…`). Values and columns of tables, NumPy and pandas are accepted.
    - `skip`: patterns of functions and modules that are not call sites, such as
      `"Lck_*,libSDL2*"`. Their callers are the call sites instead.

    A part that matches nothing gives a `UserWarning`.

    Attributes:
        alignment: How the clocks of the traces were aligned, an `Alignment`.
        start_unix_ns: Time 0 of the traceset, in ns since 1970.
    """

    _whole: Answers | None = None
    _default_symbols: Symbols | None = None

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        super().__init__(*paths)
        self._open_cursor = EventCursor(self)
        self._making_whole = Lock()  # threads that ask at once share one `_whole`

    def __repr__(self) -> str:
        """Return a summary on one line: traces, counts and duration."""
        return f"<Traceset {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return the summary as an HTML table, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>Traceset</caption>{rows}</table>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> pa.Table:
        """Return a table or view; see `table`."""
        return self.table(name)

    def __getattr__(self, name: str) -> pa.Table:
        """Return a table or view, as `ts.waits` does; see `table`."""
        if name.startswith("_") or name not in self._names_of_tables():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.table(name)

    def __dir__(self) -> list[str]:
        """Return the names that users may use: methods, properties, tables and views."""
        offered = (name for name in vars(Traceset) if not name.startswith("_"))
        return sorted({*offered, *_OFFERED, *self._names_of_tables()})

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the tables and views."""
        return iter(self._names_of_tables())

    def close(self) -> None:
        """Close the traceset. Returned tables stay valid. A second call does nothing."""
        self._forget()
        self._open_cursor.close()
        super().close()

    # ---- contents ----

    @property
    def tables(self) -> list[str]:
        """The names of the tables that `table` returns and `sql` queries."""
        from nptltrace.analysis.sql.schema import TABLES

        return list(TABLES)

    @property
    def start(self) -> int:
        """Time of the first event, in ns since the traceset's start; 0 if there is none."""
        return self._span()[0]

    @property
    def end(self) -> int:
        """Time of the last event, likewise."""
        return self._span()[1]

    @property
    def duration(self) -> int:
        """Time from the first event to the last, in ns."""
        return self.end - self.start

    def stat(
        self, *, start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> Stat:  # fmt: skip
        """Return counts of processes, threads, events, objects and losses; see `ptt stat`."""
        from nptltrace.analysis.report.documents import stat_document

        part = (start_ns, end_ns, pid, tid, object, site)
        return stat_document(self._answers(part, self._symbols()).stat())

    def symbols(
        self,
        directories: Sequence[str | os.PathLike[str]] = (),
        aliases: Sequence[str | os.PathLike[str]] = (),
        skip: Sequence[str] = (),
    ) -> Symbols:
        """Return names for the addresses in columns `object` and `site`.

        Args:
            directories: Directories to search first for programs and debug files, by build-id or
                name.
            aliases: Alias files. Their names replace all other names.
            skip: Patterns of functions and modules that are not call sites, such as `Lck_*`.
        """
        from nptltrace.trace.passed_over import PassedOver
        from nptltrace.trace.symbols.alias import read_aliases
        from nptltrace.trace.symbols.lookup import Symbols

        return Symbols(self, read_aliases(aliases), directories, PassedOver(skip))

    # ---- tables ----

    def table(
        self, name: str, columns: Collection[str] | None = None, *,
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> pa.Table:  # fmt: skip
        """Return a table or view of `ptt sql`.

        Args:
            name: `waits`, `holds`, `threads`, `named_waits`, …; `list(ts)` has them all.
            columns: Only these columns; None for all. For events, None stands for the fields that
                occur.
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only these processes.
            tid: Only these threads.
            object: Only these objects.
            site: Only these call sites.

        Returns:
            An Arrow table. The page "Tables" in the reference has the meaning and the unit of each
            column; names that end in `_ns` are nanoseconds.

        Raises:
            UsageError: There is no such table or column, or a value is wrong.

        Example:
            >>> ts.table("waits", ["tid", "dur_ns"], tid=4711).to_pandas()  # doctest: +SKIP
        """
        from nptltrace.analysis.sql.schema import TABLES
        from nptltrace.trace.reading.columns import with_words_that_occur

        if isinstance(columns, str):
            raise UsageError(f"columns must be a list of names, such as [{columns!r}]")
        known = self._names_of_tables()
        if name not in known:
            hint = near(str(name), known) or f": there are {', '.join(known)}"
            raise UsageError(f"no table {name!r}{hint}")
        part = (start_ns, end_ns, pid, tid, object, site)
        if name not in TABLES:
            chosen = "*" if columns is None else ", ".join(f'"{column}"' for column in columns)
            return self._queried(f'select {chosen} from "{name}"', None, part)  # noqa: S608 -- names
        if name == "events" and columns is None:
            return self._events(part)
        return with_words_that_occur(self._about(part).table(name, columns))

    def table_batches(
        self, name: str, columns: Collection[str] | None = None, *,
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> Iterator[pa.Table]:  # fmt: skip
        """Yield a table in pieces, for tables that do not fit into memory; see `table`.

        Args:
            name: The table. Views do not come in pieces.
            columns: Only these columns; None for all.
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only these processes.
            tid: Only these threads.
            object: Only these objects.
            site: Only these call sites.

        Yields:
            Arrow tables with the same schema.

        Raises:
            UsageError: There is no such table or column, or a value is wrong.
        """
        part = (start_ns, end_ns, pid, tid, object, site)
        yield from self._about(part).tables.batches(name, columns)

    def events(
        self, start_ns: int | None = None, end_ns: int | None = None,
        *, fields: Sequence[str] | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> pa.Table:  # fmt: skip
        """Return the events of a window, with the columns of the table `events`.

        Args:
            start_ns: Begin of the window; None for the start.
            end_ns: End of the window; None for the end.
            fields: Fields of events to add as columns; None for all that occur.
            pid: Only events of these processes.
            tid: Only events of these threads.
            object: Only events on these objects.
            site: Only events at these call sites.

        Returns:
            An Arrow table; see `table`.

        Raises:
            UsageError: A value or a field is wrong.
        """
        return self._events((start_ns, end_ns, pid, tid, object, site), fields)

    def _events(self, part: _Part, fields: Sequence[str] | None = None) -> pa.Table:
        import pyarrow as pa

        from nptltrace.analysis.sql.schema import EVENT_FIELDS, TABLES
        from nptltrace.trace.reading.columns import column_of_field, with_words_that_occur

        check_fields(fields or ())
        chosen = self._fields() if fields is None else fields
        columns = [name for name in TABLES["events"].names if name not in EVENT_FIELDS]
        columns += [column_of_field(name) for name in chosen]
        empty = TABLES["events"].schema(columns).empty_table()
        pieces = self._about(part).tables.batches("events", columns)
        return with_words_that_occur(pa.concat_tables([empty, *pieces]))

    def threads(
        self, *, start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
    ) -> pa.Table:  # fmt: skip
        """Return the table `threads`: a row for each thread, with its name, life and sums.

        Args:
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only these processes.
            tid: Only these threads.

        Returns:
            An Arrow table; see `table`.
        """
        return self.table("threads", start_ns=start_ns, end_ns=end_ns, pid=pid, tid=tid)

    def findings(
        self, *, start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> pa.Table:  # fmt: skip
        """Return the table `findings`: the bugs that the traces show; see `check`.

        Args:
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only findings in these processes.
            tid: Only findings about these threads.
            object: Only findings about these objects.
            site: Only findings at these call sites.

        Returns:
            An Arrow table; see `table`.
        """
        return self.table(
            "findings", start_ns=start_ns, end_ns=end_ns, pid=pid, tid=tid, object=object, site=site
        )

    def sql(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None, *,
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
    ) -> pa.Table:  # fmt: skip
        """Return the result of an SQL query over the tables.

        Args:
            query: One or more statements. The last statement that returns rows gives the result.
            params: Values for `?` and `$1` by position, or for `$name` by name.
            start_ns: Begin of the window. The tables hold the chosen part only.
            end_ns: End of the window.
            pid: Only these processes.
            tid: Only these threads.
            object: Only these objects.
            site: Only these call sites.

        Returns:
            An Arrow table with the columns of the query.

        Raises:
            UsageError: The query or a value is wrong; the message says where.
            PttError: DuckDB is not installed.

        Example:
            >>> ts.sql("from waits where dur_ns > $least", {"least": 1_000_000})  # doctest: +SKIP
        """
        return self._queried(query, params, (start_ns, end_ns, pid, tid, object, site))

    # ---- reading on ----

    def position(self) -> Position:
        """Return the position before the next event that `read` returns."""
        return self._cursor.position()

    def seek(self, place: int | Position) -> None:
        """Go to the first event at a time or later, in ns since the start, or to a position.

        Raises:
            UsageError: The position belongs to other traces, or its event cannot be read.
        """
        self._cursor.seek(place)

    def read(
        self, until: int | Position | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events from here on.

        Args:
            until: End before this time, in ns since the start, or before the event of a position;
                None for no end.
            max_events: Return at most this many events.
            fields: Fields of events to add as columns; None for all that occur.

        Returns:
            An Arrow table with the columns of the table `events`.
        """
        return self._cursor.read(until, max_events, fields)

    # ---- the same functions with the names of LTTV ----

    def seek_time(self, t_ns: int) -> None:
        """Go to the first event at a time or later: `seek(t_ns)`."""
        self.seek(t_ns)

    def seek_position(self, position: Position) -> None:
        """Go to a saved position: `seek(position)`."""
        self.seek(position)

    def position_save(self) -> Position:
        """Return the position before the next event: `position()`."""
        return self.position()

    def middle_time(
        self, end_ns: int | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events that are before a time: `read(end_ns)`, but with whole time stamps.

        Args:
            end_ns: Events at this time or later are left for the next read; None for no end.
            max_events: Stop after this many events, and after all further events with the same time
                stamp as the last one.
            fields: Fields of events to add as columns; None for all that occur.
        """
        tables = [self.read(end_ns, max_events, fields=fields)]
        if max_events is not None and tables[0].num_rows and tables[0].num_rows >= max_events:
            after = tables[0]["ts_ns"][-1].as_py() + 1
            end = after if end_ns is None else min(check_time(end_ns), after)
            tables.append(self.read(end, fields=fields))
        return joined(tables)

    def middle_position(
        self, end_position: Position | None = None, max_events: int | None = None,
        *, fields: Sequence[str] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Read events that are before a position: `read(end_position)`.

        Args:
            end_position: End before the event at this position; None for no end.
            max_events: Return at most this many events.
            fields: Fields of events to add as columns; None for all that occur.
        """
        return self.read(end_position, max_events, fields=fields)

    def batches(
        self, start_ns: int | None = None, end_ns: int | None = None,
        *, fields: Sequence[str] = (), batch_size: int = 65536,
    ) -> Iterator[pa.Table]:  # fmt: skip
        """Yield all events of a window in tables, without a change of the reading position.

        Args:
            start_ns: Begin of the window; None for the start.
            end_ns: End of the window; None for the end.
            fields: Fields of events to add as columns.
            batch_size: Number of events in each table.
        """
        from nptltrace.trace.reading.parallel import event_batches

        check_fields(fields)
        if batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, not {batch_size}")
        yield from event_batches(
            self, *_window(start_ns, end_ns), fields=fields, batch_size=batch_size
        )

    # ---- answers ----

    def report(
        self, *, by: str = "object", show: str = "waits",
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
        skip: Patterns = (),
    ) -> Report:  # fmt: skip
        """Return the waits by thread and object, and who made the threads wait; see `ptt report`.

        Args:
            by: `site` adds `sites` to objects and threads, `thread,object` adds `pairs`, `stack`
                adds `stacks`.
            show: What `stack` adds up: contended waits by the stacks of waiters (`waits`) or of
                holders (`holders`), `holds`, or `idle` waits.
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Count these processes only.
            tid: Count these threads only.
            object: Count these objects only.
            site: Count these call sites only.
            skip: Patterns of functions and modules that are not call sites.

        Raises:
            UsageError: An argument is wrong.
        """
        from nptltrace.analysis.report.documents import report_document

        _one_of("by", by, ("object", "thread", "site", "thread,object", "stack"))
        with self._passing_over(skip) as symbols:
            answers = self._answers_about((start_ns, end_ns, pid, tid, object, site), symbols)
            contention = answers.report(pairs=by == "thread,object")
            stacks = None
            if by == "stack":
                from nptltrace.analysis.report.stacks.sums import stack_measure

                stacks = answers.stacks(stack_measure(show))
        return report_document(contention, by=by, stacks=stacks)

    def check(
        self, *, kind: Patterns = (), ignore: Patterns = (), long_hold_ns: int = 1_000_000_000,
        suspects: bool = False, rules: Iterable[str | os.PathLike[str]] = (),
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
        skip: Patterns = (),
    ) -> Check:  # fmt: skip
        """Return the bugs that the traces show; see `ptt check`.

        Args:
            kind: Only findings of these kinds, such as `"deadlock"`.
            ignore: Leave out these findings: `"KIND"`, or `"KIND:TEXT"` with a text in the name of
                an object or in a call site.
            long_hold_ns: Report locks that are held for this time or longer.
            suspects: Also report lock orders that may be false because memory was reused.
            rules: Python files that add kinds of findings.
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only findings in these processes.
            tid: Only findings about these threads.
            object: Only findings about these objects.
            site: Only findings at these call sites.
            skip: Patterns of functions and modules that are not call sites.

        Raises:
            UsageError: An argument is wrong.
        """
        from nptltrace.analysis.finding_rules import Rules
        from nptltrace.analysis.report.documents import findings_document

        wanted = Rules.of(
            kinds=_several(kind), ignored=_several(ignore), suspects=suspects, files=rules
        )
        with self._passing_over(skip) as symbols:
            answers = self._answers_about((start_ns, end_ns, pid, tid, object, site), symbols)
            findings, chosen = answers.check(wanted, long_hold_ns)
        if findings.failures:
            raise PttError(findings.failures[0])
        return findings_document(chosen, findings.uncovered, findings.futex_waits)

    def diff(
        self, after: Traceset | Sequence[Traceset], *, before: Sequence[Traceset] = (),
        by: str = "site", per: str = "run", confidence: float = 0.95,
        start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
        skip: Patterns = (),
    ) -> Diff:  # fmt: skip
        """Return the changes from this run, the baseline, to other runs; see `ptt diff`.

        Args:
            after: The new run, or several new runs.
            before: Further baseline runs.
            by: What to compare: `site`, `stack`, `object` or `thread`.
            per: What to divide by: `run`, `second`, or the name of an event type.
            confidence: How sure a change must be, between 0.5 and 1.
            start_ns: Begin of the window, in each run.
            end_ns: End of the window.
            pid: Count these processes only.
            tid: Count these threads only.
            object: Count these objects only.
            site: Count these call sites only.
            skip: Patterns of functions and modules that are not call sites.

        Raises:
            UsageError: An argument is wrong.
        """
        from nptltrace.analysis.report.documents import diff_document

        _one_of("by", by, ("site", "stack", "object", "thread"))
        part = (start_ns, end_ns, pid, tid, object, site)
        sides = [self, *before], [after] if isinstance(after, Traceset) else after
        first, then = (
            chain.from_iterable(run._run_of(part, skip) for run in side)  # noqa: SLF001 -- this class
            for side in sides
        )
        difference = next(first).diff(then, before=first, by=by, per=per, confidence=confidence)
        return diff_document(difference, by=by, per=per)

    def export(
        self, format: str,  # noqa: A002 -- as the option is called
        output: str | os.PathLike[str], *, tables: Sequence[str] = (), show: str | None = None,
        force: bool = False, start_ns: int | None = None, end_ns: int | None = None,
        pid: Choice = None, tid: Choice = None,
        object: Choice = None, site: Choice = None,  # noqa: A002 -- as the option is called
        skip: Patterns = (),
    ) -> Path:  # fmt: skip
        """Write the traceset in the format of another program; see `ptt export`.

        Args:
            format: `chrome`, `csv`, `firefox`, `folded`, `paje`, `parquet`, `perfetto`, `pprof` or
                `speedscope`.
            output: The file or directory to create.
            tables: For `csv` and `parquet`: only these tables.
            show: For `firefox`, `folded`, `pprof` and `speedscope`: what to add up by stack; see
                `report`.
            force: Replace an existing file or directory.
            start_ns: Begin of the window.
            end_ns: End of the window.
            pid: Only these processes.
            tid: Only these threads.
            object: Only these objects.
            site: Only these call sites.
            skip: Patterns of functions and modules that are not call sites.

        Returns:
            The path of the file or directory.

        Raises:
            UsageError: An argument is wrong, or `output` exists.
        """
        from nptltrace.export import Export, load_format
        from nptltrace.export.writing.target import Target

        writer = load_format(format)
        options: dict[str, Any] = {"tables": tables} if tables else {}
        options |= {"show": show} if show else {}
        for name in options:
            if name not in writer.OPTIONS:
                raise UsageError(f"{name} means nothing to {format}")
        with self._passing_over(skip) as symbols:
            scope = self._answers_about((start_ns, end_ns, pid, tid, object, site), symbols).scope
            what = Export(self, symbols, scope, **options)
            writer.write(what, Target(os.fspath(output), force=force))
        return Path(output)

    def refresh(self) -> None:
        """Read on in a running recording: include its new events. The position is kept."""
        super().refresh()
        self._cursor.refresh()
        self._forget()

    # ---- inside ----

    @property
    def _cursor(self) -> EventCursor:
        """The cursor of the reading functions; raises an error if the traceset is closed."""
        self.ensure_open()
        return self._open_cursor

    def _fields(self) -> list[str]:
        """Return the names of the event fields that occur."""
        from nptltrace.catalog import BY_ID
        from nptltrace.trace.reading.columns import FIELD_NAMES

        workers = len(os.sched_getaffinity(0))
        counts, _, _ = libpttread.count(self.reader, workers=workers, objects=False)
        known = (BY_ID[count.id] for count in counts if count.id in BY_ID)
        occurring = {field.name for event in known for field in event.fields}
        return [name for name in FIELD_NAMES if name in occurring]

    def _forget(self) -> None:
        self._default_symbols = None
        if self._whole is not None:
            self._whole.close()
            self._whole = None

    def _about(self, part: _Part) -> Answers:
        """Return the answers about a part. The answers about the whole traceset are kept."""
        if any(choice is not None for choice in part):
            return self._answers_about(part, self._symbols())
        self.ensure_open()
        with self._making_whole:
            if self._whole is None:
                self._whole = self._answers(part, self._symbols())
            return self._whole

    def _queried(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None, part: _Part
    ) -> pa.Table:
        """Answer a query over the tables of a part."""
        if params is not None and not isinstance(params, str):
            params = (
                {name: plain(value) for name, value in params.items()}
                if hasattr(params, "items")
                else [plain(value) for value in params]
            )
        answers = self._about(part)
        try:
            return answers.sql(query, params)
        finally:
            if answers is not self._whole:
                answers.close()

    def _run_of(self, part: _Part, skip: Patterns) -> Iterator[Answers]:
        """Yield the answers about a part, with call sites that the patterns leave."""
        with self._passing_over(skip) as symbols:
            yield self._answers_about(part, symbols)

    @staticmethod
    def _names_of_tables() -> list[str]:
        """Return the names of all tables and views."""
        from nptltrace.analysis.sql.schema import TABLES
        from nptltrace.analysis.sql.views import VIEWS

        return [*TABLES, *(view.name for view in VIEWS if view.parameters is None)]

    def _symbols(self) -> Symbols:
        if self._default_symbols is None:
            self._default_symbols = self.symbols()
        return self._default_symbols

    @contextmanager
    def _passing_over(self, skip: Patterns) -> Iterator[Symbols]:
        """Yield symbols for call sites that the patterns leave, and restore the call sites."""
        from nptltrace.trace.passed_over import patterns

        passed_over = [pattern for word in _several(skip) if word for pattern in patterns(word)]
        if not passed_over:
            yield self._symbols()
            return
        self._forget()
        try:
            yield self.symbols(skip=passed_over)
        finally:
            self._symbols()  # sets the recorded call sites again

    def _answers(self, part: _Part, symbols: Symbols) -> Answers:
        """Return the answers about a part.

        Raises:
            UsageError: A value is wrong, or the window ends before it begins.
        """
        from nptltrace.analysis.answers import Answers

        start_ns, end_ns, pid, tid, object_, site = part
        chosen = selection_of(pid, tid, object_, site, _generation_at)
        return Answers(self, symbols, chosen, _window(start_ns, end_ns))

    def _answers_about(self, part: _Part, symbols: Symbols) -> Answers:
        """Return the answers about a part, and warn if the part is empty; see `_answers`."""
        answers = self._answers(part, symbols)
        counted = answers.scope.counted
        _, _, pid, tid, _, site = part
        for name, choice, matches in (
            ("pid and tid", (pid, tid), counted.threads), ("site", site, counted.sites),
        ):  # fmt: skip
            if matches is not None and not len(matches):
                warnings.warn(f"nothing matches {name} = {choice!r}", UserWarning, stacklevel=4)
        return answers

    def _span(self) -> tuple[int, int]:
        keys = self.reader.key_range()
        if keys is None:
            return 0, 0
        first, last = (self.reader.time_of_key(key) for key in keys)
        return first, last

    def _facts(self) -> dict[str, str]:
        """Return the summary by name. It is cheap: notebooks show it without being asked."""
        if self.closed:
            return {"traces": ", ".join(map(str, self.paths())), "state": "closed"}
        infos = [self.reader.trace_info(trace.number) for trace in self.traces]
        return {
            "traces": ", ".join(str(path) for path in self.paths()),
            "events": f"{sum(info.events for info in infos):,}",
            "processes": f"{len(self.processes):,}",
            "threads": f"{len(self.thread_ids):,}",
            "duration": f"{self.duration / 1e9:.6f} s",
        }

    def _summary(self) -> str:
        facts = self._facts()
        if self.closed:
            return f"{facts['traces']}: closed"
        counts = ", ".join(
            _counted(facts[name], name) for name in ("events", "processes", "threads")
        )
        return f"{facts['traces']}: {counts}, {facts['duration']}"


def _counted(number: str, plural: str) -> str:
    """Return `1 thread` or `2 threads`."""
    singular = plural.removesuffix("es" if plural == "processes" else "s")
    return f"{number} {singular if number == '1' else plural}"


def _several(texts: Patterns) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _window(start_ns: int | None, end_ns: int | None) -> tuple[int | None, int | None]:
    """Return a window.

    Raises:
        UsageError: A time is not a whole number, or the window ends before it begins.
    """
    begin, end = (None if t_ns is None else check_time(plain(t_ns)) for t_ns in (start_ns, end_ns))
    if begin is not None and end is not None and begin > end:
        raise UsageError(f"end_ns ({end}) lies before start_ns ({begin})")
    return begin, end


def _generation_at(source: NamedTraces, address: int, number: int) -> list[Chosen]:
    from nptltrace.analysis.question_scope import generation_at  # only where a choice asks for it

    return generation_at(source, address, number)


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(f"{name} is one of {', '.join(known)}, not {value!r}")


def open_traceset(*paths: str | os.PathLike[str]) -> Traceset:
    """Open traces for reading as one traceset.

    Args:
        paths: Trace directories.

    Raises:
        TraceFormatError: A directory is not a trace.
        UsageError: The traces cannot be merged into one traceset.

    Example:
        >>> import nptltrace
        >>> with nptltrace.open("run.ptt") as ts:      # doctest: +SKIP
        ...     ts.report()["objects"][0]["wait_ns"]
    """
    return Traceset(*paths)
