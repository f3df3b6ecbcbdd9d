"""Timelines for viewers: rows with waits and holds, wake-ups between them, lives of threads.

All formats for viewers write the records of a timeline. Times are in ns since the start of the
traceset, or since the begin of its first wait if that is earlier.

The model reports a wait or a hold at its end, and viewers need the begin. So the trace is read
twice. The first time finds the names, and the few intervals that cross a border between batches of
events. The second time yields the records. So memory does not grow with the length of the trace.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace._units import plural
from nptltrace.analysis.model import Window, model_steps
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.naming import Naming
from nptltrace.export.writing import records as rec
from nptltrace.export.writing.sorting import Sorter, in_order
from nptltrace.trace.code.call_site import hex_of_site, stack_sites
from nptltrace.trace.reading.prefetch import made_ahead
from nptltrace.trace.symbols.frames import recorded_site, stack_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.trace.info import Process
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Depths", "Lane", "Timeline", "chosen"]

_PIECES = 100  # sets to keep before they are merged
_LONGEST = 1000  # characters of a name
_THREAD = 1  # kind of an object that stands for a joined thread


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of intervals that do not overlap.

    Attributes:
        what: WAITS or HOLDS of a thread, or OWNERS of an object.
        row: The row of the thread or object.
        place: The number among the lanes with the same `what` and `row`, from 0.
    """

    what: int
    row: int
    place: int


class Timeline:
    """The states of a traceset's threads and objects.

    Args:
        source: The opened traces.
        symbols: Gives names to addresses, or None.
        scope: The window and the threads to follow; None for everything.

    Attributes:
        threads: The threads of the model; row 0 is none.
        objects: The objects of the model.
        lanes: The lanes of intervals.
        stack_keys: The call stacks of waits and holds, as `stack` takes them, without duplicates.
        verb_keys: Verbs with objects, as `verb_key` numbers them, without duplicates.
        used: The objects with waits or holds, without joined threads.
        counts: The numbers of waits, holds and wake-ups.
        shift_ns: The time that was added to all times, so that no time is negative.
    """

    def __init__(self, source: Traceset, symbols: Symbols | None, scope: Scope | None) -> None:
        source.names.learn()
        scope = scope or Scope()
        self._source, self._symbols, self._window = source, symbols, scope.window.of(source)
        self._counted = scope.counted
        self._late = Sorter(rec.RECORD)
        self._verbs: list[NDArray[np.uint64]] = []
        self._stacks: list[NDArray[np.uint64]] = []
        self.counts = {"waits": 0, "holds": 0, "wakeups": 0}
        self._joined: dict[int, int] = {}
        self._first = 0
        lanes = libptttrack_sums.Lanes()
        model = self._learn(lanes)
        self.threads = model.table("threads")
        self.objects = model.table("objects")
        self.sites = model.table("sites")
        self._names = Naming(source, symbols, self.threads, self.objects, self.sites)
        # At equal times, the events of a thread come after its begin and before its end.
        self._beginnings = Sorter(rec.RECORD)
        for what in (rec.BEGUN, rec.CREATED):
            self._beginnings.add(self._lives(what))
        for what in (rec.ENDED, rec.JOINED):
            self._late.add(self._lives(what))
        self.lanes = [
            Lane(int(group) >> 32, int(group) & 0xFFFFFFFF, int(place))
            for group, place in lanes.table()[["group", "place"]].tolist()
        ]
        keys = _each_once(self._verbs)
        self.verb_keys: NDArray[np.uint64] = keys
        stacks = _each_once(self._stacks)
        self.stack_keys: NDArray[np.uint64] = stacks[stacks > 0]
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
        return self._source.processes

    def lived(self) -> list[int]:
        """Return the threads that ran; with a window, the threads that lived in the window."""
        lived = self.threads["tid"] != 0
        if self._window != Window():
            lived &= self.threads["first_ns"] != libptttrack_sums.END
        return np.flatnonzero(lived).tolist()

    def _lives(self, what: int) -> NDArray[Any]:
        """Return the records of one kind about lives of threads, in the window and in order."""
        lives = np.sort(rec.lives(self.threads, what), order="ts", kind="stable")
        return lives[self._window.has(lives["ts"])]

    def thread(self, row: int) -> str:
        """Return the label of a thread, as `worker 123`; empty for row 0."""
        if not row:
            return ""
        name = self._names.thread(row)
        return _clipped(f"{name.name or 'thread'} {name.tid or '(never ran)'}")

    def thread_texts(self) -> list[str]:
        """Return the labels of all threads by row; empty for a thread that never ran."""
        lived = set(self.lived())
        return [self.thread(row) if row in lived else "" for row in range(len(self.threads))]

    def thread_name(self, row: int) -> ThreadName:
        """Return process id, thread id and name of a thread."""
        return self._names.thread(row)

    def object(self, row: int) -> str:
        """Return the label of an object, as `mutex g_lock`."""
        if self._names.kind(row) == "thread":
            target = self._joined.get(row, 0)
            return self.thread(target) or f"thread {int(self.objects['address'][row]):#x}"
        return _clipped(f"{self._names.kind(row)} {self._names.object(row)}")

    def site(self, row: int) -> str:
        """Return a call site, as `work+0x1c (pool.c:88)`; empty for row 0."""
        return _clipped(self._names.site(row))

    def stack(self, key: int) -> list[str]:
        """Return the frames of a call stack as text, from the call site on, the innermost first."""
        number, stack = key >> 32, key & 0xFFFFFFFF
        process = self.processes[number]
        sites = stack_sites(process.stacks, stack)
        site = self._source.chosen.of_stack(number, stack) or recorded_site(process, sites)
        if self._symbols is None:
            return [*map(hex_of_site, sites[sites.index(site) :])] if sites else []
        return stack_texts(self._symbols, number, sites, site)

    def verb(self, key: int) -> str:
        """Return a verb with its object, as `waits for mutex g_lock`; see `verb_key`."""
        return f"{rec.VERBS[key & 7]} {self.object(key >> 3)}"

    @staticmethod
    def verb_key(records: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the numbers that `verb` takes: object << 3 | verb."""
        return np.asarray(records["object"].astype(np.uint64) << np.uint64(3) | records["verb"])

    def verb_places(self, records: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places in `verb_keys` of the verbs of records."""
        return np.asarray(np.searchsorted(self.verb_keys, self.verb_key(records)))

    def stack_places(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the places of call stacks in `stack_keys`, from 1; 0 for none."""
        return np.where(keys, np.searchsorted(self.stack_keys, keys) + 1, 0)

    def summary(self) -> str:
        """Return the numbers of waits, holds, wake-ups and threads as text."""
        n = self.counts
        threads = len(self.lived())
        return (
            f"{n['waits']:,} {plural(n['waits'], 'wait')}, "
            f"{n['holds']:,} {plural(n['holds'], 'hold')} and "
            f"{n['wakeups']:,} {plural(n['wakeups'], 'wake-up')} "
            f"of {threads} {plural(threads, 'thread')}"
        )

    # ---- records ----

    def records(self, most: int) -> Iterator[NDArray[Any]]:
        """Yield all records in the order of time. May be called once.

        Args:
            most: The largest number of records in one batch.
        """
        batches = self._batches()
        with closing(made_ahead(lambda: next(batches, None))) as ahead:
            for records in ahead:
                if self.shift_ns:
                    records["ts"] += self.shift_ns
                for start in range(0, len(records), most):
                    yield records[start : start + most]

    def _batches(self) -> Iterator[NDArray[Any]]:
        """Read the trace again, and yield the records of each batch of events, with late records.

        Records with equal times keep the order of the model's reports.
        """
        lanes = libptttrack_sums.Lanes()
        early: list[NDArray[Any]] = []
        before = libptttrack_sums.NEVER
        for model, reached in self._steps():
            reported = [*early, *(pairs.records(before) for pairs in self._pairs(model, lanes))]
            model.drop_rows()
            pieces, early = self._beginnings.until(reached), []
            for records in reported:
                ahead = records["ts"] > reached
                if ahead.any():
                    early.append(chosen(records, ahead))
                pieces.append(chosen(records, ~ahead) if ahead.any() else records)
            pieces += self._late.until(reached)
            if any(map(len, pieces)):
                yield in_order(pieces)
            before = reached

    def _steps(self) -> Iterator[tuple[libptttrack_sums.Model, int]]:
        return model_steps(
            self._source, libptttrack_sums.ROWS, window=self._window, counted=self._counted
        )

    def _pairs(
        self, model: libptttrack_sums.Model, lanes: libptttrack_sums.Lanes
    ) -> Iterator[rec.Pairs]:
        """Yield the rows of the current batch of the model."""
        processes = model.table("threads", copy=False)["process"]
        for name in self.counts:
            rows = model.table(name, copy=False)
            if len(rows):
                yield rec.Pairs(name, rows, lanes, processes)

    def _learn(self, lanes: libptttrack_sums.Lanes) -> libptttrack_sums.Model:
        """Read the trace for the first time: counts, names and late records."""
        before = libptttrack_sums.NEVER
        for model, reached in self._steps():
            for pairs in self._pairs(model, lanes):
                self.counts[pairs.name] += len(pairs.rows)
                self._first = min(self._first, int(pairs.times.min()))
                self._late.add(pairs.late_records(before))
                self._verbs.append(pairs.verb_keys())
                self._stacks.append(pairs.stacks())
                if pairs.name == "waits":
                    self._learn_joins(pairs.rows)
            if len(self._verbs) > _PIECES:
                self._verbs, self._stacks = [_each_once(self._verbs)], [_each_once(self._stacks)]
            model.drop_rows()
            before = reached
        return model

    def _learn_joins(self, waits: NDArray[Any]) -> None:
        joins = waits[(waits["kind"] == _THREAD) & (waits["owner"] != 0)]
        self._joined.update(zip(joins["object"].tolist(), joins["owner"].tolist(), strict=True))


def _each_once(pieces: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    return np.unique(np.concatenate(pieces)) if pieces else np.empty(0, np.uint64)


def chosen(records: NDArray[Any], which: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the chosen records. Indexing by the mask goes by field, and takes 20 times as long."""
    return records.take(np.flatnonzero(which))


def _clipped(name: str) -> str:
    """Return a name that is not too long for viewers."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


class Depths:
    """Counts the threads that wait for each object.

    Args:
        objects: The number of objects.
    """

    def __init__(self, objects: int) -> None:
        self._now = np.zeros(objects, np.int64)

    def changes(self, records: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the records that change queues of objects, and the new lengths of the queues.

        Args:
            records: The next records in time.
        """
        what, kind = records["what"], records["kind"]
        waits = (what == rec.WAIT) | (what == rec.WAIT_END)
        records = chosen(records, waits & (kind != _THREAD))
        depths = np.zeros(len(records), np.int64)
        if not len(records):
            return records, depths
        where = np.argsort(records["object"], kind="stable")
        objects = records["object"][where]
        step = np.where(records["what"][where] == rec.WAIT, 1, -1)
        sums = np.cumsum(step)
        first = np.flatnonzero(np.r_[True, objects[1:] != objects[:-1]])
        before = self._now[objects[first]] - (sums[first] - step[first])
        depths[where] = sums + np.repeat(before, np.diff(np.r_[first, len(where)]))
        last = np.r_[first[1:], len(where)] - 1
        self._now[objects[last]] = depths[where[last]]
        return records, depths
