"""How DuckDB reads tables that Python makes, and how that ends when nobody wants the rest.

A scan runs in the thread of DuckDB that asks for rows, and nowhere else: no pool reads ahead of
it. Whoever ran a query ends its scans, and no thread is in one of them afterwards.
"""

from __future__ import annotations

import re
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from nptltrace.analysis.model import Window
from nptltrace.errors import PttError
from nptltrace.trace.reading.cancellation import CancelledError, ensure_wanted, stoppable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from nptltrace.analysis.sql.schema import TableType
    from nptltrace.analysis.sql.tables import TraceTables

__all__ = ["LazyTable", "Scans"]

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# Rows that a thread of DuckDB gets at once.
_ROWS = 1 << 16
_BOUND = re.compile(r"\(ts_ns (>=|>|<=|<|==) (-?\d+)\)")


class Scans:
    """The scans of a connection.

    Attributes:
        failures: Why tables could not be made, which DuckDB would wrap in words of its own.
    """

    def __init__(self) -> None:
        self.failures: list[PttError] = []
        self._lock = Lock()
        self._running: list[_Scan] = []
        self._unwanted = Event()

    def begin(self, pieces: Iterable[pa.Table], schema: pa.Schema, condition: Any) -> _Scan:
        """Begin to read.

        Args:
            pieces: The rows, with what the condition needs.
            schema: The columns to give.
            condition: An expression that the rows must fulfil, or None.
        """
        scan = _Scan(self._batches(pieces, schema, condition), schema, self._unwanted)
        with self._lock:
            self._running.append(scan)
        return scan

    def stop(self) -> None:
        """Have the scans that run fail soon, and those that begin until `end`."""
        self._unwanted.set()

    def end(self) -> None:
        """End all scans; when this returns, none runs."""
        self.stop()
        with self._lock:
            running, self._running = self._running, []
        for scan in running:
            scan.close()
        self._unwanted.clear()

    def _batches(
        self, pieces: Iterable[pa.Table], schema: pa.Schema, condition: Any
    ) -> Generator[pa.RecordBatch, None, None]:
        try:
            for piece in pieces:
                for batch in piece.to_batches(max_chunksize=_ROWS):
                    ensure_wanted()
                    yield from _part(batch, schema.names, condition)
        except PttError as error:
            self.failures.append(error)
            raise


class _Scan:
    """Rows of one table, pulled by one thread of DuckDB at a time.

    Args:
        batches: The rows.
        schema: Their columns.
        unwanted: Is set when they are not wanted any more.
    """

    def __init__(
        self, batches: Generator[pa.RecordBatch, None, None], schema: pa.Schema, unwanted: Event
    ) -> None:
        self._batches, self._schema, self._unwanted = batches, schema, unwanted
        self._lock = Lock()
        self._closed = False

    def to_reader(self) -> pa.RecordBatchReader:
        """Return it as DuckDB reads it."""
        return pa.RecordBatchReader.from_batches(self._schema, self)

    def __iter__(self) -> _Scan:
        """Return itself, as iterators do."""
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next rows."""
        with self._lock, stoppable(self._unwanted):
            if self._closed:
                raise CancelledError("the query is over")
            return next(self._batches)

    def close(self) -> None:
        """End it, with all that it began; waits for the threads in it."""
        with self._lock:
            self._closed = True
            self._batches.close()


class LazyTable(ds.Dataset):  # type: ignore[misc] # Arrow has no types
    """A table that is made when DuckDB reads it.

    DuckDB asks a data set which columns and rows it needs; nothing else of one is used here.

    Args:
        table: Which table.
        tables: Makes it.
        scans: Where what reads it is kept.
    """

    def __init__(self, table: TableType, tables: TraceTables, scans: Scans) -> None:
        self._table, self._tables, self._scans = table, tables, scans

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema()

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: Any = None,  # noqa: A002 -- as Arrow calls it
        **_: Any,
    ) -> _Scan:
        """Begin to read; DuckDB asks what comes back for its reader only.

        Args:
            columns: Which columns.
            filter: An expression that the rows must fulfil.
        """
        wanted = self._table.names if columns is None else columns
        whole = self._table.schema()
        schema = pa.schema([whole.field(name) for name in wanted])
        needed = set(wanted) | _mentioned(filter, self._table.names)
        names = self._table.schema(needed).names
        pieces = self._tables.batches(self._table.name, names, _window(filter))
        return self._scans.begin(pieces, schema, filter)


def _part(batch: pa.RecordBatch, names: list[str], condition: Any) -> list[pa.RecordBatch]:
    """Return columns of the rows that fulfil a condition, if there is one, in their order."""
    if condition is None:
        return [batch.select(names)]
    from pyarrow import acero

    steps = [
        acero.Declaration(
            "table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
        ),
        acero.Declaration("filter", acero.FilterNodeOptions(condition)),
    ]
    kept = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    return list(kept.select(names).to_batches())


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
