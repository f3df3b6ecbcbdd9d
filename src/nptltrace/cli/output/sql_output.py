"""Prints the result of a query as text, JSON, JSON lines or CSV, or writes it to a file."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TextIO

from nptltrace._escaping import for_terminal
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

__all__ = ["write", "write_file"]

# Rows that determine the widths of columns in text.
_MEASURED = 1000
_WIDEST = 60
_SUFFIXES = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".txt": "text"}


def write(result: pa.RecordBatchReader, style: str, out: TextIO) -> int:
    """Print the rows of a result, batch by batch, and return their number.

    Args:
        result: The rows.
        style: `text`, `json`, `jsonl` or `csv`.
        out: The output.
    """
    writers = {"text": _text, "json": _json, "jsonl": _jsonl, "csv": _csv}
    return writers[style](_with_addresses(result), out)


def write_file(result: pa.RecordBatchReader, path: Path, *, force: bool) -> int:
    """Write a result to a new file, in the format of its suffix; return the number of rows.

    Raises:
        UsageError: The file exists, or its suffix names no format.
    """
    import io

    from nptltrace.export.writing.target import Target

    style = _SUFFIXES.get(path.suffix)
    if style is None and path.suffix != ".parquet":
        known = ", ".join([".parquet", *_SUFFIXES])
        raise UsageError(f"{path}: the name must end in one of {known}")
    with Target(path, force=force).file() as file:
        if style is None:
            return _parquet(result, file)
        text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        rows = write(result, style, text)
        text.detach()
        return rows


def _parquet(result: pa.RecordBatchReader, file: Any) -> int:
    from pyarrow import parquet

    rows = 0
    with parquet.ParquetWriter(file, result.schema, compression="zstd") as writer:
        for batch in result:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _with_addresses(result: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return a result with addresses as text, `0x…`, like in all commands.

    A column has addresses if its name is a name of addresses and its type is uint64.
    """
    import pyarrow as pa

    from nptltrace.analysis.sql.schema import ADDRESSES

    schema = result.schema
    chosen = {
        number
        for number, field in enumerate(schema)
        if field.name in ADDRESSES and field.type == pa.uint64()
    }
    if not chosen:
        return result
    fields = [pa.field(f.name, pa.string()) if n in chosen else f for n, f in enumerate(schema)]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in result:
            columns = [_hex(c) if n in chosen else c for n, c in enumerate(batch.columns)]
            yield pa.record_batch(columns, schema=pa.schema(fields))

    return pa.RecordBatchReader.from_batches(pa.schema(fields), batches())


def _hex(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if v is None else f"{v:#x}" for v in column.to_pylist()], pa.string())


def _unique(names: list[str]) -> list[str]:
    """Return the names of columns, with a number added to repeated names."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


# ---- text ----


def _text(result: pa.RecordBatchReader, out: TextIO) -> int:
    rows = (row for batch in result for row in zip(*(c.to_pylist() for c in batch), strict=True))
    first = [_cells(row) for row in islice(rows, _MEASURED)]
    names = result.schema.names
    widths = [
        min(max(len(name), *(len(row[i]) for row in first), 1), _WIDEST)
        for i, name in enumerate(names)
    ]
    right = [_is_number(field.type) for field in result.schema]
    out.write(_line(names, widths, right))
    count = 0
    for row in chain(first, map(_cells, rows)):
        out.write(_line(row, widths, right))
        count += 1
    return count


def _cells(row: tuple[Any, ...]) -> list[str]:
    return [_cell(value) for value in row]


def _cell(value: Any) -> str:
    """Return a value as one line of text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return for_terminal(str(value))


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip() + "\n"


def _is_number(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


# ---- for programs ----


def _json(result: pa.RecordBatchReader, out: TextIO) -> int:
    count = 0
    out.write("[")
    for row in _named(result):
        out.write(",\n  " if count else "\n  ")
        out.write(json.dumps(row, ensure_ascii=False))
        count += 1
    out.write("\n]\n" if count else "]\n")
    return count


def _jsonl(result: pa.RecordBatchReader, out: TextIO) -> int:
    count = 0
    for row in _named(result):
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


def _named(result: pa.RecordBatchReader) -> Iterator[dict[str, Any]]:
    """Yield rows as dictionaries by name of column."""
    names = _unique(result.schema.names)
    for batch in result:
        for row in batch.rename_columns(names).to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Return a value as a type that JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value if value is None or isinstance(value, int | str) else str(value)


def _csv(result: pa.RecordBatchReader, out: TextIO) -> int:
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.schema.names)
    count = 0
    for batch in result:
        rows = zip(*(column.to_pylist() for column in batch), strict=True)
        writer.writerows([["" if v is None else _field(v) for v in row] for row in rows])
        count += batch.num_rows
    return count


def _field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        json.dumps(_plain(value), ensure_ascii=False) if isinstance(value, list | dict) else value
    )
