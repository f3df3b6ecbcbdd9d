"""The tables of a store: the tables of a trace, in types that every query engine reads, and sums.

Unsigned numbers become signed numbers of 64 bits, and words become plain strings. Spark reads an
unsigned column of 64 bits as decimals, and Delta has no such type. Each row names the addition that
it came with. Only rows of additions that `runs` lists are part of the store.
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
DAY = "day"  # the column that divides the tables of details into folders
LABEL = "label_"  # the prefix of columns of labels in `runs`

# Columns that a store does not keep, and the SQL that computes a column from others.
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
# Tables with rows for each wait or hold. They have nearly all bytes of a store.
DETAILS = ("waits", "holds", "wakeups", "states", "hold_samples")

# Tables that stores of earlier versions do not have.
LATER = ("gil", "hold_samples")


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of a store.

    Attributes:
        name: Name of the table.
        schema: Its columns, without the columns of labels.
        row: The meaning of a row.
    """

    name: str
    schema: pa.Schema
    row: str

    @property
    def steady(self) -> list[str]:
        """The columns with values that differ little from row to row and hardly ever repeat."""
        return [
            field.name
            for field in self.schema
            if pa.types.is_int64(field.type)
            and (field.name.endswith("_ns") or field.name in {"wait_id", "chain_id"})
        ]


def _signed(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column in a store: a type that every engine has."""
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
    """Return rows of a trace's table in the columns and types of a store.

    Args:
        table: The table of the store.
        rows: Rows of the table of that name in a trace.
        more: Columns that only the store has, by name.
    """
    columns = {}
    for field in table.schema:
        if field.name not in {ADDITION, DAY}:
            column = more[field.name] if field.name in more else rows[field.name]
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            # The cast keeps all 64 bits: a hash may use the top bit, an address never does.
            columns[field.name] = column.cast(field.type, safe=False)
    return pa.table(columns)
