"""A report as a table with the columns and the order that the user chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.errors import UsageError, near

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

__all__ = ["report_table"]

_LABELS = {
    "object": ("kind", "name"),
    "thread": ("tid", "name"),
    "site": ("site",),
    "thread,object": ("tid", "thread_name", "object_name"),
    "stack": ("stack",),
}
_SHOWN = ("waits", "wait_ns", "wait_max_ns", "holds", "hold_ns")


def report_table(
    rows: Sequence[Sequence[Any]], *, by: str, columns: Sequence[str], sort: str | None, short: bool
) -> pa.Table:
    """Return rows of a report as a table.

    Args:
        rows: The names of the columns, and then the rows; `analysis.report.documents.report_rows`.
        by: The value of `--by`.
        columns: Names of columns; empty: the most important columns if `short`, else all.
        sort: Column to sort by: numbers from the largest, text in the order of the alphabet.
        short: Choose the most important columns if `columns` is empty.

    Returns:
        An Arrow table with the chosen columns.

    Raises:
        UsageError: There is no such column.
    """
    import pyarrow as pa

    header, *values = rows
    at = {name: number for number, name in enumerate(header)}
    for name in (*columns, *([sort] if sort else [])):
        if name not in at:
            hint = near(name, at) or f": choose from {', '.join(at)}"
            raise UsageError(f"the report by {by} has no column {name!r}{hint}")
    if sort:
        values.sort(key=lambda row: _rank(row[at[sort]]))
    chosen = list(columns) or (_short(at, by, sort) if short else list(at))
    return pa.table({name: pa.array([row[at[name]] for row in values]) for name in chosen})


def _rank(value: Any) -> tuple[bool, Any]:
    if isinstance(value, str):
        return (not value, value)
    return (value is None, -(value or 0))


def _short(at: dict[str, int], by: str, sort: str | None) -> list[str]:
    names = [*_LABELS[by], *_SHOWN, *([sort] if sort else [])]
    return list(dict.fromkeys(name for name in names if name in at))
