"""The lock-order graph: which lock threads held and which lock they asked for, and cycles."""

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
        cycles: The lock orders that are in cycles, from the search of `ptt check`.
        limit: How many edges at most. Edges in cycles come first, then the most frequent edges.
    """
    edges = rows.tables.edges
    held, wanted = rows.tables.row_of[edges["held"]], rows.tables.row_of[edges["wanted"]]
    own = held != wanted
    edges, held, wanted = edges[own], held[own], wanted[own]
    suppressed = _suppressed(rows, cycles)
    pairs = list(zip(held.tolist(), wanted.tolist(), strict=True))
    cyclic = np.array([pair in suppressed for pair in pairs], bool)
    chosen = np.lexsort([-edges["n"].astype(np.int64), ~cyclic])[:limit]
    listed: list[protocol.OrderEdge] = []
    for at in chosen.tolist():
        edge = edges[at]
        listed.append(
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
    nodes = sorted({row for edge in listed for row in (edge["held_row"], edge["wanted_row"])})
    return {
        "nodes": [_node(rows, row) for row in nodes],
        "edges": listed,
        "edges_total": len(edges),
    }


def _suppressed(rows: Rows, cycles: Sequence[CyclicOrder]) -> dict[tuple[int, int], list[str]]:
    """Return for each pair of rows why no cycle through it is reported; empty if one is."""
    reasons: dict[tuple[int, int], list[str]] = {}
    for order_ in cycles:
        pair = (rows.row_at(order_["held"]), rows.row_at(order_["wanted"]))
        before = reasons.get(pair)
        if before is None:
            reasons[pair] = order_["suppressed"]
        elif before and order_["suppressed"]:
            reasons[pair] = list(dict.fromkeys(before + order_["suppressed"]))
        else:
            reasons[pair] = []
    return reasons


def _node(rows: Rows, row: int) -> protocol.OrderNode:
    lock = rows.object(int(rows.tables.first[row]))
    if lock is None:
        return {"row": row, "pid": 0, "kind": "object", "label": f"object {row}"}
    return {"row": row, "pid": lock["pid"], "kind": lock["kind"], "label": lock["label"]}
