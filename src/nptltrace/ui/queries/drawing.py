"""The tables that the page draws, with the columns that `protocol` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_drawing, libptttrack_sums
from nptltrace.ui import protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from nptltrace.ui.model_tables import Tables
    from nptltrace.ui.ongoing import Ongoing

__all__ = [
    "arrow_table", "bin_width", "overview_table", "path_table", "span_table",
]  # fmt: skip

_WAKE, _HOLD = (protocol.ARROW_KINDS.index(name) for name in ("wake", "hold"))
_MOST_BINS = 32768
_WAITS = ("contended_ns", "idle_ns", "other_ns")


def bin_width(from_ns: int, to_ns: int, width: int) -> int:
    """Return the power of two that is nearest to the width of a pixel, in ns.

    Bins begin at multiples of this power, so that the picture does not flicker when it moves.
    """
    pixel = max((to_ns - from_ns) // min(max(width, 1), protocol.MAX_WIDTH), 1)
    width_ns = 1 << ((2 * pixel * pixel).bit_length() - 1) // 2
    while (to_ns - from_ns) // width_ns > _MOST_BINS:
        width_ns *= 2
    return int(min(width_ns, 2**62))


# ---- spans ----


def span_table(spans: NDArray[Any], by: str, tables: Tables, until_ns: int) -> pa.Table:
    """Return the table of spans, with rows of objects. All spans before `until_ns` are there."""
    other = spans["other"]
    if by == "thread":
        # For a thread that sleeps without a wait, `other` is the number of a system call.
        waits = spans["state"] <= protocol.STATES.index("shared")
        other = np.where(waits, tables.rows(np.where(waits, other, 0)), other)
    columns = {name: spans[name] for name in libptttrack_drawing.SPAN.names or ()}
    drawn = protocol.table(protocol.SPANS, {**columns, "other": other, "wait_id": spans["wait"]})
    return drawn.replace_schema_metadata({"until_ns": str(until_ns)})


# ---- arrows ----


def arrow_table(
    spans: NDArray[Any], detail: libptttrack_drawing.Detail, tables: Tables, limit: int
) -> pa.Table:
    """Return the arrows of the waits among some spans. Arrows of the longest wait come first."""
    single = spans[(spans["wait"] > 0) & (spans["count"] == 1)]
    order = np.argsort(-single["dur_ns"], kind="stable")[: min(max(limit, 0), protocol.MAX_WIDTH)]
    arrows: list[tuple[int, ...]] = []
    for number in single["wait"][order].tolist():
        wait = detail.wait(number)
        if wait is None:
            continue
        object_row = int(tables.rows(wait["object"][None])[0])
        thread = int(wait["thread"])
        begin, end = int(wait["t_ns"]), int(wait["t_ns"] + wait["dur_ns"])
        owner, waker, woken_ns = int(wait["owner"]), int(wait["waker"]), int(wait["waker_t_ns"])
        if waker and woken_ns != libptttrack_sums.NEVER:
            arrows.append((_WAKE, waker, woken_ns, thread, end, number, object_row))
        if owner and owner != thread:
            arrows.append((_HOLD, owner, begin, thread, begin, number, object_row))
    arrows = arrows[: max(limit, 0)]
    columns = list(zip(*arrows, strict=True)) or [()] * len(protocol.ARROWS)
    return protocol.table(protocol.ARROWS, dict(zip(protocol.ARROWS.names, columns, strict=True)))


# ---- the overview ----


def overview_table(  # noqa: PLR0917
    begin: int,
    end: int,
    width: int,
    density: NDArray[Any] | None,
    bins: tuple[NDArray[Any], int, int] | None,
    ongoing: Ongoing | None,
    tables: Tables | None,
    findings: list[int],
    lost: NDArray[Any],
) -> pa.Table:
    """Return the whole trace in bins.

    Args:
        begin: Start of the trace, in ns.
        end: End of the trace, in ns.
        width: How many bins.
        density: Events by bin, from packet headers; None if all events of the trace were counted.
        bins: The bins of the levels of detail.
        ongoing: The waits that go on. The levels of detail lack them.
        tables: The tables of the model.
        findings: Times of findings.
        lost: Lost events by bin.
    """
    edges = begin + (end - begin) * (np.arange(width + 1) / width)
    columns: dict[str, Any] = {
        field.name: np.zeros(width, np.uint64) for field in protocol.OVERVIEW
    }
    if density is not None:
        columns["events"] = density
    if bins is not None and len(bins[0]):
        counted, first, step = bins
        places = first + step * np.arange(len(counted) + 1, dtype=np.float64)
        if density is None:
            columns["events"] = _spread(counted["events"], places, edges)
        for n, name in enumerate(_WAITS):
            columns[name] = _spread(counted["wait_ns"][:, n], places, edges)
    if ongoing is not None:
        for name, ns in zip(_WAITS, ongoing.wait_ns(edges), strict=True):
            columns[name] = columns[name] + np.rint(ns).astype(np.uint64)
    if tables is not None:
        threads = tables.threads[1:]
        threads = threads[threads["first_ns"] != 2**63 - 1]
        born = np.searchsorted(np.sort(threads["first_ns"]), edges[1:], "left")
        gone = np.searchsorted(np.sort(threads["last_ns"]), edges[:-1], "left")
        columns["threads"] = np.maximum(born - gone, 0)
    columns["lost"] = lost
    columns["findings"] = np.histogram(np.array(findings, np.float64), edges)[0]
    return protocol.table(protocol.OVERVIEW, columns).replace_schema_metadata(
        {"from_ns": str(begin), "to_ns": str(end)}
    )


def _spread(values: NDArray[Any], places: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.uint64]:
    """Return sums by bins with other edges. Each value is spread evenly over its old bin."""
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64))])
    at = np.interp(edges, places, sums)
    at[0], at[-1] = 0, sums[-1]  # the old bins may reach beyond the trace
    counts: NDArray[np.uint64] = np.diff(np.rint(at)).astype(np.uint64)
    return counts


# ---- the critical path ----


def path_table(
    segments: NDArray[Any], object_rows: NDArray[Any], from_ns: int, to_ns: int, bin_ns: int
) -> pa.Table:
    """Return the pieces of the critical path in a range. Short pieces of a bin are merged.

    Args:
        segments: The pieces, with rows as threads.
        object_rows: The row of the object of each piece.
        from_ns: Start of the range.
        to_ns: The first time after the range.
        bin_ns: Width of a bin. Shorter pieces are merged.
    """
    seen = (segments["start_ns"] < to_ns) & (segments["end_ns"] > from_ns)
    rows, object_rows = segments[seen], object_rows[seen]
    dur = rows["end_ns"] - rows["start_ns"]
    place = np.where(dur >= bin_ns, -1 - np.arange(len(rows)), rows["start_ns"] // bin_ns)
    key = np.stack([place, rows["thread"].astype(np.int64), rows["kind"].astype(np.int64)])
    change = np.ones(len(rows), np.bool_)
    if len(rows):
        change[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    first = np.flatnonzero(change)
    last = np.append(first[1:], len(rows)) - 1 if len(rows) else first
    return protocol.table(
        protocol.PATH,
        {
            "row": rows["thread"][first],
            "kind": rows["kind"][first],
            "t_ns": rows["start_ns"][first],
            "dur_ns": rows["end_ns"][last] - rows["start_ns"][first],
            "object_row": object_rows[first],
            "count": last - first + 1,
        },
    )
