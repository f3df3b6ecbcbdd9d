"""Adds up the waits of a segment, by stacks, threads, lock and class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass, replace
from nptltrace._escaping import readable
from nptltrace.analysis.stack_names import UNKNOWN, Frames
from nptltrace.export.writing.stacks import modules
from nptltrace.profiling.interval import BUCKETS, CONTENDED, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.profiling.interval import Interval
    from nptltrace.profiling.sampling import Sampler
    from nptltrace.trace.traceset import Traceset

__all__ = ["Carry", "add_up"]

# Rows of an interval. Further waits count in one more row for each class, without a stack.
_ROWS_MOST = 65_536
_OTHER = replace(UNKNOWN, function="[other]", text="[other]")
_NUMBERS = ("process", "tid", "lock_id", "owner_process", "owner_tid")
_KEYS = (*_NUMBERS, "class", "stack_id", "holder_stack_id")
_VALUES = ("samples", "weight", "total", "max", "held", "ready", "unknown")
# Waits that go on are remembered for so many threads.
_WAITING_MOST = 65_536
# Two segments may place a wait so far apart, and by so much of its time: each measures the speed of
# the clock anew.
_APART_NS, _APART_PART = 1_000_000, 1000
_TID_BITS = 32


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

    def begins(self) -> dict[tuple[int, int], int]:
        """Return when each wait began, in ns since 1970, by process image and thread."""
        return {key: wait.begin_ns for key, wait in self._waiting.items()}

    def row(self, image: int, tid: int) -> Row | None:
        """Return the names and stacks of the wait of a thread; None if it does not wait."""
        waiting = self._waiting.get((image, tid))
        return None if waiting is None else waiting.row

    def drop(self, threads: Iterable[tuple[int, int]]) -> None:
        """Forget the waits of threads, by process image and id."""
        for key in threads:
            self._waiting.pop(key, None)

    def add(self, waiting: _Waiting) -> None:
        """Remember a wait that goes on. A thread has one wait: the newest."""
        key = waiting.image, waiting.row.tid
        if key in self._waiting or len(self._waiting) < _WAITING_MOST:
            self._waiting[key] = waiting

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
        self._rows: dict[Row, list[Any]] = {}  # by names and stacks
        self._other: dict[str, list[Any]] = {}
        self._stacks: dict[str, int] = {}  # numbers of stacks
        self._stack_ids: list[str] = []  # by number
        self._classes: list[str] = []
        self._carried: list[dict[str, Any]] = []
        self._open: list[dict[str, Any]] = []
        self._over: set[int] = set()  # keys of threads with a wait that ended
        self._ended: set[tuple[int, int, int]] = set()  # threads, with their generations
        # The waits that went on, by `_key`: the key of the thread, and when the wait began.
        numbers = {image: number for number, image in enumerate(self._images)}
        waited = sorted(
            (_key(numbers[image], tid), begin_ns - source.start_unix_ns)
            for (image, tid), begin_ns in carry.begins().items()
            if image in numbers
        )
        self._waited = np.array(waited, np.int64).reshape(-1, 2)

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
        for key, (*value, histogram) in self._sums.items():
            row = names.row(self._named(key))
            self._merge(self._rows, row, row.wait_class, value, enumerate(histogram))
        for raw in self._carried:
            self._finish_carried(raw, names)
        self._carry.drop(self._thread_of(key) for key in self._over)
        self._carry.drop((self._images[process], tid) for process, tid, _ in self._ended)
        for raw in self._open:
            if (raw["process"], raw["tid"], raw["gen"]) in self._ended:
                continue
            row = names.row(self._raw_key(raw))
            begin_ns = self._source.start_unix_ns + raw["begin_ns"]
            self._carry.add(_Waiting(self._images[raw["process"]], begin_ns, row))
        # The log of processes goes on while the segment waits.
        ends = {
            self._images[number]: process.end_unix_ns
            for number, process in enumerate(self._source.processes)
            if process.end_unix_ns is not None and process.end_unix_ns <= interval.end_ns
        }
        for waiting, end_ns in self._carry.ended(ends, interval.end_ns if last else None):
            self._add_one(waiting.row, max(0, end_ns - waiting.begin_ns), None, None)
        rows = [*self._rows.items(), *((_other_row(word), s) for word, s in self._other.items())]
        interval.rows = [_with_figures(row, sums) for row, sums in rows]
        others = self._other.values()
        interval.overflow = round(sum(s[1] for s in others)), round(sum(s[2] for s in others))

    def _named_threads(self, threads: pa.Table) -> dict[tuple[int, int], str]:
        """Return the names of threads, and remember them for the next segments."""
        named, known = {}, self._carry.names
        columns = ("process", "tid", "gen", "name", "begun", "ended")
        for process, tid, gen, now, begun, ended in zip(
            *(threads[column].to_pylist() for column in columns), strict=True
        ):
            key = self._images[process], tid
            # The name may be in the events of an earlier segment only.
            name = now or ("" if begun else known.get(key, ""))
            named[process, tid] = name
            if ended:
                known.pop(key, None)
                self._ended.add((process, tid, gen))
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
            wait_class = self._classes[key[_KEYS.index("class")]]
            self._merge(self._sums, key, wait_class, value, [(bucket, value[1])])

    def _merge(
        self, table: dict[Any, list[Any]], key: Any, wait_class: str, value: Sequence[Any],
        histogram: Iterable[tuple[int, float]],
    ) -> None:  # fmt: skip
        """Add figures to a row of a table, or to the row of the class if the table is full."""
        sums = table.get(key)
        if sums is None and len(table) >= _ROWS_MOST:
            sums = self._other.setdefault(wait_class, _nothing())
        elif sums is None:
            sums = table[key] = _nothing()
        samples, weight, total, longest, held, ready, unknown = value
        sums[0] += samples
        sums[1] += weight
        sums[2] += total
        sums[3] = max(sums[3], longest)
        sums[4] += held
        sums[5] += ready
        sums[6] += unknown
        for bucket, count in histogram:
            sums[7][bucket] += count

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
            "bucket": _buckets(dur),
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
        if not len(self._waited):
            return alone
        keys = _key(_numpy(piece["process"]).astype(np.int64), _numpy(piece["tid"].fill_null(0)))
        at = np.minimum(np.searchsorted(self._waited[:, 0], keys), len(self._waited) - 1)
        later = (self._waited[at, 0] == keys) & ~alone
        self._over.update(np.unique(keys[later]).tolist())
        apart = np.abs(_numpy(piece["begin_ns"]) - self._waited[at, 1])
        carried = later & (apart <= _APART_NS + _numpy(piece["dur_ns"]) // _APART_PART)
        self._carried += piece.filter(pa.array(carried)).to_pylist()
        return np.asarray(alone | carried)

    def _thread_of(self, key: int) -> tuple[int, int]:
        """Return the process image and the id of a thread."""
        process, tid = divmod(key, 1 << _TID_BITS)
        return self._images[process], tid

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
        """Add a wait that began in an earlier segment."""
        row = names.row(self._raw_key(raw))
        thread = self._images[raw["process"]], row.tid
        before = self._carry.row(*thread)
        if before is not None and before.address == row.address:
            row = _completed(row, before)
            self._carry.drop([thread])
        self._add_one(row, raw["dur_ns"], raw["held_ns"], raw["ready_ns"])

    def _add_one(
        self, row: Row, dur_ns: int, held_ns: int | None, ready_ns: int | None
    ) -> None:  # fmt: skip
        """Add a wait; times are None if they are not known."""
        if dur_ns < self._min_wait_ns:
            count, ns = self._interval.below
            self._interval.below = count + 1, ns + dur_ns
            return
        dur = np.array([dur_ns])
        weight = float(self._sampler.weights(dur)[0])
        if not weight:
            return
        if held_ns is None:
            held_ns = dur_ns if row.wait_class == CONTENDED else 0
        value = (
            1, weight, dur_ns * weight, dur_ns, held_ns * weight, (ready_ns or 0) * weight,
            int(ready_ns is None),
        )  # fmt: skip
        self._merge(self._rows, row, row.wait_class, value, [(int(_buckets(dur)[0]), weight)])


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

    def row(self, key: tuple[Any, ...]) -> Row:
        """Return a row without figures."""
        process, tid, lock, owner_process, owner, wait_class, stack, holder = key
        image, what = self._processes[process], self._objects.get(lock, {})
        return Row(
            pid=image.pid,
            exe=readable(image.exe),
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
        )

    def _of(self, stack: int) -> tuple[Any, ...]:
        return self._frames.of(self._stacks[stack]) if stack >= 0 else ()


def _other_row(wait_class: str) -> Row:
    return Row(
        pid=0, exe="", tid=0, thread="", lock="[other]", kind="", address=0, wait_class=wait_class,
        owner_tid=None, owner_thread="", frames=(_OTHER,), holder_frames=(),
    )  # fmt: skip


def _completed(row: Row, before: Row) -> Row:
    """Return the row of a wait, with what only the segment with its beginning knows.

    The event of the end has a place in the code at most, so the stack comes from the beginning.
    """
    owner = before if row.owner_tid is None else row
    return replace(
        row,
        thread=row.thread or before.thread,
        kind=row.kind or before.kind,
        owner_tid=owner.owner_tid,
        owner_thread=owner.owner_thread,
        frames=row.frames if before.frames == (UNKNOWN,) else before.frames,
        holder_frames=row.holder_frames or before.holder_frames,
    )


def _with_figures(row: Row, sums: list[Any]) -> Row:
    samples, weight, total, longest, held, ready, unknown, histogram = sums
    return replace(
        row, count=weight, samples=samples, total_ns=total, max_ns=longest, held_ns=held,
        ready_ns=None if unknown else ready, histogram=tuple(histogram),
    )  # fmt: skip


def _key(process: Any, tid: Any) -> Any:
    """Return a number for a thread of a process: for numbers, or for arrays of numbers."""
    return process << _TID_BITS | tid


def _buckets(dur_ns: NDArray[Any]) -> NDArray[Any]:
    """Return the buckets of waits in a histogram."""
    return np.asarray(np.clip(np.frexp(dur_ns.astype(np.float64))[1] - 1, 0, BUCKETS - 1))


def _nothing() -> list[Any]:
    return [0, 0.0, 0.0, 0, 0.0, 0.0, 0, [0.0] * BUCKETS]


def _numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy())
