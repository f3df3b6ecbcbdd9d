"""The records that the timeline formats write, from the rows of the model.

Each row makes two records: the begin and the end of a wait or hold, or the two sides of a wake-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BEGUN", "CREATED", "ENDED", "HOLD", "HOLDS", "HOLD_END", "JOINED", "OPEN", "OWNERS",
    "RECORD", "SHARED", "VERBS", "WAIT", "WAITS", "WAIT_END", "WAKE", "WOKEN", "Pairs",
    "are_blocked", "lives",
]  # fmt: skip

# The kinds of records.
(WAIT, WAIT_END, HOLD, HOLD_END, WAKE, WOKEN, CREATED, BEGUN, ENDED, JOINED) = range(10)

# Times are in ns. Threads, objects and sites are rows of the model; row 0 stands for none.
# The kind `what` decides which columns are used, and what `other` is:
#   WAIT, WAIT_END: the owner (`waker` is the thread that ended the wait); WAKE: the woken thread;
#   WOKEN: the waker; CREATED: the new thread.
# `other_site` is the call site of the owner in a wait, and of the release in a hold. A stack is
# process << 32 | number, 0 for none. `other_stack` is the stack of the holder.
RECORD = np.dtype(
    [
        ("ts", "i8"), ("dur", "i8"), ("id", "u8"),
        ("what", "u1"), ("verb", "u1"), ("kind", "u1"), ("flags", "u1"),
        ("lane", "u4"), ("owner_lane", "u4"), ("thread", "u4"), ("object", "u4"), ("site", "u4"),
        ("other", "u4"), ("other_site", "u4"), ("waker", "u4"), ("waker_site", "u4"),
        ("depth", "u4"), ("result", "i4"), ("stack", "u8"), ("other_stack", "u8"),
    ]
)  # fmt: skip
SHARED, OPEN = 1, 2

# The kinds of lanes: waits of a thread, holds of a thread, owners of an object.
WAITS, HOLDS, OWNERS = range(3)

# Verbs of what a thread does with an object: one for each class of waits, in order, and for holds.
VERBS = (
    "waits for", "is idle at", "joins", "times out at", "gives up", "waits unknown at",
    "waits for GIL at", "holds",
)  # fmt: skip
_HOLDS = len(VERBS) - 1


class Pairs:
    """Rows of a batch of events, in the order of their ends. Each row makes two records.

    Args:
        name: `waits`, `holds` or `wakeups`.
        rows: The rows of the model since the last batch.
        lanes: Gives intervals their lanes. All rows of a trace are placed in one order.
        processes: The processes of the threads, by the thread's row.

    Attributes:
        name: As given.
        rows: The rows, in the order of their ends.
        times: The times of both records of each row, of shape (rows, 2), in ns.
    """

    def __init__(
        self, name: str, rows: NDArray[Any], lanes: libptttrack_sums.Lanes,
        processes: NDArray[Any],
    ) -> None:  # fmt: skip
        self.name = name
        end = rows["woken_ns"] if name == "wakeups" else rows["t_ns"] + rows["dur_ns"]
        # The later of two parts of one wait comes first.
        self.rows = rows = rows.take(np.argsort(end, kind="stable"))
        begin = rows["t_ns"]
        if name == "wakeups":
            end = rows["woken_ns"]
            begin = np.where(begin == libptttrack_sums.NEVER, end, begin)
        else:
            end = begin + np.maximum(rows["dur_ns"], 0)
        self.times = np.stack([begin, end], axis=1)
        self._lane = self._owner_lane = np.zeros(0, np.uint32)
        self._stack = self._holder_stack = np.zeros(0, np.uint64)
        if name == "waits":
            self._lane = self._placed(lanes, WAITS, rows["thread"])
            self._stack = _stacks(processes, rows["thread"], rows["stack"])
            self._holder_stack = _stacks(processes, rows["owner"], rows["holder_stack"])
        elif name == "holds":
            self._lane = self._placed(lanes, HOLDS, rows["thread"])
            self._stack = _stacks(processes, rows["thread"], rows["stack"])
            self._owner_lane = self._placed(lanes, OWNERS, rows["object"])

    def _placed(
        self, lanes: libptttrack_sums.Lanes, what: int, of: NDArray[Any]
    ) -> NDArray[np.uint32]:
        group = of.astype(np.uint64) | np.uint64(what << 32)
        return lanes.place(group, self.times[:, 0], self.times[:, 1])

    def verb_keys(self) -> NDArray[np.uint64]:
        """Return the verb keys (object << 3 | verb) of the rows, without duplicates."""
        if self.name == "wakeups":
            return np.empty(0, np.uint64)
        verb = self.rows["wait_class"] if self.name == "waits" else np.uint64(_HOLDS)
        objects = self.rows["object"].astype(np.uint64)
        return np.unique(objects << np.uint64(3) | verb)

    def stacks(self) -> NDArray[np.uint64]:
        """Return the call stacks of the rows, without duplicates."""
        return np.unique(np.concatenate([self._stack, self._holder_stack]))

    def records(self, after_ns: int) -> NDArray[Any]:
        """Return the records after a time. The two records of a row are neighbours."""
        return self._records(self.times > after_ns)

    def late_records(self, until_ns: int) -> NDArray[Any]:
        """Return the records up to a time, which `records` leaves out."""
        return self._records(self.times <= until_ns)

    def _records(self, which: NDArray[np.bool_]) -> NDArray[Any]:
        chosen = np.flatnonzero(which.any(axis=1))
        made = np.zeros((len(chosen), 2), RECORD)
        if not len(chosen):
            return made.reshape(-1)
        if self.name == "wakeups":
            self._make_wakeups(made, self.rows.take(chosen))
        else:
            self._make_spans(made, chosen)
        made["ts"] = self.times.take(chosen, axis=0)
        return made.reshape(-1).take(np.flatnonzero(which.take(chosen, axis=0)))

    def _make_spans(self, made: NDArray[Any], chosen: NDArray[np.int64]) -> None:
        rows, begin, end = self.rows.take(chosen), made[:, 0], made[:, 1]
        begin["dur"] = np.maximum(rows["dur_ns"], 0)
        begin["flags"] = (rows["mode"] == 1) * SHARED + (rows["open"] != 0) * OPEN
        for name in ("thread", "object", "site"):
            begin[name] = rows[name]
        begin["lane"], begin["stack"] = self._lane.take(chosen), self._stack.take(chosen)
        if self.name == "waits":
            begin["verb"], begin["kind"] = rows["wait_class"], rows["kind"]
            begin["id"], begin["depth"] = rows["id"], rows["queue_depth"]
            begin["result"] = rows["result"]
            begin["other"], begin["other_site"] = rows["owner"], rows["owner_site"]
            begin["waker"], begin["waker_site"] = rows["waker"], rows["waker_site"]
            begin["other_stack"] = self._holder_stack.take(chosen)
        else:
            begin["verb"] = _HOLDS
            begin["depth"], begin["other_site"] = rows["max_waiters"], rows["release_site"]
            begin["owner_lane"] = self._owner_lane.take(chosen)
        end[:] = begin
        begin["what"], end["what"] = (WAIT, WAIT_END) if self.name == "waits" else (HOLD, HOLD_END)

    @staticmethod
    def _make_wakeups(made: NDArray[Any], rows: NDArray[Any]) -> None:
        given, taken = made[:, 0], made[:, 1]
        given["id"], given["object"], given["kind"] = rows["wait"], rows["object"], rows["kind"]
        given["site"] = rows["site"]
        taken[:] = given
        given["what"], given["thread"], given["other"] = WAKE, rows["waker"], rows["wakee"]
        taken["what"], taken["thread"], taken["other"] = WOKEN, rows["wakee"], rows["waker"]


def _stacks(
    processes: NDArray[Any], threads: NDArray[Any], numbers: NDArray[Any]
) -> NDArray[np.uint64]:
    """Return the stacks of threads as in `RECORD`."""
    keys = processes[threads].astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64)
    return np.where(numbers, keys, np.uint64(0))


def are_blocked(waits: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each wait is contended and the owner is another known thread."""
    others = (waits["other"] != 0) & (waits["other"] != waits["thread"])
    return np.asarray(others & (waits["verb"] == 0))


def lives(threads: NDArray[Any], what: int) -> NDArray[Any]:
    """Return records of one kind about the lives of threads.

    Args:
        threads: The threads of the model.
        what: CREATED, BEGUN, ENDED or JOINED.
    """
    column = {CREATED: "create_ns", BEGUN: "first_ns", ENDED: "end_ns", JOINED: "join_ns"}[what]
    known = (threads["tid"] != 0) & ~np.isin(threads[column], (libptttrack_sums.NEVER, 2**63 - 1))
    if what == CREATED:
        known &= threads["creator"] != 0
    rows = np.flatnonzero(known)
    made = np.zeros(len(rows), RECORD)
    made["what"], made["ts"] = what, threads[column][rows]
    made["thread"], made["id"] = rows, rows
    if what == CREATED:
        made["thread"], made["other"] = threads["creator"][rows], rows
        made["site"] = threads["create_site"][rows]
    return made
