"""SQL over the tables of a traceset, by DuckDB.

Every table is there from the start, and is made when a query first reads it; of events only the
columns and the stretch of time are read that the query asks for. A query reaches nothing but these
tables: no files, no network, no settings.
"""

from __future__ import annotations

import atexit
import re
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds

from nptltrace.analysis.model import Window
from nptltrace.analysis.schema import TABLES
from nptltrace.analysis.views import VIEWS
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nptltrace.analysis.schema import TableType
    from nptltrace.analysis.tables import TraceTables

__all__ = ["Database", "QueryError", "view_columns"]

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    # It cannot know that events are many and call sites few: joins stay as they are written.
    "disabled_optimizers": "join_order,build_side_probe_side",
}
# How often it is looked whether a query that was interrupted goes on, or another one.
_LOOK_S = 0.1
_POSITION = re.compile(r"^LINE (\d+): (.*)$", re.MULTILINE)
_INTERNAL = ("pg_", "duckdb_", "sqlite_", "pragma_")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BOUND = re.compile(r"\(ts_ns (>=|>|<=|<|==) (-?\d+)\)")


T = TypeVar("T")


class QueryError(UsageError):
    """A query that cannot be answered.

    Args:
        what: What is wrong, in one line.
        line: In which line of the query, from 1; 0 when unknown.
        column: In which column, from 1.
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
        self._duckdb = _duckdb()
        self._connection = self._duckdb.connect(config=_SETTINGS)
        # Left to the end of the interpreter it would complain of what it still holds.
        closing = weakref.WeakMethod(self.close)
        atexit.register(lambda: (method := closing()) and method())
        self._rows = self._duckdb.ExpectedResultType.QUERY_RESULT
        self._failures: list[PttError] = []
        for table in TABLES.values():
            self._connection.register(table.name, _Lazy(table, tables, self._failures))
        for view in VIEWS:
            self._connection.execute(view.statement)
        self._connection.execute("set lock_configuration = true")

    def close(self) -> None:
        """Give everything back."""
        self._connection.close()

    def query(self, sql: str) -> pa.Table:
        """Return what a query answers; of several statements, the last that returns rows.

        Args:
            sql: The query.

        Raises:
            QueryError: It cannot be answered.
        """
        return self.interruptible(lambda: self._query(sql))

    def results(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        """Run the statements of a query, and yield what those return that return rows.

        A result must be read before the next one is asked for.

        Args:
            sql: The query.

        Raises:
            QueryError: It cannot be answered.
        """
        for statement in self._statements(sql):
            reader = self._run(statement, sql)
            if reader is not None:
                batches = self._whole(reader, statement, sql)
                try:
                    yield pa.RecordBatchReader.from_batches(_plain(reader.schema), batches)
                finally:
                    reader.close()

    def is_complete(self, sql: str) -> bool:
        """Return whether a text ends with a whole statement."""
        try:
            found = self._connection.extract_statements(sql)
        except self._duckdb.Error:
            return sql.rstrip().endswith(";")
        return not found or sql.rstrip().endswith(";")

    def interruptible(self, work: Callable[[], T]) -> T:
        """Do something in a thread of its own, so that Ctrl-C stops the query that it runs.

        Args:
            work: What to do; called in this thread where that cannot receive signals.

        Raises:
            KeyboardInterrupt: It was stopped.
        """
        import signal
        from concurrent.futures import ThreadPoolExecutor, wait
        from threading import current_thread, main_thread

        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or before is not signal.default_int_handler:
            return work()
        stopped = False

        def stop(*_: object) -> None:
            nonlocal stopped
            stopped = True
            self._connection.interrupt()

        signal.signal(signal.SIGINT, stop)
        try:
            with ThreadPoolExecutor(1) as pool:
                future = pool.submit(work)
                while wait([future], _LOOK_S).not_done:
                    if stopped:  # what came between two queries has stopped none
                        self._connection.interrupt()
        finally:
            signal.signal(signal.SIGINT, before)
        if stopped:
            raise KeyboardInterrupt
        try:
            return future.result()
        finally:
            del future  # an error in it would refer to itself by this frame

    # ---- inside ----

    def _query(self, sql: str) -> pa.Table:
        found = None
        for reader in self.results(sql):
            found = reader.read_all()
        return pa.table({}) if found is None else found

    def _statements(self, sql: str) -> list[Any]:
        try:
            return list(self._connection.extract_statements(sql))
        except self._duckdb.Error as error:
            raise _query_error(error, sql, sql) from None

    def _run(self, statement: Any, sql: str) -> pa.RecordBatchReader | None:
        """Run one statement; None for one that returns no rows."""
        failed = self._duckdb.Error
        try:
            if list(statement.expected_result_type) != [self._rows]:
                self._connection.execute(statement.query)
                return None
            return self._connection.sql(statement.query).to_arrow_reader()
        except failed as error:
            raise self._explained(error, statement, sql) from None

    def _explained(self, error: Exception, statement: Any, sql: str) -> PttError:
        """Return an error with its place, which is known where the statement is just executed."""
        if self._failures:
            return self._failures.pop()
        # Names are looked up before anything runs, so it fails again at once.
        unknown = isinstance(error, self._duckdb.BinderException | self._duckdb.CatalogException)
        if unknown and not _POSITION.search(str(error)):
            try:
                self._connection.execute(statement.query)
            except self._duckdb.Error as again:
                error = again
        return _query_error(error, statement.query, sql)

    def _whole(
        self, reader: pa.RecordBatchReader, statement: Any, sql: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, sums as plain integers."""
        schema = _plain(reader.schema)
        try:
            for batch in reader:
                yield batch.cast(schema)
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            if isinstance(error, pa.ArrowInvalid) and not self._failures:
                raise QueryError(f"{error}: cast it to double") from None
            raise self._explained(error, statement, sql) from None


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which the 128 bits that DuckDB adds up in are 64."""
    wide = pa.decimal128(38, 0)
    fields = [field.with_type(pa.int64()) if field.type == wide else field for field in schema]
    return pa.schema(fields)


def view_columns() -> dict[str, list[str]]:
    """Return the columns of each view, and of each macro that returns a table."""
    connection = _duckdb().connect()
    for table in TABLES.values():
        connection.register(table.name, table.schema().empty_table())
    columns = {}
    for view in VIEWS:
        connection.execute(view.statement)
        if not view.value:
            arguments = f"({', '.join('0' for _ in view.parameters)})" if view.parameters else ""
            found = connection.execute(f"describe from {view.name}{arguments}").fetchall()
            columns[view.name] = [row[0] for row in found]
    connection.close()
    return columns


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise PttError("SQL needs DuckDB, which is not installed: pip install duckdb") from None
    return duckdb


def _query_error(error: Exception, statement: str, sql: str) -> QueryError:
    """Return an error of DuckDB in one line, with the place in the whole text."""
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
    return QueryError(what.rstrip("!"), line, column)


def _column(text: str, place: re.Match[str], statement: str) -> int:
    """Return the column, from 1, that an arrow in a message points to."""
    shown = place[2]
    pointer = text[place.end() :].lstrip("\n").partition("\n")[0]
    mark = pointer.find("^") - len(f"LINE {place[1]}: ")
    lines = statement.splitlines()
    given = lines[int(place[1]) - 1] if int(place[1]) <= len(lines) else ""
    # Of a long line only a part around the place is shown, between dots.
    left = len(shown) - len(shown.removeprefix("..."))
    part = shown.removeprefix("...").removesuffix("...")
    shift = max(given.find(part), 0) - left
    return max(mark + shift + 1, 1)


class _Lazy(ds.Dataset):  # type: ignore[misc] # Arrow has no types
    """A table that is made when DuckDB reads it.

    DuckDB tells a data set which columns and rows it needs; nothing else of one is used here.

    Args:
        table: Which table.
        tables: Makes it.
        failures: Is given why it cannot be made, which DuckDB would wrap in words of its own.
    """

    def __init__(self, table: TableType, tables: TraceTables, failures: list[PttError]) -> None:
        self._table, self._tables, self._failures = table, tables, failures

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema()

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: Any = None,  # noqa: A002 -- as Arrow calls it
        **_: Any,
    ) -> ds.Scanner:
        """Begin to read.

        Args:
            columns: Which columns.
            filter: An expression that the rows must fulfil.
        """
        wanted = self._table.names if columns is None else columns
        needed = set(wanted) | _mentioned(filter, self._table.names)
        schema = self._table.schema(needed)
        pieces = self._tables.batches(self._table.name, schema.names, _window(filter))
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(pieces))
        return ds.Scanner.from_batches(reader, columns=wanted, filter=filter)

    def _batches(self, pieces: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        try:
            for piece in pieces:
                yield from piece.to_batches()
        except PttError as error:
            self._failures.append(error)
            raise


def _mentioned(expression: Any, names: list[str]) -> set[str]:
    """Return which columns an expression may need."""
    if expression is None:
        return set()
    words = set(re.findall(r"\w+", str(expression)))
    return words.intersection(names)


def _window(expression: Any) -> Window | None:
    """Return the stretch of time outside of which an expression is surely false."""
    if expression is None:
        return None
    text = _QUOTED.sub('""', str(expression))
    if re.search(r"\b(or|invert|if_else|or_kleene|case_when)\b", text):
        return None
    begins, ends = [], []
    for sign, number in _BOUND.findall(text):
        value = int(number)
        if sign in {">", ">=", "=="}:
            begins.append(value + (sign == ">"))
        if sign in {"<", "<=", "=="}:
            ends.append(value + (sign != "<"))
    return Window(max(begins, default=None), min(ends, default=None))
