"""CSV: a directory with a file for each table, or a single file for a single table."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from nptltrace._units import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

OPTIONS = ("tables",)


def write(what: Export, out: Target) -> str:
    """Write tables as CSV. A list becomes JSON, and null becomes an empty field.

    Several tables become a directory of files. A single table becomes a file.

    Returns:
        The numbers of rows and tables, as text.

    Raises:
        UsageError: A table is unknown, or several tables go to standard output.
    """
    from nptltrace.analysis.answers import all_tables
    from nptltrace.analysis.sql.schema import TABLES, table_type
    from nptltrace.errors import UsageError

    chosen = [table_type(name) for name in dict.fromkeys(what.tables)] or list(TABLES.values())
    if out.path is None and len(chosen) > 1:
        raise UsageError("standard output takes one table: choose it with --table")
    rows = 0
    with ExitStack() as stack:
        files: dict[str, BinaryIO]
        if len(chosen) == 1:
            files = {chosen[0].name: stack.enter_context(out.file())}
        else:
            directory = stack.enter_context(out.directory(rf"({'|'.join(TABLES)})\.csv"))
            files = {
                table.name: stack.enter_context((directory / f"{table.name}.csv").open("wb"))
                for table in chosen
            }
        writers = {t.name: stack.enter_context(_Writer(files[t.name], t.schema())) for t in chosen}
        tables = all_tables(what.traceset, what.symbols, what.scope)
        for name, piece in tables.pieces(list(writers)):
            writers[name].write(piece)
            rows += piece.num_rows
    return f"{rows} {plural(rows, 'row')} of {len(chosen)} {plural(len(chosen), 'table')}"


class _Writer:
    """Writes the rows of one table to an open file."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        from pyarrow import csv

        self._writer = csv.CSVWriter(file, _flat_schema(schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, piece: pa.Table) -> None:
        """Append rows."""
        import pyarrow as pa

        schema = _flat_schema(piece.schema)
        columns = [_flat(column, field.type) for column, field in zip(piece, schema, strict=True)]
        self._writer.write_table(pa.table(columns, schema=schema))


def _flat_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with text in place of lists and dictionaries."""
    import pyarrow as pa

    def flat(field: pa.Field) -> pa.Field:
        nested = pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type)
        return pa.field(field.name, pa.string() if nested else field.type)

    return pa.schema([flat(field) for field in schema])


def _flat(column: pa.ChunkedArray, type_: pa.DataType) -> Any:
    """Return the column with text in place of lists and dictionaries."""
    import json

    import pyarrow as pa

    if not pa.types.is_nested(column.type):
        return column.cast(type_)
    texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in column.to_pylist()]
    return pa.array(texts, pa.string())
