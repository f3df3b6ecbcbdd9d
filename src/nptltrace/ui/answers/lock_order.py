"""The lock-order graph: which locks were asked for while others were held, and its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.ui import protocol
    from nptltrace.ui.answers.rows import Rows

__all__ = ["order"]


def order(rows: Rows, limit: int) -> protocol.Order:
    """Return the graph.

    Args:
        rows: The rows of the timeline, which are its nodes.
        limit: How many edges at most; those in cycles first, then those that were taken most often.
    """
    edges = rows.tables.edges
    held, wanted = rows.tables.row_of[edges["held"]], rows.tables.row_of[edges["wanted"]]
    own = held != wanted
    edges, held, wanted = edges[own], held[own], wanted[own]
    component = _Components(len(rows.tables.first), held, wanted).of
    cyclic = component[held] == component[wanted]
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
            }
        )
    nodes = sorted({row for edge in found for row in (edge["held_row"], edge["wanted_row"])})
    return {"nodes": [_node(rows, row) for row in nodes], "edges": found, "edges_total": len(edges)}


def _node(rows: Rows, row: int) -> protocol.OrderNode:
    found = rows.object(int(rows.tables.first[row]))
    if found is None:
        return {"row": row, "pid": 0, "kind": "object", "label": f"object {row}"}
    return {"row": row, "pid": found["pid"], "kind": found["kind"], "label": found["label"]}


class _Components:
    """Strongly connected components (Tarjan's way, without recursion).

    An edge is part of a cycle when both its ends are in the same one.

    Args:
        count: How many nodes there are.
        held: Where each edge begins.
        wanted: Where it ends.

    Attributes:
        of: The component of each node; those without a cycle have one of their own.
    """

    def __init__(self, count: int, held: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> None:
        self.of = -1 - np.arange(count, dtype=np.int64)
        self._after: dict[int, list[int]] = {}
        for a, b in zip(held.tolist(), wanted.tolist(), strict=True):
            self._after.setdefault(a, []).append(b)
        self._index: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: dict[int, None] = {}  # in the order in which they were met
        self._work: list[tuple[int, Iterator[int]]] = []
        for root in tuple(self._after):
            if root not in self._index:
                self._meet(root)
                while self._work:
                    self._step()

    def _meet(self, node: int) -> None:
        self._index[node] = self._low[node] = len(self._index)
        self._open[node] = None
        self._work.append((node, iter(self._after.get(node, ()))))

    def _step(self) -> None:
        node, successors = self._work[-1]
        following = next(successors, None)
        if following is None:
            self._work.pop()
            self._leave(node)
        elif following not in self._index:
            self._meet(following)
        elif following in self._open:
            self._low[node] = min(self._low[node], self._index[following])

    def _leave(self, node: int) -> None:
        if self._work:
            above = self._work[-1][0]
            self._low[above] = min(self._low[above], self._low[node])
        if self._low[node] == self._index[node]:
            member = -1
            while member != node:
                member, _ = self._open.popitem()
                self.of[member] = node
