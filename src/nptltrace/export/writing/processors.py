"""The context switches of processors, from the states of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nptltrace.analysis.model import model_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace.analysis.question_scope import Scope
    from nptltrace.trace.traceset import Traceset

__all__ = ["NOBODY", "SWITCH", "switches"]

# The id of a thread that is not in the trace.
NOBODY = 0
# `before` and `after` are thread ids. `ready`: the thread before could have gone on.
SWITCH = np.dtype(
    [("ts", np.int64), ("cpu", np.uint16), ("before", np.uint32), ("after", np.uint32),
     ("ready", np.bool_)]
)  # fmt: skip
_COULD_GO_ON = ("ready", "preempted")
_TURN = np.dtype(
    [("cpu", np.uint16), ("begin", np.int64), ("end", np.int64), ("tid", np.uint32),
     ("ready", np.bool_)]
)  # fmt: skip


def switches(source: Traceset, scope: Scope) -> NDArray[Any]:
    """Return the context switches as an array of `SWITCH`, in the order of time.

    The array is empty if the trace has no context switches.
    """
    if all(trace.info.session.string("sched") != "perf" for trace in source.traces):
        return np.empty(0, SWITCH)
    batches = model_batches(
        source, ("states",), edges=False, window=scope.window, counted=scope.counted
    )
    turns = _turns(pa.concat_tables([table for name, table in batches if name == "states"]))
    follows = np.zeros(len(turns), np.bool_)
    follows[1:] = (turns["cpu"][1:] == turns["cpu"][:-1]) & (
        turns["begin"][1:] == turns["end"][:-1]
    )
    begins = np.zeros(len(turns), SWITCH)
    begins["ts"], begins["cpu"], begins["after"] = turns["begin"], turns["cpu"], turns["tid"]
    begins["before"][1:] = np.where(follows[1:], turns["tid"][:-1], NOBODY)
    begins["ready"][1:] = follows[1:] & turns["ready"][:-1]
    last = turns[~np.append(follows[1:], np.zeros(min(len(turns), 1), np.bool_))]
    ends = np.zeros(len(last), SWITCH)
    ends["ts"], ends["cpu"], ends["before"] = last["end"], last["cpu"], last["tid"]
    ends["ready"] = last["ready"]
    both = np.concatenate((ends, begins))
    return both[np.argsort(both["ts"], kind="stable")]


def _turns(states: pa.Table) -> NDArray[Any]:
    """Return the turns of threads on processors, sorted by processor and time."""
    states = states.sort_by([("process", "ascending"), ("tid", "ascending"), ("t_ns", "ascending")])
    column = {name: states[name].to_numpy() for name in ("process", "tid", "t_ns", "dur_ns")}
    cpu = states["cpu"].fill_null(0).to_numpy()
    runs = states["cpu"].is_valid().to_numpy()
    ends = column["t_ns"] + column["dur_ns"]
    goes_on = np.zeros(len(runs), np.bool_)
    goes_on[1:] = ends[:-1] == column["t_ns"][1:]
    for name in ("process", "tid"):
        goes_on[1:] &= column[name][1:] == column[name][:-1]
    same = goes_on & runs
    same[1:] &= runs[:-1] & (cpu[1:] == cpu[:-1])
    first = np.flatnonzero(runs & ~same)
    ending = np.ones(len(runs), np.bool_)
    ending[:-1] = ~same[1:]
    final = np.flatnonzero(runs & ending)
    turns = np.zeros(len(first), _TURN)
    turns["cpu"], turns["tid"] = cpu[first], column["tid"][first]
    turns["begin"], turns["end"] = column["t_ns"][first], ends[final]
    words = states["state"].cast(pa.string())
    could = pc.is_in(words, value_set=pa.array(_COULD_GO_ON)).to_numpy() & goes_on
    turns["ready"] = np.append(could, np.zeros(1, np.bool_))[final + 1]
    turns = np.sort(turns, order=("cpu", "begin"))
    # Times of different threads are read separately. If two turns overlap, the later turn counts.
    together = turns["cpu"][1:] == turns["cpu"][:-1]
    turns["end"][:-1] = np.where(
        together, np.minimum(turns["end"][:-1], turns["begin"][1:]), turns["end"][:-1]
    )
    return turns
