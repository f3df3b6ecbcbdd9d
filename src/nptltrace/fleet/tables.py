"""The tables of a store: those of a trace in types that every query engine reads, and sums of them.

Unsigned numbers become signed ones of 64 bits, words become plain strings: Spark reads an unsigned
column of 64 bits as decimals, and Delta has none. Each row names the addition that it came with:
only rows of additions that `runs` lists are part of the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.sql.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ADDITION", "COMPUTED", "DAY", "DETAILS", "LABEL", "LATER", "STORED", "StoredTable",
    "as_stored",
]  # fmt: skip

ADDITION = "addition"
DAY = "day"  # by which the tables of details are divided into folders
LABEL = "label_"  # what the columns of labels begin with, in `runs`

# Left out of a stored wait, and what is computed of the others instead.
_DERIVED = {"waits": {"wake_ns", "waker_t_ns"}}
COMPUTED = {"waits": ", dur_ns - held_ns as wake_ns"}
_MORE: dict[str, dict[str, pa.DataType]] = {
    "runs": {"added_unix_ns": pa.int64(), "summary": pa.bool_()},
    "objects": {"lock_key": pa.string()},
    "sites": {"place": pa.string()},
}
_SUMS = {
    "run_id": pa.string(),
    "kind": pa.string(),
    "class": pa.string(),
    "lock_key": pa.string(),
    "stack_id": pa.string(),
    "waits": pa.int64(),
    "wait_ns": pa.int64(),
    "held_ns": pa.int64(),
    "wait_max_ns": pa.int64(),
}
# Tables with rows for each wait or hold, and so all but all of the bytes.
DETAILS = ("waits", "holds", "wakeups", "states")

# Tables that stores of earlier versions do not have.
LATER = ("gil",)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of a store.

    Attributes:
        name: Its name.
        schema: Its columns, but for those of labels.
        row: What a row stands for.
    """

    name: str
    schema: pa.Schema
    row: str

    @property
    def steady(self) -> list[str]:
        """Columns of which a value is near the one before it, and hardly any comes twice."""
        return [
            field.name
            for field in self.schema
            if pa.types.is_int64(field.type)
            and (field.name.endswith("_ns") or field.name in {"wait_id", "chain_id"})
        ]


def _signed(kind: pa.DataType) -> pa.DataType:
    """Return the type that every engine has for a type of a trace's table."""
    if pa.types.is_dictionary(kind):
        return _signed(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return pa.int32() if kind.bit_width < 32 else pa.int64()  # noqa: PLR2004 -- it fits
    if pa.types.is_list(kind):
        return pa.list_(_signed(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _signed(field.type)) for field in kind])
    return kind


def _declared() -> dict[str, StoredTable]:
    stored = {}
    for table in TABLES.values():
        if table.name == "events":
            continue
        left_out = _DERIVED.get(table.name, set())
        columns = {
            field.name: _signed(field.type)
            for field in table.schema()
            if field.name not in left_out
        } | _MORE.get(table.name, {})
        stored[table.name] = _stored(table.name, columns, table.row)
    row = "what one lock made threads wait at one place: sums of `waits`"
    return stored | {"sums": _stored("sums", _SUMS, row)}


def _stored(name: str, columns: Mapping[str, pa.DataType], row: str) -> StoredTable:
    more = [(ADDITION, pa.string()), *([(DAY, pa.date32())] if name in DETAILS else [])]
    schema = pa.schema([*columns.items(), *more])
    return StoredTable(name, schema, row)


STORED: dict[str, StoredTable] = _declared()


def as_stored(table: StoredTable, rows: pa.Table, more: Mapping[str, pa.Array]) -> pa.Table:
    """Return rows of a trace's table as a store has them.

    Args:
        table: The table.
        rows: Rows of the table of that name in a trace.
        more: Columns that it does not have there.
    """
    columns = [
        _cast(more[field.name] if field.name in more else rows[field.name], field.type)
        for field in table.schema
        if field.name not in {ADDITION, DAY}
    ]
    names = [name for name in table.schema.names if name not in {ADDITION, DAY}]
    return pa.table(columns, names=names)


def _cast(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Of 64 bits all are kept: an address is never so large, a hash may be.
    return column.cast(kind, safe=False)
