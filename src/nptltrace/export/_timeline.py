"""What a viewer draws: rows with waits and holds, wake-ups between them, lives of threads.

Every exporter to a viewer writes the records of one timeline. All times are ns since the
traceset's start, or since its first wait where that began earlier.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace.analysis import _native
from nptltrace.analysis._naming import Naming
from nptltrace.analysis.model import run_model
from nptltrace.export._sorting import Sorter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.analysis._naming import ThreadName
    from nptltrace.analysis.model import Window
    from nptltrace.trace.info import Process
    from nptltrace.trace.source import Source
    from nptltrace.trace.symbols import Symbols

__all__ = [
    "BEGUN", "CREATED", "ENDED", "HOLD", "HOLDS", "HOLD_END", "JOINED", "OPEN", "OWNERS",
    "RECORD", "SHARED", "VERBS", "WAIT", "WAITS", "WAIT_END", "WAKE", "WOKEN", "Depths", "Lane",
    "Timeline", "chosen",
]  # fmt: skip

# What a record says.
(WAIT, WAIT_END, HOLD, HOLD_END, WAKE, WOKEN, CREATED, BEGUN, ENDED, JOINED) = range(10)

# Rows 0 stand for none. Which columns mean something depends on `what`:
# of waits `other` is the owner, `waker` who ended it; of wake-ups `other` is the woken thread, or
# the waker when the woken one goes on; of creations `other` is the new thread, of joins the joined.
RECORD = np.dtype(
    [
        ("ts", "i8"), ("dur", "i8"), ("id", "u8"),
        ("what", "u1"), ("verb", "u1"), ("kind", "u1"), ("flags", "u1"),
        ("lane", "u4"), ("owner_lane", "u4"), ("thread", "u4"), ("object", "u4"), ("site", "u4"),
        ("other", "u4"), ("other_site", "u4"), ("waker", "u4"), ("waker_site", "u4"),
        ("depth", "u4"), ("result", "i4"),
    ]
)  # fmt: skip
SHARED, OPEN = 1, 2

# Whose intervals share lanes.
WAITS, HOLDS, OWNERS = range(3)

# What a thread does with an object: waits of each class, in their order, and holds.
VERBS = ("waits for", "is idle at", "joins", "times out at", "gives up", "holds")
_HOLDS = 5
_PIECES = 100  # sets to keep before they are made one
_LONGEST = 1000  # characters of a name
_THREAD = 1  # kind of the objects that are joined


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of intervals that do not overlap.

    Attributes:
        what: WAITS or HOLDS of a thread, OWNERS of an object.
        row: The thread or object.
        place: Among the lanes of the same, from 0.
    """

    what: int
    row: int
    place: int


class Timeline:
    """The states of a traceset's threads and objects.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        window: The part to follow.

    Attributes:
        threads: The model's threads; row 0 is none.
        objects: The model's objects.
        lanes: The rows of intervals.
        verb_keys: What threads do with objects, as `verb_key` numbers it; each once.
        used: Which objects are waited for or held, threads that are joined left out.
        counts: How many waits, holds and wake-ups there are.
        shift_ns: What was added to all times, so that none is negative.
    """

    def __init__(self, source: Source, symbols: Symbols | None, window: Window | None) -> None:
        source.learn_threads()
        self._source = source
        self._sorter = Sorter(RECORD)
        self._lanes = _native.Lanes()
        self._verbs: list[NDArray[Any]] = []
        self.counts = {"waits": 0, "holds": 0, "wakeups": 0}
        self._joined: dict[int, int] = {}
        self._first = 0
        model = self._follow(window)
        self.threads = model.table("threads")
        self.objects = model.table("objects")
        self.sites = model.table("sites")
        self._names = Naming(source, symbols, self.threads, self.objects, self.sites)
        self._take_lives()
        self.lanes = [
            Lane(int(group) >> 32, int(group) & 0xFFFFFFFF, int(place))
            for group, place in self._lanes.table()[["group", "place"]].tolist()
        ]
        keys = np.unique(np.concatenate(self._verbs)) if self._verbs else np.empty(0, np.uint64)
        self.verb_keys: NDArray[np.uint64] = keys
        used = np.unique(keys >> np.uint64(3)).astype(np.int64)
        self.used: list[int] = used[self.objects["kind"][used] != _THREAD].tolist()
        self.shift_ns = max(0, -self._first)

    # ---- names ----

    @property
    def start_unix_ns(self) -> int:
        """Unix time of time 0."""
        return self._source.start_unix_ns - self.shift_ns

    @property
    def processes(self) -> list[Process]:
        """The processes by their number."""
        return self._source.processes()

    def lived(self) -> list[int]:
        """Return the threads that have a kernel thread id."""
        return np.flatnonzero(self.threads["tid"]).tolist()

    def thread(self, row: int) -> str:
        """Return how to call a thread, as `worker 123`; empty for none."""
        if not row:
            return ""
        name = self._names.thread(row)
        return _clipped(f"{name.name or 'thread'} {name.tid or '(never ran)'}")

    def thread_name(self, row: int) -> ThreadName:
        """Return process, kernel id and own name of a thread."""
        return self._names.thread(row)

    def object(self, row: int) -> str:
        """Return how to call an object, as `mutex g_lock`."""
        if self._names.kind(row) == "thread":
            target = self._joined.get(row, 0)
            return self.thread(target) or f"thread {int(self.objects['address'][row]):#x}"
        return _clipped(f"{self._names.kind(row)} {self._names.object(row)}")

    def site(self, row: int) -> str:
        """Return a call site, as `work+0x1c (pool.c:88)`; empty for none."""
        return _clipped(self._names.site(row))

    def verb(self, key: int) -> str:
        """Return what a thread does, as `waits for mutex g_lock`; see `verb_key`."""
        return f"{VERBS[key & 7]} {self.object(key >> 3)}"

    @staticmethod
    def verb_key(records: NDArray[Any]) -> NDArray[np.uint64]:
        """Return what threads do as numbers, for those `verb` has names: object << 3 | verb."""
        return np.asarray(records["object"].astype(np.uint64) << np.uint64(3) | records["verb"])

    def summary(self) -> str:
        """Return in a few words what there is."""
        n = self.counts
        threads = len(self.lived())
        return (
            f"{n['waits']:,} waits, {n['holds']:,} holds and {n['wakeups']:,} wake-ups "
            f"of {threads} thread{'s' * (threads != 1)}"
        )

    # ---- records ----

    def records(self) -> Iterator[NDArray[Any]]:
        """Yield all records in the order of time."""
        batches = self._sorter.batches()
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(next, batches, None)
            while (records := ahead.result()) is not None:
                ahead = pool.submit(next, batches, None)  # while these are written
                if self.shift_ns:
                    records["ts"] += self.shift_ns
                yield records

    def _follow(self, window: Window | None) -> _native.Model:
        """Run the model; while it follows a batch of events, the rows of the last are taken."""
        with ThreadPoolExecutor(1) as pool:
            taken = pool.submit(self._take, {})

            def take(model: _native.Model) -> None:
                nonlocal taken
                rows = {name: model.table(name) for name in self.counts}
                model.drop_rows()
                taken.result()
                taken = pool.submit(self._take, rows)

            model = run_model(self._source, _native.ROWS, window=window, on_batch=take)
            taken.result()
        return model

    def _take(self, tables: dict[str, NDArray[Any]]) -> None:
        """Take the rows of a batch."""
        take = {
            "waits": self._take_waits, "holds": self._take_holds, "wakeups": self._take_wakeups,
        }  # fmt: skip
        for name, rows in tables.items():
            if len(rows):
                self.counts[name] += len(rows)
                take[name](rows.take(_by_end(rows)))

    def _take_waits(self, rows: NDArray[Any]) -> None:
        records = np.zeros((len(rows), 2), RECORD)
        begin, end = records[:, 0], records[:, 1]
        end_ns = self._spans(begin, rows)
        begin["verb"], begin["kind"] = rows["wait_class"], rows["kind"]
        begin["id"], begin["depth"], begin["result"] = (
            rows["id"],
            rows["queue_depth"],
            rows["result"],
        )
        begin["other"], begin["other_site"] = rows["owner"], rows["owner_site"]
        begin["waker"], begin["waker_site"] = rows["waker"], rows["waker_site"]
        begin["lane"] = self._place(WAITS, rows["thread"], rows["t_ns"], end_ns)
        begin["owner_lane"] = 0
        joins = rows[(rows["kind"] == _THREAD) & (rows["owner"] != 0)]
        self._joined.update(zip(joins["object"].tolist(), joins["owner"].tolist(), strict=True))
        self._first = min(self._first, int(rows["t_ns"].min()))
        end[:] = begin
        begin["what"], end["what"], end["ts"] = WAIT, WAIT_END, end_ns
        self._keep(records, begin)

    def _take_holds(self, rows: NDArray[Any]) -> None:
        records = np.zeros((len(rows), 2), RECORD)
        begin, end = records[:, 0], records[:, 1]
        end_ns = self._spans(begin, rows)
        begin["verb"] = _HOLDS
        begin["depth"], begin["other_site"] = rows["max_waiters"], rows["release_site"]
        begin["lane"] = self._place(HOLDS, rows["thread"], rows["t_ns"], end_ns)
        begin["owner_lane"] = self._place(OWNERS, rows["object"], rows["t_ns"], end_ns)
        end[:] = begin
        begin["what"], end["what"], end["ts"] = HOLD, HOLD_END, end_ns
        self._keep(records, begin)

    @staticmethod
    def _spans(begin: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int64]:
        """Fill in what waits and holds have alike; return when they end."""
        begin["ts"], begin["dur"] = rows["t_ns"], np.maximum(rows["dur_ns"], 0)
        begin["flags"] = (rows["mode"] == 1) * SHARED + (rows["open"] != 0) * OPEN
        for name in ("thread", "object", "site"):
            begin[name] = rows[name]
        return np.asarray(begin["ts"] + begin["dur"])

    def _place(
        self, what: int, rows: NDArray[Any], begin: NDArray[Any], end: NDArray[Any]
    ) -> NDArray[np.uint32]:
        return self._lanes.place(rows.astype(np.uint64) | np.uint64(what << 32), begin, end)

    def _keep(self, records: NDArray[Any], begin: NDArray[Any]) -> None:
        self._verbs.append(np.unique(self.verb_key(begin)))
        if len(self._verbs) > _PIECES:
            self._verbs = [np.unique(np.concatenate(self._verbs))]
        self._sorter.add(records.reshape(-1))

    def _take_wakeups(self, rows: NDArray[Any]) -> None:
        records = np.zeros((len(rows), 2), RECORD)
        given, taken = records[:, 0], records[:, 1]
        given["id"], given["object"], given["kind"] = rows["wait"], rows["object"], rows["kind"]
        given["site"] = rows["site"]
        taken[:] = given
        given["what"], given["thread"], given["other"] = WAKE, rows["waker"], rows["wakee"]
        taken["what"], taken["thread"], taken["other"] = WOKEN, rows["wakee"], rows["waker"]
        unknown = rows["t_ns"] == _native.NEVER
        given["ts"] = np.where(unknown, rows["woken_ns"], rows["t_ns"])
        taken["ts"] = rows["woken_ns"]
        self._sorter.add(records.reshape(-1))

    def _take_lives(self) -> None:
        """Take when threads were created, began, ended and were joined."""
        rows = np.arange(len(self.threads))
        lived = self.threads["tid"] != 0
        never = (_native.NEVER, 2**63 - 1)
        for what, column in (
            (CREATED, "create_ns"), (BEGUN, "first_ns"), (ENDED, "end_ns"), (JOINED, "join_ns"),
        ):  # fmt: skip
            known = rows[lived & ~np.isin(self.threads[column], never)]
            if what == CREATED:
                known = known[self.threads["creator"][known] != 0]
            records = np.zeros(len(known), RECORD)
            records["what"], records["ts"] = what, self.threads[column][known]
            records["thread"], records["id"] = known, known
            if what == CREATED:
                records["thread"], records["other"] = self.threads["creator"][known], known
                records["site"] = self.threads["create_site"][known]
            # What a thread does lies between, even at the very same time.
            self._sorter.add(records, first=what in {CREATED, BEGUN})


def chosen(records: NDArray[Any], which: NDArray[np.bool_]) -> NDArray[Any]:
    """Return some records; NumPy's own way to say so takes them apart, and twenty times as long."""
    return records.take(np.flatnonzero(which))


def _by_end(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of rows by their ends: of two parts of one wait the later is told first."""
    end = (
        rows["woken_ns"]
        if "woken_ns" in (rows.dtype.names or ())
        else rows["t_ns"] + rows["dur_ns"]
    )
    return np.argsort(end, kind="stable")


def _clipped(name: str) -> str:
    """Return a name that no viewer chokes on."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


class Depths:
    """How many threads wait for each object, record by record.

    Args:
        objects: How many objects there are.
    """

    def __init__(self, objects: int) -> None:
        self._now = np.zeros(objects, np.int64)

    def after(self, records: NDArray[Any], waiting: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the number after each record that begins or ends a wait, 0 for others.

        Args:
            records: The next ones in time.
            waiting: Which of them begin or end a wait.
        """
        found = np.zeros(len(records), np.int64)
        where = np.flatnonzero(waiting)
        if not len(where):
            return found
        where = where[np.argsort(records["object"][where], kind="stable")]
        objects = records["object"][where]
        step = np.where(records["what"][where] == WAIT, 1, -1)
        sums = np.cumsum(step)
        first = np.flatnonzero(np.r_[True, objects[1:] != objects[:-1]])
        before = self._now[objects[first]] - (sums[first] - step[first])
        found[where] = sums + np.repeat(before, np.diff(np.r_[first, len(where)]))
        last = np.r_[first[1:], len(where)] - 1
        self._now[objects[last]] = found[where[last]]
        return found
