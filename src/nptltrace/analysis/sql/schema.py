"""Arrow schemas of the tables of a trace, for `ptt sql`, exports and `Traceset.table()`.

`catalog/tables.toml` declares the tables and their columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace._dataclasses import dataclass, replace
from nptltrace._version import __version__
from nptltrace.catalog import tables
from nptltrace.catalog.tables import SCHEMA_VERSION
from nptltrace.errors import UsageError, near
from nptltrace.trace.reading.columns import FIELD_NAMES, column_of_field

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ADDRESSES", "ALL_THREADS", "EVENT_FIELDS", "SCHEMA_VERSION", "TABLES", "Column", "TableType",
    "table_type",
]  # fmt: skip

_WORD = pa.dictionary(pa.int32(), pa.string())
_EVENT = pa.struct({
    "ts_ns": pa.int64(), "tid": pa.uint32(), "text": pa.string(), "site": pa.string(),
    "object": pa.string(),
})  # fmt: skip
_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "string": pa.string(),
    "word": _WORD,
    "list of uint32": pa.list_(pa.uint32()),
    "list of string": pa.list_(pa.string()),
    "list of event": pa.list_(_EVENT),
}

EVENT_FIELDS = {column_of_field(name): name for name in FIELD_NAMES}
"""Names of the fields of events, by the names of their columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Name of the column.
        type: A key of `_TYPES`. A `word` is one of a few strings.
        meaning: Meaning of the column, and when it is null.
        unit: `ns`, `address`, `id`, or empty.
    """

    name: str
    type: str
    meaning: str
    unit: str = ""

    @property
    def field(self) -> pa.Field:
        """The column in an Arrow schema."""
        about = {"meaning": self.meaning} | ({"unit": self.unit} if self.unit else {})
        return pa.field(self.name, _TYPES[self.type], metadata=about)


@dataclass(frozen=True, slots=True)
class TableType:
    """A table.

    Attributes:
        name: Name of the table.
        row: Meaning of a row.
        columns: The columns.
    """

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def schema(self, columns: Iterable[str] | None = None) -> pa.Schema:
        """Return the Arrow schema.

        Args:
            columns: Names of columns to choose; None for all. Their order is the table's order.

        Raises:
            UsageError: The table has no such column, or `columns` is a single text.
        """
        if isinstance(columns, str):
            raise UsageError(f"columns must be a list of names, such as [{columns!r}]")
        chosen = None if columns is None else set(columns)
        unknown = sorted((chosen or set()).difference(self.names))
        if unknown:
            raise UsageError(
                f"table {self.name} has no column {unknown[0]!r}"
                + (near(unknown[0], self.names) or f": it has {', '.join(self.names)}")
            )
        fields = [c.field for c in self.columns if chosen is None or c.name in chosen]
        about = {
            "nptltrace.table": self.name,
            "nptltrace.schema_version": str(SCHEMA_VERSION),
            "nptltrace.version": __version__,
        }
        return pa.schema(fields, metadata=about)


# Columns for the fields of events, after the declared columns.
_FIELDS = tuple(
    Column(
        column,
        "string" if FIELD_NAMES[name] else "int64",
        f"field `{name}` of the event; null where it has none",
        "ns" if name.endswith("_ns") else "",
    )
    for column, name in EVENT_FIELDS.items()
)

TABLES: dict[str, TableType] = {
    name: TableType(
        name,
        row,
        (
            *(Column(column, type_, meaning, unit) for column, type_, unit, meaning in columns),
            *(_FIELDS if name == "events" else ()),
        ),
    )
    for name, row, columns in tables.TABLES
}
ALL_THREADS = replace(TABLES["threads"], name="all_threads")
"""The table `threads`, with the threads outside of the scope."""

ADDRESSES = frozenset(c.name for t in TABLES.values() for c in t.columns if c.unit == "address")
"""Names of the columns with addresses."""


def table_type(name: str) -> TableType:
    """Return a table by its name.

    Raises:
        UsageError: There is no table with this name.
    """
    table = TABLES.get(name)
    if table is None:
        known = near(name, TABLES) or f": there are {', '.join(TABLES)}"
        raise UsageError(f"no table {name!r}{known}")
    return table
