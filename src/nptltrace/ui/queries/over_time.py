"""Locks over time, in the shapes of `protocol`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace.ui import protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.report.over_time import Bins, LockOverTime
    from nptltrace.ui.queries.rows import Rows

__all__ = ["edges_of", "locks_over_time", "rows_waited_for"]


def edges_of(begin_ns: int, end_ns: int, bins: int) -> NDArray[np.int64]:
    """Return the edges of bins of equal width: fewer bins if a bin would be under 1 ns."""
    bins = max(min(bins, protocol.MAX_BINS, end_ns - begin_ns), 1)
    return np.array([begin_ns + (end_ns - begin_ns) * n // bins for n in range(bins + 1)])


def rows_waited_for(contention: protocol.Contention, limit: int) -> list[int]:
    """Return the rows of the locks with most waiting; without waits, of the locks held longest."""
    objects = list(zip(contention["report"]["objects"], contention["object_rows"], strict=True))
    waited = [row for figures, row in objects if row and figures["wait_ns"]]
    held = [row for figures, row in objects if row and figures["hold_ns"]]
    return list(dict.fromkeys(waited or held))[:limit]


def locks_over_time(
    edges: NDArray[np.int64], over_time: Sequence[LockOverTime], numbers: Sequence[int], rows: Rows
) -> protocol.OverTime:
    """Return locks over time. `numbers` are the rows of the locks."""
    locks: list[protocol.LockOverTime] = []
    for lock, row in zip(over_time, numbers, strict=True):
        changes: Any = [asdict(change) for change in lock.changes]
        about = rows.table(
            "object", sort="row", text="", rows=[row], offset=0, limit=1
        ).to_pylist()  # fmt: skip
        locks.append(
            {
                "row": row,
                "pid": about[0]["pid"] if about else 0,
                "label": about[0]["label"] if about else f"{lock.place.address:#x}",
                "waits": _lengths(lock.waits),
                "holds": _lengths(lock.holds),
                "changes": changes,
            }
        )
    return {"edges_ns": edges.tolist(), "locks": locks}


def _lengths(bins: Bins) -> protocol.Lengths:
    return {
        "count": bins.count.tolist(),
        "ns": bins.ns.tolist(),
        "p50_ns": bins.p50_ns.tolist(),
        "p99_ns": bins.p99_ns.tolist(),
    }
