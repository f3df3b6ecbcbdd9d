"""Adds up the waits of a segment, by stacks, threads, lock and class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass, replace
from nptltrace.analysis.stack_names import UNKNOWN, Frames
from nptltrace.export.writing.stacks import modules
from nptltrace.profiling.interval import BUCKETS, CONTENDED, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.profiling.interval import Interval
    from nptltrace.profiling.sampling import Sampler
    from nptltrace.trace.traceset import Traceset

__all__ = ["Carry", "add_up"]

# Rows of an interval. The waits of further rows count in a row for each class, without a stack.
_ROWS_MOST = 65_536
_OTHER = replace(UNKNOWN, function="[other]", text="[other]")
_NUMBERS = ("process", "tid", "lock_id", "owner_process", "owner_tid")
_KEYS = (*_NUMBERS, "class", "stack_id", "holder_stack_id")
_VALUES = ("samples", "weight", "total", "max", "held", "ready", "unknown")
# Waits that go on are remembered for so many threads.
_WAITING_MOST = 65_536


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A wait that goes on at the end of a segment.

    Attributes:
        image: Number of the process image in the recording.
        begin_ns: When the wait began, in ns since 1970.
        row: Names and stacks; the figures are 0.
    """

    image: int
    begin_ns: int
    row: Row


class Carry:
    """The waits that go on from one segment to the next, by process image and thread.

    Attributes:
        names: Names of threads that began in an earlier segment.
    """

    def __init__(self) -> None:
        self.names: dict[tuple[int, int], str] = {}
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def __len__(self) -> int:
        """Return the number of contended waits that go on."""
        return sum(wait.row.wait_class == CONTENDED for wait in self._waiting.values())

    def longest_ns(self, now_ns: int) -> int:
        """Return how long the longest contended wait has lasted at a time, in ns since 1970."""
        begins = [
            wait.begin_ns for wait in self._waiting.values() if wait.row.wait_class == CONTENDED
        ]
        return max(0, now_ns - min(begins, default=now_ns))

    def tids(self) -> set[int]:
        """Return the ids of the waiting threads."""
        return {tid for _, tid in self._waiting}

    def take(self, image: int, tid: int) -> _Waiting | None:
        """Return the wait of a thread, which has ended."""
        return self._waiting.pop((image, tid), None)

    def add(self, waiting: _Waiting) -> None:
        """Remember a wait that goes on, unless its beginning is known already."""
        if len(self._waiting) < _WAITING_MOST:
            self._waiting.setdefault((waiting.image, waiting.row.tid), waiting)

    def ended(self, ends: dict[int, int], last_ns: int | None) -> Iterator[tuple[_Waiting, int]]:
        """Yield each wait of a process that has ended, and the end, in ns since 1970.

        Args:
            ends: The ends of processes, by image.
            last_ns: The end of the recording, if it is over: then all waits have ended.
        """
        for key, waiting in list(self._waiting.items()):
            end_ns = ends.get(waiting.image, last_ns)
            if end_ns is not None:
                del self._waiting[key]
                yield waiting, end_ns


def add_up(
    tables: TraceTables, source: Traceset, interval: Interval, carry: Carry, sampler: Sampler,
    *, min_wait_ns: int, last: bool,
) -> None:  # fmt: skip
    """Add up the waits of a segment.

    A wait counts in the segment with its end, with all of its time.

    Args:
        tables: The tables of the segment.
        source: The segment, opened.
        interval: Takes the rows.
        carry: The waits that go on; it also remembers the waits that go on now.
        sampler: Chooses waits.
        min_wait_ns: Leave out shorter waits.
        last: Whether no further segment follows.
    """
    _Sums(tables, source, interval, carry, sampler, min_wait_ns=min_wait_ns).run(last=last)


class _Sums:
    """Adds up the waits of one segment."""

    def __init__(
        self, tables: TraceTables, source: Traceset, interval: Interval, carry: Carry,
        sampler: Sampler, *, min_wait_ns: int,
    ) -> None:  # fmt: skip
        self._tables, self._source, self._interval = tables, source, interval
        self._carry, self._sampler, self._min_wait_ns = carry, sampler, min_wait_ns
        self._images = [index for _, index, _ in source.reader.processes(0)]
        self._sums: dict[tuple[Any, ...], list[Any]] = {}
        self._stacks: dict[str, int] = {}  # numbers of stacks
        self._stack_ids: list[str] = []  # by number
        self._classes: list[str] = []
        self._carried: list[dict[str, Any]] = []
        self._open: list[dict[str, Any]] = []
        self._waited = carry.tids()
        self._other: dict[str, list[Any]] = {}

    def run(self, *, last: bool) -> None:
        beside = {name: self._tables.empty(name) for name in ("threads", "objects")}
        for name, piece in self._tables.pieces(("waits", *beside)):
            if name in beside:
                beside[name] = piece
            elif piece.num_rows:
                self._add(piece)
        threads = self._named_threads(beside["threads"])
        names = _Names(self._tables, self._source, threads, beside["objects"], self._stack_ids)
        interval = self._interval
        interval.modules = modules(self._tables)
        interval.run = self._tables.table("runs").to_pylist()[0]
        interval.rows += [names.row(self._named(key), sums) for key, sums in self._sums.items()]
        for wait_class, sums in self._other.items():
            interval.rows.append(_other_row(wait_class, sums))
        for raw in self._carried:
            self._finish_carried(raw, names)
        for raw in self._open:
            image, begin_ns = self._images[raw["process"]], raw["begin_ns"]
            row = names.row(self._raw_key(raw), _nothing())
            self._carry.add(_Waiting(image, self._source.start_unix_ns + begin_ns, row))
        # The log of processes goes on while the segment waits.
        ends = {
            self._images[number]: process.end_unix_ns
            for number, process in enumerate(self._source.processes)
            if process.end_unix_ns is not None and process.end_unix_ns <= interval.end_ns
        }
        for waiting, end_ns in self._carry.ended(ends, interval.end_ns if last else None):
            self._add_one(waiting.row, max(0, end_ns - waiting.begin_ns), {})
        interval.going_on = len(self._carry), self._carry.longest_ns(interval.end_ns)

    def _named_threads(self, threads: pa.Table) -> dict[tuple[int, int], str]:
        """Return the names of threads, and remember them for the next segments."""
        named, known = {}, self._carry.names
        columns = ("process", "tid", "name", "begun", "ended")
        for process, tid, now, begun, ended in zip(
            *(threads[column].to_pylist() for column in columns), strict=True
        ):
            key = self._images[process], tid
            # The name may be in the events of an earlier segment only.
            name = now or ("" if begun else known.get(key, ""))
            named[process, tid] = name
            if ended:
                known.pop(key, None)
            elif name and len(known) < _WAITING_MOST:
                known[key] = name
        return named

    # ---- many waits ----

    def _add(self, piece: pa.Table) -> None:
        """Add up a piece of the table of waits."""
        alone = self._alone(piece)
        keep = ~alone
        dur = _numpy(piece["dur_ns"])
        short = keep & (dur < self._min_wait_ns)
        count, ns = self._interval.below
        self._interval.below = count + int(short.sum()), ns + int(dur[short].sum())
        keep &= ~short
        weight = np.zeros(len(dur))
        weight[keep] = self._sampler.weights(dur[keep])
        keep &= weight > 0
        if not keep.any():
            return
        columns = self._columns(piece, keep, dur[keep], weight[keep])
        names = [*_KEYS, "bucket"]
        sums = pa.table(columns).group_by(names).aggregate(
            [("samples", "sum"), ("weight", "sum"), ("total", "sum"), ("max", "max"),
             ("held", "sum"), ("ready", "sum"), ("unknown", "sum")]
        )  # fmt: skip
        data = [sums[name].to_pylist() for name in _KEYS]
        values = [sums[f"{v}_max" if v == "max" else f"{v}_sum"].to_pylist() for v in _VALUES]
        for key, bucket, value in zip(
            zip(*data, strict=True), sums["bucket"].to_pylist(), zip(*values, strict=True),
            strict=True,
        ):  # fmt: skip
            self._merge(key, bucket, value)

    def _merge(self, key: tuple[Any, ...], bucket: int, value: tuple[Any, ...]) -> None:
        sums = self._sums.get(key)
        samples, weight, total, longest, held, ready, unknown = value
        if sums is None and len(self._sums) >= _ROWS_MOST:
            wait_class = self._classes[key[_KEYS.index("class")]]
            sums = self._other.setdefault(wait_class, _nothing())
            count, ns = self._interval.overflow
            self._interval.overflow = count + round(weight), ns + round(total)
        elif sums is None:
            sums = self._sums[key] = _nothing()
        sums[0] += samples
        sums[1] += weight
        sums[2] += total
        sums[3] = max(sums[3], longest)
        sums[4] += held
        sums[5] += ready
        sums[6] += unknown
        sums[7][bucket] += weight

    def _columns(
        self, piece: pa.Table, keep: NDArray[np.bool_], dur: NDArray[Any], weight: NDArray[Any]
    ) -> dict[str, Any]:
        ready = _numpy(piece["ready_ns"].fill_null(-1))[keep]
        held = _numpy(piece["held_ns"].fill_null(0))[keep]
        columns: dict[str, Any] = {
            name: _numpy(piece[name].fill_null(0)).astype(np.int64)[keep] for name in _NUMBERS
        }
        columns["owner_process"][_numpy(piece["owner_process"].is_null())[keep]] = -1
        columns["class"] = self._class_codes(piece)[keep]
        for name in ("stack_id", "holder_stack_id"):
            columns[name] = self._stack_codes(piece[name])[keep]
        columns |= {
            "bucket": np.clip(np.frexp(dur.astype(np.float64))[1] - 1, 0, BUCKETS - 1),
            "samples": np.ones(len(dur), np.int64),
            "weight": weight,
            "total": dur * weight,
            "max": dur,
            "held": held * weight,
            "ready": np.maximum(ready, 0) * weight,
            "unknown": (ready < 0).astype(np.int64),
        }
        return columns

    def _class_codes(self, piece: pa.Table) -> NDArray[np.int64]:
        column = piece["class"].combine_chunks()
        names = column.dictionary.to_pylist()
        for name in names:
            if name not in self._classes:
                self._classes.append(name)
        codes = np.array([self._classes.index(name) for name in names] or [0], np.int64)
        return np.asarray(codes[np.asarray(column.indices)])

    def _stack_codes(self, column: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return numbers of stacks; -1 if unknown."""
        array = column.combine_chunks()
        used = np.unique(np.asarray(array.indices.fill_null(-1)))
        codes = np.full(len(array.dictionary) + 1, -1, np.int64)
        for at in used[used >= 0].tolist():
            codes[at] = self._number(array.dictionary[at].as_py())
        return np.asarray(codes[np.asarray(array.indices.fill_null(-1))])

    def _named(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a key with the word for the class."""
        return (*key[:5], self._classes[key[5]], *key[6:])

    # ---- single waits ----

    def _alone(self, piece: pa.Table) -> NDArray[np.bool_]:
        """Return the waits to add up one by one: those that go on, and those that went on."""
        alone = _numpy(piece["open"]).astype(np.bool_)
        self._open += piece.filter(pa.array(alone)).to_pylist()
        if not self._waited:
            return alone
        tids = _numpy(piece["tid"].fill_null(0))
        carried = np.isin(tids, list(self._waited)) & ~alone
        _, first = np.unique(tids[carried], return_index=True)
        rows = np.flatnonzero(carried)[first]
        self._waited -= set(tids[rows].tolist())
        self._carried += piece.take(pa.array(rows)).to_pylist()
        alone[rows] = True
        return alone

    def _raw_key(self, raw: dict[str, Any]) -> tuple[Any, ...]:
        owner = raw["owner_process"]
        stacks = (self._number(raw[name]) for name in ("stack_id", "holder_stack_id"))
        return (
            raw["process"], raw["tid"] or 0, raw["lock_id"] or 0, -1 if owner is None else owner,
            raw["owner_tid"] or 0, raw["class"], *stacks,
        )  # fmt: skip

    def _number(self, stack: str | None) -> int:
        """Return the number of a stack; -1 if unknown."""
        if stack is None:
            return -1
        number = self._stacks.setdefault(stack, len(self._stacks))
        if number == len(self._stack_ids):
            self._stack_ids.append(stack)
        return number

    def _finish_carried(self, raw: dict[str, Any], names: _Names) -> None:
        """Add a wait that may have begun in an earlier segment."""
        row = names.row(self._raw_key(raw), _nothing())
        waiting = self._carry.take(self._images[raw["process"]], row.tid)
        if waiting is not None and waiting.row.address == row.address:
            row = replace(waiting.row, wait_class=row.wait_class)
        self._add_one(row, raw["dur_ns"], raw)

    def _add_one(self, row: Row, dur_ns: int, raw: dict[str, Any]) -> None:
        if dur_ns < self._min_wait_ns:
            count, ns = self._interval.below
            self._interval.below = count + 1, ns + dur_ns
            return
        weight = float(self._sampler.weights(np.array([dur_ns]))[0])
        if not weight:
            return
        held_ns, ready_ns = raw.get("held_ns"), raw.get("ready_ns")
        histogram = [0.0] * BUCKETS
        histogram[min(max(dur_ns.bit_length() - 1, 0), BUCKETS - 1)] = weight
        if held_ns is None:
            held_ns = dur_ns if row.wait_class == CONTENDED else 0
        self._interval.rows.append(
            replace(
                row, count=weight, samples=1, total_ns=dur_ns * weight, max_ns=dur_ns,
                held_ns=held_ns * weight,
                ready_ns=None if ready_ns is None else ready_ns * weight,
                histogram=tuple(histogram),
            )
        )  # fmt: skip


class _Names:
    """Names the parts of keys.

    Args:
        tables: The tables of the segment.
        source: The segment, opened.
        threads: Names of threads, by process and id.
        objects: The table `objects`.
        stacks: Identities of stacks, by number.
    """

    def __init__(
        self, tables: TraceTables, source: Traceset, threads: dict[tuple[int, int], str],
        objects: pa.Table, stacks: list[str],
    ) -> None:  # fmt: skip
        self._processes = source.processes
        self._stacks = stacks
        self._frames = Frames(tables)
        self._threads = threads
        rows = objects.select(["lock_id", "kind", "addr", "name"]).to_pylist()
        self._objects = {row["lock_id"]: row for row in rows}

    def row(self, key: tuple[Any, ...], sums: list[Any]) -> Row:
        process, tid, lock, owner_process, owner, wait_class, stack, holder = key
        image, what = self._processes[process], self._objects.get(lock, {})
        samples, weight, total, longest, held, ready, unknown, histogram = sums
        return Row(
            pid=image.pid,
            exe=image.exe,
            tid=tid,
            thread=self._threads.get((process, tid), ""),
            lock=what.get("name", ""),
            kind=what.get("kind", ""),
            address=what.get("addr", 0),
            wait_class=wait_class,
            owner_tid=owner or None,
            owner_thread=self._threads.get((owner_process, owner), ""),
            frames=self._of(stack) or (UNKNOWN,),
            holder_frames=self._of(holder),
            count=weight,
            samples=samples,
            total_ns=total,
            max_ns=longest,
            held_ns=held,
            ready_ns=None if unknown else ready,
            histogram=tuple(histogram),
        )

    def _of(self, stack: int) -> tuple[Any, ...]:
        return self._frames.of(self._stacks[stack]) if stack >= 0 else ()


def _other_row(wait_class: str, sums: list[Any]) -> Row:
    samples, weight, total, longest, held, _, _, histogram = sums
    return Row(
        pid=0, exe="", tid=0, thread="", lock="[other]", kind="", address=0, wait_class=wait_class,
        owner_tid=None, owner_thread="", frames=(_OTHER,), holder_frames=(), count=weight,
        samples=samples, total_ns=total, max_ns=longest, held_ns=held, ready_ns=None,
        histogram=tuple(histogram),
    )  # fmt: skip


def _nothing() -> list[Any]:
    return [0, 0.0, 0.0, 0, 0.0, 0.0, 0, [0.0] * BUCKETS]


def _numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy())
