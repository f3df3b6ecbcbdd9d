"""The critical path: which threads' work the end of a run had to wait for, one after another.

It is walked backwards. From the last event of a thread the path goes back along that thread to
the end of its last wait, from there to the thread that ended the wait, at the moment of the
wake-up, and so on to the beginning. A wait that nobody in the trace ended stays part of the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.analysis import _native
    from nptltrace.analysis._naming import Naming, ThreadName

__all__ = ["CriticalPath", "PathLink", "PathThread", "critical_path"]

RUN, WAKE, WAIT, CREATE = range(4)


@dataclass(frozen=True, slots=True)
class PathThread:
    """What one thread has to do with the path.

    Attributes:
        thread: The thread.
        run_ns: The path goes along it while it was not waiting.
        wake_ns: From wake-ups to its going on.
        wait_ns: Waits on the path that nobody in the trace ended.
    """

    thread: ThreadName
    run_ns: int
    wake_ns: int
    wait_ns: int


@dataclass(frozen=True, slots=True)
class PathLink:
    """An object through which the path goes from thread to thread.

    Attributes:
        object: How to call it.
        kind: Its kind.
        count: How often.
        wake_ns: From wake-ups to going on, added up.
    """

    object: str
    kind: str
    count: int
    wake_ns: int


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The critical path of a run.

    Attributes:
        start_ns: Where it begins.
        end_ns: Where it ends.
        threads: Those with the greatest part first.
        links: Those passed most often first.
        segments: Number of its pieces.
        resolution_ns: Shorter waits were left out; 0 when none was.
    """

    start_ns: int
    end_ns: int
    threads: list[PathThread]
    links: list[PathLink]
    segments: int
    resolution_ns: int


def critical_path(model: _native.Model, names: Naming, *, thread: int = 0) -> CriticalPath:
    """Return the critical path to the end of a thread.

    Args:
        model: A finished model that keeps paths.
        names: Names for its rows.
        thread: Row of the thread; 0 for that of the last event.
    """
    import numpy as np

    model.find_path(thread)
    rows = model.table("segments", copy=False)
    if not len(rows):
        return CriticalPath(0, 0, [], [], 0, model.path_resolution_ns)
    size = int(rows["thread"].max()) + 1
    dur = rows["end_ns"] - rows["start_ns"]
    sums = np.zeros((4, size), np.int64)
    np.add.at(sums, (rows["kind"], rows["thread"]), dur)
    total = sums.sum(axis=0)
    threads = [
        PathThread(
            names.thread(at), int(sums[RUN, at]), int(sums[WAKE, at] + sums[CREATE, at]),
            int(sums[WAIT, at]),
        )
        for at in np.argsort(-total, kind="stable").tolist()
        if total[at]
    ]  # fmt: skip
    links = rows[(rows["kind"] == WAKE) & (rows["object"] > 0)]
    count = np.bincount(links["object"])
    spent = np.bincount(links["object"], weights=links["end_ns"] - links["start_ns"])
    found = [
        PathLink(names.object(at), names.kind(at), int(count[at]), int(spent[at]))
        for at in np.argsort(-count, kind="stable")[:100].tolist()
        if count[at]
    ]
    return CriticalPath(
        start_ns=int(rows["start_ns"].min()),
        end_ns=int(rows["end_ns"].max()),
        threads=threads,
        links=found,
        segments=len(rows),
        resolution_ns=model.path_resolution_ns,
    )
