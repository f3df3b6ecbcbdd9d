"""Waits and holds that have not ended. They are drawn beside the levels of detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_drawing
from nptltrace._dataclasses import dataclass
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.ui import protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.ui.model_tables import Tables

__all__ = ["Ongoing"]

_HELD, _SHARED = (protocol.STATES.index(name) for name in ("held", "shared"))
# Classes of waits. The most informative class is first, as in `queue_state` of `query.c`.
_MOST_TELLING = ("contended", "gil", "timeout", "cancelled", "unknown", "join", "idle")
_RANKS = np.array([_MOST_TELLING.index(name) for name in WAIT_CLASSES])
_LANES = 32  # the last lane takes all holds that find no free lane, as in the levels of detail


@dataclass(frozen=True, slots=True)
class Ongoing:
    """The waits and holds that a model has at a moment.

    Attributes:
        waiting: Waits.
        holding: Holds.
        tables: The tables of the model at that moment.
        until_ns: Time of that moment.
    """

    waiting: NDArray[Any]
    holding: NDArray[Any]
    tables: Tables
    until_ns: int

    def spans(self, by: str, rows: list[int], from_ns: int, to_ns: int) -> NDArray[Any]:
        """Return the spans to draw; the waits for an object are its queue."""
        waiting, row = self._seen(self.waiting, by, rows, from_ns, to_ns)
        waits = _queues(waiting, row) if by == "object" else _waits(waiting, row)
        holding, row = self._seen(self.holding, by, rows, from_ns, to_ns)
        return np.concatenate([waits, _holds(holding, row, by)])

    def wait_ns(self, edges: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the time of waits between edges, in ns: contended, idle and other waits."""
        waits = self.waiting
        begin, end = waits["t_ns"], waits["t_ns"] + waits["dur_ns"]
        classes = np.minimum(waits["wait_class"], 2)
        return [
            np.diff(_since(begin[classes == n], edges) - _since(end[classes == n], edges))
            for n in range(3)
        ]

    def lanes(self, by: str, lanes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Return the number of lanes of each row. `lanes` counts without the holds that go on."""
        row, lane = self._rows(self.holding, by), _lanes(self.holding, by)
        known = (row > 0) & (row < len(lanes))
        counts = lanes.copy()
        np.maximum.at(counts, row[known], lane[known] + 1)
        return counts

    def hold(self, row: int, lane: int, t_ns: int) -> Any:
        """Return the hold of a thread in a lane at a time, as a span; None if there is none."""
        holding, _ = self._seen(self.holding, "thread", [row], t_ns, t_ns + 1)
        holds = _holds(holding, holding["thread"], "thread")
        holds = holds[holds["lane"] == lane]
        return holds[0] if len(holds) else None

    def _rows(self, spanning: NDArray[Any], by: str) -> NDArray[Any]:
        return spanning["thread"] if by == "thread" else self.tables.rows(spanning["object"])

    def _seen(
        self, spanning: NDArray[Any], by: str, rows: list[int], from_ns: int, to_ns: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the waits or holds of some rows in a range, and their rows."""
        row = self._rows(spanning, by)
        seen = np.isin(row, rows) & (row > 0) & (spanning["t_ns"] < to_ns)
        seen &= spanning["t_ns"] + spanning["dur_ns"] >= from_ns
        return spanning[seen], row[seen]


def _since(times: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each edge the sum of its distances from all earlier times."""
    times = np.sort(times).astype(np.float64)
    passed = np.searchsorted(times, edges)
    sums = np.concatenate([[0.0], np.cumsum(times)])
    lengths: NDArray[np.float64] = passed * edges - sums[passed]
    return lengths


def _spans(spanning: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
    """Return spans with the columns that waits and holds share."""
    spans = np.zeros(len(spanning), libptttrack_drawing.SPAN)
    for name in ("t_ns", "dur_ns"):
        spans[name] = spanning[name]
    spans["busy_ns"] = spanning["dur_ns"]
    spans["row"] = row
    spans["count"] = 1
    spans["flags"] = protocol.FLAGS["open"]
    return spans


def _waits(waiting: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
    spans = _spans(waiting, row)
    spans["other"] = waiting["object"]
    spans["depth"] = waiting["queue_depth"]
    spans["state"] = 1 + waiting["wait_class"]
    return spans


def _holds(holding: NDArray[Any], row: NDArray[Any], by: str) -> NDArray[Any]:
    spans = _spans(holding, row)
    spans["other"] = holding["object" if by == "thread" else "thread"]
    spans["depth"] = holding["max_waiters"]
    spans["lane"] = _lanes(holding, by)
    spans["state"] = np.where(holding["mode"] > 0, _SHARED, _HELD)
    return spans


def _lanes(holding: NDArray[Any], by: str) -> NDArray[np.uint16]:
    """Return the lane of each hold, by the rule of `feed.c`."""
    place = holding[f"{by}_place"].astype(np.uint16)
    return np.minimum(place + 1, _LANES).astype(np.uint16)


def _queues(seen: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
    """Return the steps of the queue: the queue grows by a step with each new waiter."""
    order = np.lexsort([seen["t_ns"], row])
    seen, row = seen[order], row[order]
    steps = np.zeros(len(seen), libptttrack_drawing.SPAN)
    if not len(seen):
        return steps
    end = int((seen["t_ns"] + seen["dur_ns"]).max())
    first = np.searchsorted(row, row)
    is_last = np.append(row[1:] != row[:-1], True)
    ends = np.where(is_last, end, np.append(seen["t_ns"][1:], end))
    steps["t_ns"] = seen["t_ns"]
    steps["dur_ns"] = steps["busy_ns"] = ends - seen["t_ns"]
    steps["row"] = row
    steps["count"] = 1
    steps["depth"] = np.arange(len(seen)) - first + 1
    # The state of a step is the most informative class so far. Each row has its own ranks.
    rank = _RANKS[seen["wait_class"]] - first * len(_RANKS)
    least = np.minimum.accumulate(rank) + first * len(_RANKS)
    steps["state"] = 1 + np.argsort(_RANKS)[least]
    steps["flags"] = protocol.FLAGS["open"]
    return steps
