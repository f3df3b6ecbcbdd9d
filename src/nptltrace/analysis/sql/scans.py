"""Scans: DuckDB reads tables that Python makes, and stops when nobody wants the other rows.

A scan runs only in the thread of DuckDB that asks for rows: no pool reads ahead. The caller of a
query ends its scans. After that, no thread is in a scan.
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

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# Rows of a batch for a thread of DuckDB.
_ROWS = 1 << 16
_BOUND = re.compile(r"\(ts_ns (>=|>|<=|<|==) (-?\d+)\)")


class Scans:
    """The scans of a connection.

    Attributes:
        failures: Errors of tables that could not be made. DuckDB would change their text.
    """

    def __init__(self) -> None:
        self.failures: list[PttError] = []
        self._lock = Lock()
        self._running: list[_Scan] = []
        self._unwanted = Event()

    def begin(self, pieces: Iterable[pa.Table], schema: pa.Schema, condition: Any) -> _Scan:
        """Begin a scan.

        Args:
            pieces: The rows, with all columns that the condition needs.
            schema: The columns to return.
            condition: An Arrow expression that the rows must fulfil, or None.
        """
        scan = _Scan(self._batches(pieces, schema, condition), schema, self._unwanted)
        with self._lock:
            self._running.append(scan)
        return scan

    def stop(self) -> None:
        """Make all scans fail soon: running scans, and scans that begin before `end`."""
        self._unwanted.set()

    def end(self) -> None:
        """End all scans. When this returns, no scan runs."""
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
    """The rows of one table for DuckDB. One thread reads them at a time.

    Args:
        batches: The rows.
        schema: The columns of the rows.
        unwanted: Is set when nobody wants the rows any more.
    """

    def __init__(
        self, batches: Generator[pa.RecordBatch, None, None], schema: pa.Schema, unwanted: Event
    ) -> None:
        self._batches, self._schema, self._unwanted = batches, schema, unwanted
        self._lock = Lock()
        self._closed = False

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, as DuckDB expects it."""
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
        """End the scan and everything that it began, after its threads have left it."""
        with self._lock:
            self._closed = True
            self._batches.close()


class LazyTable(ds.Dataset):  # type: ignore[misc] # Arrow has no types
    """A table that is made when DuckDB reads it.

    DuckDB uses only the schema and the scanner of an Arrow data set.

    Args:
        table: The table.
        tables: Makes the table.
        scans: Keeps the scans of the table.
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
        """Begin a scan. DuckDB calls only `to_reader` of the result.

        Args:
            columns: The columns to return; None for all.
            filter: An Arrow expression that the rows must fulfil, or None.
        """
        wanted = self._table.names if columns is None else columns
        whole = self._table.schema()
        schema = pa.schema([whole.field(name) for name in wanted])
        mentioned = set() if filter is None else set(_WORD.findall(str(filter)))
        needed = set(wanted) | mentioned.intersection(self._table.names)
        names = self._table.schema(needed).names
        pieces = self._tables.batches(self._table.name, names, _window(filter))
        return self._scans.begin(pieces, schema, filter)


def _part(batch: pa.RecordBatch, names: list[str], condition: Any) -> list[pa.RecordBatch]:
    """Return columns of the rows that fulfil a condition, or of all rows without a condition."""
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


def _window(expression: Any) -> Window | None:
    """Return a range of time; outside of this range, the expression is false for certain."""
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
