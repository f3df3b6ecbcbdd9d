"""SQL over the tables of a traceset, by DuckDB.

Every table is declared from the start, and made when a query first reads it. Of events, only the
columns and the range of time are read that the query needs. A query can use only these tables: no
files, no network, no settings.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from nptltrace.analysis.sql.scans import LazyTable, Scans
from nptltrace.analysis.sql.schema import ALL_THREADS, TABLES
from nptltrace.analysis.sql.views import THREAD_NAMES, VIEWS
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator

    from nptltrace.analysis.sql.schema import TableType
    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["Database", "QueryError", "view_columns", "view_schemas"]

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    # DuckDB cannot know that there are many events and few call sites. Joins stay as written.
    "disabled_optimizers": "join_order,build_side_probe_side",
}
# Interval of repeated interrupts until an interrupted query ends.
_INTERRUPT_S = 0.1
# Rows of a result in one batch.
_ROWS = 1 << 14
_WORD = re.compile(r"\w+")
# A query that changes nothing.
_PLAIN = re.compile(r"\s*(select|from|with)\b(?!.*\(\s*desc\b)", re.IGNORECASE | re.DOTALL)
# Words of a query that may read the list of tables, or use the name of a table as a value.
_LISTS = frozenset({"describe", "information_schema", "query", "query_table", "show", "summarize"})
_NEAR = re.compile(r'at or near "([^"]+)"')
# Words of SQL for suggestions after a syntax error.
_WORDS = ("select", "from", "where", "group", "order", "having", "limit", "join", "using", "union")
_POSITION = re.compile(r"^LINE (\d+): (.*)$", re.MULTILINE)
_INTERNAL = ("pg_", "duckdb_", "sqlite_", "pragma_")

T = TypeVar("T")
# Values for the parameters of a query: by place, or by name.
Params = Sequence[Any] | Mapping[str, Any] | None


class QueryError(UsageError):
    """A query that cannot be answered.

    Args:
        what: The problem, in one line.
        line: Line of the query, from 1; 0 if unknown.
        column: Column in the line, from 1.
    """

    def __init__(self, what: str, line: int = 0, column: int = 0) -> None:
        self.line, self.column = line, column
        where = f" (line {line}, column {column})" if line else ""
        super().__init__(f"{what}{where}")


class Database:
    """The tables of a traceset, and views on them, behind SQL.

    Args:
        tables: Makes the tables.

    Raises:
        PttError: DuckDB is not installed.
    """

    def __init__(self, tables: TraceTables) -> None:
        self._begin(lambda: self._declare_tables(tables))

    def close(self) -> None:
        """Close the database. No query may run."""
        self._end()

    def query(self, sql: str, params: Params = None) -> pa.Table:
        """Return the rows of a query; of several statements, the last statement that returns rows.

        Several threads may call at once: the queries run one after the other.

        Args:
            sql: The query.
            params: Values of the parameters, by position or by name.

        Raises:
            QueryError: The query is wrong.
        """
        return self.interruptible(lambda: self._query(sql, params))

    def results(
        self, sql: str, params: Params = None
    ) -> Generator[pa.RecordBatchReader, None, None]:
        """Run the statements of a query, and yield the result of each statement that returns rows.

        Read each result before you ask for the next result.

        Args:
            sql: The query.
            params: Values of the parameters, by position or by name.

        Raises:
            QueryError: The query is wrong.
        """
        try:
            statements = list(self._connection.extract_statements(sql))
        except self._duckdb.Error as error:
            raise _query_error(error, sql, sql) from None
        self._declare(sql if all(_PLAIN.match(each.query) for each in statements) else None)
        for statement in statements:
            try:
                reader = self._run(statement, sql, params)
                if reader is not None:
                    with closing(reader):
                        batches = self._whole(reader, statement, sql)
                        yield pa.RecordBatchReader.from_batches(_plain(reader.schema), batches)
            finally:
                self._scans.end()

    def is_complete(self, sql: str) -> bool:
        """Return whether a text ends with a whole statement."""
        try:
            statements = self._connection.extract_statements(sql)
        except self._duckdb.Error:
            return sql.rstrip().endswith(";")
        return not statements or sql.rstrip().endswith(";")

    def interruptible(self, work: Callable[[], T]) -> T:
        """Run a function in a new thread, so that Ctrl-C stops its query.

        Args:
            work: The function. If this thread does not get signals, it runs in this thread.

        Raises:
            KeyboardInterrupt: Ctrl-C stopped the query.
        """
        import signal
        from threading import current_thread, main_thread

        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or before is not signal.default_int_handler:
            return work()
        stopped = False

        def stop(*_: object) -> None:
            nonlocal stopped
            stopped = True
            self._scans.stop()
            self._connection.interrupt()

        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 -- raised below
                errors.append(error)

        signal.signal(signal.SIGINT, stop)
        try:
            thread = Thread(target=run)
            thread.start()
            while thread.is_alive():
                thread.join(_INTERRUPT_S)
                if stopped:  # an interrupt between two queries has no effect: interrupt again
                    self._scans.stop()
                    self._connection.interrupt()
        finally:
            signal.signal(signal.SIGINT, before)
            self._scans.end()  # so that `stop` does not stop the next query
        if stopped:
            raise KeyboardInterrupt
        if errors:
            raise errors.pop()
        return results.pop()

    # ---- inside ----

    def _begin(self, declare: Callable[[], None], **settings: str) -> None:
        """Connect, and declare the tables and views that queries may read.

        Args:
            declare: Declares the tables and views.
            settings: More settings of DuckDB than `_SETTINGS`.
        """
        self._duckdb = _duckdb()
        self._connection = self._duckdb.connect(config=_SETTINGS | settings)
        # With `python -c`, DuckDB would print a progress bar on the standard output.
        self._connection.execute("set enable_progress_bar = false")
        self._scans = Scans()
        self._undeclared: dict[str, tuple[str, Callable[[], object]]] = {}
        # This also runs at the interpreter's exit: after it, no thread of DuckDB may call Python.
        self._end = weakref.finalize(self, _end, self._connection, self._scans)
        self._querying = Lock()
        self._rows = self._duckdb.ExpectedResultType.QUERY_RESULT
        self.interruptible(declare)
        self._connection.execute("set lock_configuration = true")

    def _declare_tables(self, tables: TraceTables) -> None:
        """Remember how to declare each table and view. Queries declare the names they mention."""

        def register(table: TableType) -> None:
            self._connection.register(table.name, LazyTable(table, tables, self._scans))

        for table in TABLES.values():
            self._undeclared[table.name] = "", partial(register, table)
        for view in VIEWS:
            text, name = view.statement, view.name
            if name == "thread_names" and tables.leaves_threads_out:
                # Holders and wakers outside of the scope have names too.
                self._undeclared[ALL_THREADS.name] = "", partial(register, ALL_THREADS)
                text = f"create view {name} as {THREAD_NAMES.format(ALL_THREADS.name)}"
            self._undeclared[name] = text, partial(self._connection.execute, text)

    def _declare(self, sql: str | None = None) -> bool:
        """Declare the tables and views that a query may read, or all of them without a query.

        Returns:
            Whether something was declared.
        """
        wanted = set(self._undeclared)
        if sql is not None:
            words = set(_WORD.findall(sql.lower()))
            if words.isdisjoint(_LISTS) and not any(w.startswith(_INTERNAL) for w in words):
                wanted &= words
                for name in reversed(self._undeclared):  # views read only tables and views before
                    if name in wanted:
                        words = set(_WORD.findall(self._undeclared[name][0]))
                        wanted |= words & self._undeclared.keys()
        for name in [name for name in self._undeclared if name in wanted]:
            self._undeclared.pop(name)[1]()
        return bool(wanted)

    def _query(self, sql: str, params: Params) -> pa.Table:
        table = pa.table({})
        with self._querying, closing(self.results(sql, params)) as results:
            for reader in results:
                table = reader.read_all()
        return table

    def _run(self, statement: Any, sql: str, params: Params) -> pa.RecordBatchReader | None:
        """Run one statement and return its rows; None if it returns no rows."""
        values = _values(params, statement.named_parameters)
        try:
            if list(statement.expected_result_type) != [self._rows]:
                self._connection.execute(statement.query, values)
                return None
            return self._connection.sql(statement.query, params=values).to_arrow_reader(_ROWS)
        except self._duckdb.Error as error:
            if self._is_unknown(error) and self._declare():
                return self._run(statement, sql, params)
            raise self._explained(error, statement, sql, values) from None

    def _is_unknown(self, error: Exception) -> bool:
        """Return whether an error is about a name. DuckDB looks names up before a query runs."""
        return isinstance(error, self._duckdb.BinderException | self._duckdb.CatalogException)

    def _explained(
        self, error: Exception, statement: Any, sql: str, values: Any = None
    ) -> PttError:
        """Return an error of a statement with its place in the text."""
        if self._scans.failures:
            return self._scans.failures.pop()
        if self._is_unknown(error) and not _POSITION.search(str(error)):
            # Only `execute` reports the place.
            try:
                self._connection.execute(statement.query, values)
            except self._duckdb.Error as again:
                error = again
        return _query_error(error, statement.query, sql)

    def _whole(
        self, reader: pa.RecordBatchReader, statement: Any, sql: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with sums as 64-bit integers."""
        schema = _plain(reader.schema)
        try:
            for batch in reader:
                yield batch.cast(schema)
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            if isinstance(error, pa.ArrowInvalid) and not self._scans.failures:
                raise QueryError(f"{error}: cast it to double") from None
            raise self._explained(error, statement, sql) from None


def _values(params: Params, wanted: Collection[str]) -> Any:
    """Return the values of a statement's parameters; None if it has none."""
    if not wanted or params is None:
        return None
    if isinstance(params, Mapping):
        return {name: value for name, value in params.items() if name in wanted}
    if isinstance(params, str):
        raise UsageError(f"params must be a list of values, such as [{params!r}]")
    return list(params)


def _end(connection: Any, scans: Scans) -> None:
    """Close a connection after all threads have left its scans."""
    connection.interrupt()
    scans.end()
    connection.close()


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema with 64-bit integers in place of the 128-bit sums of DuckDB."""
    wide = pa.decimal128(38, 0)
    fields = [field.with_type(pa.int64()) if field.type == wide else field for field in schema]
    return pa.schema(fields)


def view_columns() -> dict[str, list[str]]:
    """Return the columns of each view, and of each macro that returns a table."""
    return {name: schema.names for name, schema in view_schemas().items()}


def view_schemas() -> dict[str, pa.Schema]:
    """Return the schema of each view, and of each macro that returns a table."""
    connection = _duckdb().connect()
    for table in TABLES.values():
        connection.register(table.name, table.schema().empty_table())
    schemas = {}
    for view in VIEWS:
        connection.execute(view.statement)
        if not view.value:
            arguments = f"({', '.join('0' for _ in view.parameters)})" if view.parameters else ""
            reader = connection.sql(f"from {view.name}{arguments}").to_arrow_reader(1)
            schemas[view.name] = _plain(reader.schema)
            reader.close()
    connection.close()
    return schemas


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise PttError("SQL needs DuckDB, which is not installed: pip install duckdb") from None
    return duckdb


def _query_error(error: Exception, statement: str, sql: str) -> QueryError:
    """Return an error of DuckDB in one line, with its place in the whole query."""
    text = str(error)
    line, column = 0, 0
    place = _POSITION.search(text)
    if place is not None:
        line, column = int(place[1]), _column(text, place, statement)
        before = sql[: max(sql.find(statement), 0)]
        if line == 1:
            column += len(before.rpartition("\n")[2])
        line += before.count("\n")
    head = text.partition("\n\nLINE ")[0]
    what, _, hint = head.partition("\n")
    kind, colon, rest = what.partition(": ")
    if colon and kind.endswith("Error"):
        what = rest
    near = [name for name in re.findall(r'"([^"]+)"', hint) if not name.startswith(_INTERNAL)]
    if near and hint.startswith(("Did you mean", "Candidate bindings")):
        what = f"{what.rstrip('!')}; did you mean {' or '.join(near[:3])}?"
    elif what.startswith("syntax error"):
        what += _misspelt(what, statement)
    return QueryError(what.rstrip("!"), line, column)


def _misspelt(what: str, statement: str) -> str:
    """Return a suggestion for a syntax error if a word is nearly a word of SQL, or empty."""
    place = _NEAR.search(what)
    near = place[1].lower() if place is not None else ""
    words = re.findall(r"\w+", statement.lower())
    at = words.index(near) if near in words else len(words)
    from difflib import get_close_matches

    for word in words[max(at - 1, 0) : at + 1]:
        close = get_close_matches(word, _WORDS, 1, 0.7) if word not in _WORDS else []
        if close:
            return f"; did you mean {close[0]}" + (f" instead of {word}?" if word != near else "?")
    return ""


def _column(text: str, place: re.Match[str], statement: str) -> int:
    """Return the column, from 1, that an arrow in a message points to."""
    shown = place[2]
    pointer = text[place.end() :].lstrip("\n").partition("\n")[0]
    mark = pointer.find("^") - len(f"LINE {place[1]}: ")
    lines = statement.splitlines()
    whole_line = lines[int(place[1]) - 1] if int(place[1]) <= len(lines) else ""
    # DuckDB shows only a part of a long line, between dots.
    left = len(shown) - len(shown.removeprefix("..."))
    part = shown.removeprefix("...").removesuffix("...")
    shift = max(whole_line.find(part), 0) - left
    return max(mark + shift + 1, 1)
