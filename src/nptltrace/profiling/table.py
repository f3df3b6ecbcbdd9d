"""Parquet files, one for each interval, in the directory `profile.parquet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from nptltrace.export.writing.target import Target
from nptltrace.profiling.pprof_file import file_name

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from nptltrace.profiling.interval import Interval, Row

__all__ = ["DIRECTORY", "SCHEMA", "write"]

DIRECTORY = "profile.parquet"

_WORD = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema([
    ("begin_ns", pa.timestamp("ns", "UTC")), ("end_ns", pa.timestamp("ns", "UTC")),
    ("run_id", _WORD), ("host", _WORD), ("pid", pa.uint32()),
    ("exe", _WORD), ("exe_build_id", _WORD), ("tid", pa.uint32()), ("thread", _WORD),
    ("lock", _WORD), ("kind", _WORD), ("address", pa.uint64()), ("class", _WORD),
    ("owner_tid", pa.uint32()), ("owner_thread", _WORD), ("stack", pa.list_(pa.string())),
    ("holder_stack", pa.list_(pa.string())), ("count", pa.float64()), ("samples", pa.uint64()),
    ("total_ns", pa.float64()), ("max_ns", pa.int64()), ("held_ns", pa.float64()),
    ("ready_ns", pa.float64()), ("histogram", pa.list_(pa.float64())),
])  # fmt: skip


def write(interval: Interval, directory: Path) -> None:
    """Write the rows of an interval.

    Raises:
        OSError: The file cannot be written.
        UsageError: There is a file of that name.
    """
    run = interval.run
    fixed = {
        "begin_ns": interval.begin_ns, "end_ns": interval.end_ns,
        "run_id": run.get("run_id"), "host": run.get("host"),
        "exe_build_id": run.get("exe_build_id"),
    }  # fmt: skip
    table = pa.Table.from_pylist([fixed | _columns(row) for row in interval.rows], SCHEMA)
    inside = directory / DIRECTORY
    inside.mkdir(exist_ok=True)
    # Readers of a data set skip the temporary name, which begins with a dot.
    with Target(inside / file_name(interval, ".parquet")).file() as file:
        parquet.write_table(table, file, compression="zstd")


def _columns(row: Row) -> dict[str, Any]:
    return {
        "pid": row.pid, "exe": row.exe, "tid": row.tid, "thread": row.thread, "lock": row.lock,
        "kind": row.kind, "address": row.address, "class": row.wait_class,
        "owner_tid": row.owner_tid, "owner_thread": row.owner_thread,
        "stack": [frame.text for frame in row.frames],
        "holder_stack": [frame.text for frame in row.holder_frames] or None,
        "count": row.count, "samples": row.samples, "total_ns": row.total_ns, "max_ns": row.max_ns,
        "held_ns": row.held_ns, "ready_ns": row.ready_ns, "histogram": list(row.histogram),
    }  # fmt: skip
