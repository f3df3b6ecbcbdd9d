"""Prints the rows of a report as a table: text, JSON, CSV."""

from __future__ import annotations

import json
import sys

import pyarrow as pa

from nptltrace._units import duration
from nptltrace.cli.output import sql_output

__all__ = ["write"]


def write(name: str, title: str, rows: pa.Table, style: str, *, top: int | None) -> None:
    """Print a report.

    Args:
        name: The name of the report, for JSON.
        title: The first line of the text.
        rows: The rows.
        style: `text`, `json` or `csv`.
        top: Number of rows in the text; None for all.
    """
    if style == "json":
        text = json.dumps({"report": name, "rows": rows.to_pylist()}, indent=2, default=str)
        sys.stdout.write(f"{text}\n")
    elif style == "csv":
        sql_output.write(rows.to_reader(), "csv", sys.stdout)
    else:
        sys.stdout.write(f"{title}\n\n")
        sql_output.write(_readable(rows.slice(0, top)).to_reader(), "text", sys.stdout)
        if top is not None and rows.num_rows > top:
            sys.stdout.write(f"and {rows.num_rows - top} more (-n 0 shows all)\n")


def _readable(rows: pa.Table) -> pa.Table:
    """Return rows with durations as text."""
    columns = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if name.endswith("_ns") and pa.types.is_integer(column.type):
            texts = ["-" if ns is None else duration(ns) for ns in column.to_pylist()]
            width = max(map(len, texts), default=0)
            columns[name.removesuffix("_ns")] = pa.array([text.rjust(width) for text in texts])
        else:
            columns[name] = column
    return pa.table(columns)
