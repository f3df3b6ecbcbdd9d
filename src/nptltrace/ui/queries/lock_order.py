"""The lock-order graph: which locks were asked for while others were held, and its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.ui import protocol
    from nptltrace.ui.queries.full_report import CyclicOrder
    from nptltrace.ui.queries.rows import Rows

__all__ = ["order"]


def order(rows: Rows, cycles: Sequence[CyclicOrder], limit: int) -> protocol.Order:
    """Return the graph.

    Args:
        rows: The rows of the timeline, which are its nodes.
        cycles: The orders that close cycles, as `ptt check` knows them.
        limit: How many edges at most; those in cycles first, then those that were taken most often.
    """
    edges = rows.tables.edges
    held, wanted = rows.tables.row_of[edges["held"]], rows.tables.row_of[edges["wanted"]]
    own = held != wanted
    edges, held, wanted = edges[own], held[own], wanted[own]
    suppressed = _suppressed(rows, cycles)
    pairs = list(zip(held.tolist(), wanted.tolist(), strict=True))
    cyclic = np.array([pair in suppressed for pair in pairs], bool)
    chosen = np.lexsort([-edges["n"].astype(np.int64), ~cyclic])[:limit]
    found: list[protocol.OrderEdge] = []
    for at in chosen.tolist():
        edge = edges[at]
        found.append(
            {
                "held_row": int(held[at]),
                "wanted_row": int(wanted[at]),
                "count": int(edge["n"]),
                "first_ns": int(edge["first_ns"]),
                "held_site": rows.site(int(edge["held_site"])),
                "wanted_site": rows.site(int(edge["wanted_site"])),
                "thread_row": int(edge["thread"]),
                "one_thread": int(edge["threads"]) == 1,
                "blocked": bool(edge["blocked"]),
                "tries": bool(edge["tries"]),
                "guards": [rows.row_of(int(guard)) for guard in edge["guard"] if guard],
                "in_cycle": bool(cyclic[at]),
                "suppressed": suppressed.get(pairs[at], []),
            }
        )
    nodes = sorted({row for edge in found for row in (edge["held_row"], edge["wanted_row"])})
    return {"nodes": [_node(rows, row) for row in nodes], "edges": found, "edges_total": len(edges)}


def _suppressed(rows: Rows, cycles: Sequence[CyclicOrder]) -> dict[tuple[int, int], list[str]]:
    """Return why cycles through each pair of rows are not reported; nothing if one is."""
    found: dict[tuple[int, int], list[str]] = {}
    for one in cycles:
        pair = (rows.row_at(one["held"]), rows.row_at(one["wanted"]))
        before = found.get(pair)
        if before is None:
            found[pair] = one["suppressed"]
        elif before and one["suppressed"]:
            found[pair] = list(dict.fromkeys(before + one["suppressed"]))
        else:
            found[pair] = []
    return found


def _node(rows: Rows, row: int) -> protocol.OrderNode:
    found = rows.object(int(rows.tables.first[row]))
    if found is None:
        return {"row": row, "pid": 0, "kind": "object", "label": f"object {row}"}
    return {"row": row, "pid": found["pid"], "kind": found["kind"], "label": found["label"]}
