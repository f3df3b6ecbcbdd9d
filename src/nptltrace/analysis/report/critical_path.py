"""The critical path: the chain of waits and wake-ups from the end of a run back to its beginning.

The path is computed backwards. From the last event of a thread, the path goes back along that
thread to the end of its last wait. From there it goes to the thread that ended the wait, at the
time of the wake-up, and so on. A wait that no thread in the trace ended is a part of the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.report.naming import NamedObject

if TYPE_CHECKING:
    from nptltrace._binding import libptttrack_sums
    from nptltrace.analysis.report.naming import Naming, ThreadName

__all__ = ["CriticalPath", "PathLink", "PathThread", "critical_path"]

_RUN, _WAKE, _WAIT, _CREATE = range(4)
_LINKS = 100  # to report
_NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PathThread:
    """A thread's part of the path.

    Attributes:
        thread: The thread.
        run_ns: Part of the path while the thread does not wait.
        latency_ns: From wake-ups until the thread continued.
        ready_ns: Part of `latency_ns` after waits while the thread could have run but had no
            processor; None if unknown.
        open_ns: Waits on the path that no thread in the trace ended.
    """

    thread: ThreadName
    run_ns: int
    latency_ns: int
    ready_ns: int | None
    open_ns: int


@dataclass(frozen=True, slots=True)
class PathLink(NamedObject):
    """An object on the path, where it goes from thread to thread.

    Attributes:
        pid: Process id.
        count: Number of times that the path goes through the object.
        latency_ns: From wake-ups until the threads continued, added up.
    """

    pid: int
    count: int
    latency_ns: int


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The critical path of a run.

    Attributes:
        start_ns: Beginning of the path.
        end_ns: End of the path.
        threads: The threads, the greatest part of the path first.
        links: The objects that the path goes through, the most frequent first; at most 100.
        segments: Number of pieces of the path.
        resolution_ns: The path leaves out shorter waits; 0 if it leaves out none.
    """

    start_ns: int
    end_ns: int
    threads: list[PathThread]
    links: list[PathLink]
    segments: int
    resolution_ns: int


def critical_path(model: libptttrack_sums.Model, names: Naming, *, thread: int = 0) -> CriticalPath:
    """Return the critical path to the end of a thread.

    Args:
        model: A finished model with the flag `PATH`.
        names: Names for the rows of the model.
        thread: Row of the thread; 0 for the thread with the last event.
    """
    sums = np.zeros((4, len(model.table("threads", copy=False))), np.int64)
    ready, unread = np.zeros((2, sums.shape[1]), np.int64)
    count, spent = np.zeros((2, len(model.table("objects", copy=False))), np.int64)
    start, end, segments = _NEVER, 0, 0
    for rows in model.path(thread):
        dur = rows["end_ns"] - rows["start_ns"]
        np.add.at(sums, (rows["kind"], rows["thread"]), dur)
        wakes = rows["kind"] == _WAKE
        np.add.at(ready, rows["thread"][wakes], rows["ready_ns"][wakes])
        np.add.at(unread, rows["thread"][wakes], rows["ready_ns"][wakes] < 0)
        passing = wakes & (rows["object"] > 0)
        np.add.at(count, rows["object"][passing], 1)
        np.add.at(spent, rows["object"][passing], dur[passing])
        start = min(start, int(rows["start_ns"].min()))
        end = max(end, int(rows["end_ns"].max()))
        segments += len(rows)
    total = sums.sum(axis=0)
    passed = np.flatnonzero(count)
    first = passed[names.first_alike(passed)]
    links = np.zeros((2, len(count)), np.int64)
    np.add.at(links[0], first, count[passed])
    np.add.at(links[1], first, spent[passed])
    return CriticalPath(
        start_ns=start if segments else 0,
        end_ns=end,
        threads=[
            PathThread(
                names.thread(at), int(sums[_RUN, at]), int(sums[_WAKE, at] + sums[_CREATE, at]),
                None if unread[at] else int(ready[at]), int(sums[_WAIT, at]),
            )
            for at in np.argsort(-total, kind="stable").tolist()
            if total[at]
        ],
        links=[
            PathLink(
                names.kind(at), names.address(at), names.object_name(at), names.object_pid(at),
                *links[:, at].tolist(),
            )
            for at in np.argsort(-links[0], kind="stable")[:_LINKS].tolist()
            if links[0, at]
        ],
        segments=segments,
        resolution_ns=model.path_resolution_ns,
    )  # fmt: skip
