"""The threads that had an object while another thread waited for it, and what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nptltrace.ui import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nptltrace.ui.queries.rows import Rows

    # Returns the spans of a row in a range, given `by` and the row; None if there are too many.
    Spans = Callable[[str, int, int, int], NDArray[Any] | None]

__all__ = ["WaitTime", "holders_of"]

_HELD, _SHARED = (protocol.STATES.index(name) for name in ("held", "shared"))
_ASLEEP = protocol.STATES.index("asleep")
_LISTED = 8
# For how many holders to look up what they did.
_LOOKED_AT = 3


class WaitTime(NamedTuple):
    """The time of a wait, with its thread and its object.

    Attributes:
        thread: Row of the waiting thread.
        row: Row of the object; 0 for none.
        begin: When the wait begins.
        end: When it ends.
    """

    thread: int
    row: int
    begin: int
    end: int


def holders_of(spans: Spans, known: Rows, wait: WaitTime) -> protocol.Holders | None:
    """Return the threads that had an object during a wait; None if they are not known.

    Args:
        spans: Finds spans.
        known: The rows of the timeline.
        wait: The wait.
    """
    if not wait.row or wait.end <= wait.begin:
        return None
    holds = spans("object", wait.row, wait.begin, wait.end)
    if holds is None:
        return None
    held = (holds["state"] == _HELD) | (holds["state"] == _SHARED)
    holds = holds[held & (holds["other"] != wait.thread)]
    begin = np.maximum(holds["t_ns"], wait.begin)
    end = np.minimum(holds["t_ns"] + holds["dur_ns"], wait.end)
    inside = end > begin
    holds, begin, end = holds[inside], begin[inside], end[inside]
    if not len(holds):
        return None
    rows, which = np.unique(holds["other"], return_inverse=True)
    ns = np.bincount(which, weights=end - begin).astype(np.int64)
    order = np.argsort(-ns, kind="stable")
    holders: list[protocol.Holder] = []
    for at in order[:_LISTED].tolist():
        owner = known.thread(int(rows[at]))
        if owner is None:
            continue
        mine = which == at
        looked_at = len(holders) < _LOOKED_AT
        doing = _doing(spans, owner["row"], wait, begin[mine], end[mine]) if looked_at else []
        count = int(np.count_nonzero(mine))
        holders.append({"thread": owner, "holds": count, "ns": int(ns[at]), "doing": doing})
    taken = int(np.count_nonzero(holds["t_ns"] > wait.begin))
    return {"threads": holders, "threads_total": len(rows), "taken": taken}


def _doing(
    spans: Spans, thread: int, wait: WaitTime, begin: NDArray[Any], end: NDArray[Any]
) -> list[protocol.Doing]:
    """Return what a thread did during its holds `begin` to `end`, the longest state first.

    Nothing is returned if the states are not known.
    """
    doing = spans("thread", thread, wait.begin, wait.end)
    if doing is None:
        return []
    doing = doing[doing["lane"] == 0]
    order = np.argsort(begin, kind="stable")
    edges = np.stack([begin[order], end[order]], axis=1).reshape(-1)
    if (np.diff(edges) < 0).any():  # the thread holds the object several times at once
        return []
    lengths = (end - begin)[order]
    passed = np.stack([np.cumsum(lengths) - lengths, np.cumsum(lengths)], axis=1).reshape(-1)

    def held_before(times: NDArray[Any]) -> NDArray[np.float64]:
        before = np.interp(times.astype(np.float64), edges.astype(np.float64), passed)
        return np.asarray(before, np.float64)

    ns = held_before(doing["t_ns"] + doing["dur_ns"]) - held_before(doing["t_ns"])
    calls = np.where(doing["state"] == _ASLEEP, doing["other"], 0)
    kinds, which = np.unique(np.stack([doing["state"], calls]), axis=1, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weights=ns, minlength=kinds.shape[1])
    known = [
        _did(int(state), int(call), int(of))
        for state, call, of in zip(*kinds.tolist(), sums.tolist(), strict=True)
        if of >= 1
    ]
    rest = int(lengths.sum()) - sum(did["ns"] for did in known)
    if rest > 0:
        known.append(_did(0, 0, rest))
    return sorted(known, key=lambda did: -did["ns"])


def _did(state: int, call: int, ns: int) -> protocol.Doing:
    name = protocol.STATES[state] if state < len(protocol.STATES) else protocol.STATES[0]
    text = protocol.CALLS[call] if state == _ASLEEP and call < len(protocol.CALLS) else ""
    return {"state": name, "call": text, "ns": ns}
