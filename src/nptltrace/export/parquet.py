"""Parquet: a data set with partitions by table, day, host and run."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from nptltrace._units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

OPTIONS = ("tables",)

_ROW_GROUP = 1 << 18  # rows
_PATHS = r"dataset=\w+/day=[^/]+/host=[^/]+/run=[^/]+/part-0\.parquet"
_NS = 10**9


def write(what: Export, out: Target) -> str:
    """Write tables as `dataset=TABLE/day=…/host=…/run=…/part-0.parquet`.

    The directories are Hive partitions: query engines read `day`, `host` and `run` as columns.

    Returns:
        The numbers of rows and tables, as text.

    Raises:
        UsageError: A table is unknown, or the target is standard output.
    """
    from nptltrace.analysis.answers import all_tables
    from nptltrace.analysis.sql.schema import TABLES, table_type

    chosen = [table_type(name) for name in dict.fromkeys(what.tables)] or list(TABLES.values())
    tables = all_tables(what.traceset, what.symbols, what.scope)
    runs = {row["run_id"]: _partition(row) for row in tables.table("runs").to_pylist()}
    rows = 0
    with out.directory(_PATHS) as directory, ExitStack() as stack:
        files = {
            (table.name, run): stack.enter_context(
                _File(directory / f"dataset={table.name}" / partition, table.schema())
            )
            for table in chosen
            for run, partition in runs.items()
        }
        for name, piece in tables.pieces([table.name for table in chosen]):
            for run, part in _by_run(piece, list(runs)):
                files[name, run].write(part)
            rows += piece.num_rows
    return f"{rows} {plural(rows, 'row')} of {len(chosen)} {plural(len(chosen), 'table')}"


def _partition(run: dict[str, object]) -> str:
    """Return the path of a run inside the directory of a table."""
    start = run["start_unix_ns"] or run["t0_unix_ns"]
    assert isinstance(start, int)  # noqa: S101 -- by the schema
    day = datetime.fromtimestamp(start // _NS, UTC).date()
    host = quote(str(run["host"] or "unknown"), safe="")
    return f"day={day}/host={host}/run={run['run_id']}"


def _by_run(piece: pa.Table, runs: list[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield each run with its rows."""
    import pyarrow.compute as pc

    if len(runs) == 1:
        yield runs[0], piece
        return
    for run in runs:
        yield run, piece.filter(pc.equal(piece["run_id"].cast("string"), run))


class _File:
    """A file of one table and run. Each row group is sorted by process and time.

    Args:
        directory: The directory of the file, which is created.
        schema: The schema of the table.
    """

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        from pyarrow import parquet

        directory.mkdir(parents=True)
        self._schema = schema
        times = [name for name in ("ts_ns", "t_ns", "start_ns") if name in schema.names]
        self._order = [(name, "ascending") for name in ("pid", *times) if name in schema.names]
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._writer = parquet.ParquetWriter(
            directory / "part-0.parquet", schema, compression="zstd"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            self._flush()
        self._writer.close()

    def write(self, piece: pa.Table) -> None:
        """Add rows, and write a row group if there are enough rows."""
        self._waiting.append(piece)
        self._rows += piece.num_rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._rows:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries()
        if self._order:
            order = pc.sort_indices(table, self._order)
            if not pc.all(pc.equal(order[:-1], pc.subtract(order[1:], 1))).as_py():
                table = table.take(order)
        self._writer.write_table(table, row_group_size=_ROW_GROUP + (1 << 16))
        self._waiting, self._rows = [], 0
