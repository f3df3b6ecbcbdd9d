"""Runs the model over a traceset: sums for reports, and waits, holds and wake-ups as Arrow tables.

Times are ns since the traceset's start. `catalog/tables.toml` declares the columns. These tables
also have the inputs of `analysis.sql.tables`, and lack the columns that module adds. Sites are
addresses, 0 for unknown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.objects import Users
from nptltrace.analysis.recording_state import add_levels, ended_ns
from nptltrace.analysis.snapshots import Keeper, forget, latest
from nptltrace.catalog.tables import FROM_ROWS
from nptltrace.trace.objects.gates import gates_of
from nptltrace.trace.objects.gils import GIL_PARTS, HAND_OVER
from nptltrace.trace.reading.columns import ArrayBuffer
from nptltrace.trace.reading.prefetch import reading_ahead, whole_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from nptltrace._binding.libptttrack_facts import Check
    from nptltrace.analysis.snapshots import State
    from nptltrace.trace.info import SharedMemory
    from nptltrace.trace.objects.chosen import Chosen
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = [
    "ROW_TABLES", "Counted", "Tables", "Window", "add_parents", "add_site_uses", "begin_window",
    "begun_from", "event_buffers", "feed_window", "finish_model", "model_batches", "model_rows",
    "model_steps", "model_sums", "model_tables", "new_model", "restrict", "row_flags",
    "run_model", "share_memory",
]  # fmt: skip

ROW_TABLES = ("waits", "holds", "wakeups")

_MADE = 4
_UNKNOWN = 2**32 - 1
_BATCH = 1 << 16
_NO_CPU = 2**16 - 1
# Size of the largest array of gates, and the step of the search for gates, in bytes.
_GATES_SIZE, _WORD = 128 * 40, 8


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a traceset between two times.

    Of a wait or hold that reaches out of the window, the part inside counts. So windows that follow
    one another add up to the whole.

    Attributes:
        begin_ns: First time of the window, or None for the start.
        end_ns: First time after the window, or None for the end.
    """

    begin_ns: int | None = None
    end_ns: int | None = None

    def common(self, other: Window) -> Window:
        """Return the window that lies in both windows."""
        begins = [t for t in (self.begin_ns, other.begin_ns) if t is not None]
        ends = [t for t in (self.end_ns, other.end_ns) if t is not None]
        return Window(max(begins, default=None), min(ends, default=None))

    def of(self, source: Traceset) -> Window:
        """Return the part of the window that traces cover: a trace may be a part of a recording."""
        return self.common(Window(*source.part_ns()))

    def includes(self, ts: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each time whether it lies in the window."""
        inside = np.ones(ts.shape, np.bool_)
        if self.begin_ns is not None:
            inside &= ts >= self.begin_ns
        if self.end_ns is not None:
            inside &= ts < self.end_ns
        return inside

    def has(self, ts: NDArray[Any]) -> slice:
        """Return the slice of sorted times that lie in the window."""
        begin = 0 if self.begin_ns is None else int(np.searchsorted(ts, self.begin_ns))
        end = len(ts) if self.end_ns is None else int(np.searchsorted(ts, self.end_ns))
        return slice(begin, max(begin, end))


@dataclass(frozen=True, slots=True)
class Counted:
    """The things to count; None stands for all. The model follows all events in any case.

    Attributes:
        threads: Numbers of threads in the traceset.
        objects: The objects.
        sites: (process, address) pairs of call sites.
    """

    threads: list[int] | None = None
    objects: list[Chosen] | None = None
    sites: list[tuple[int, int]] | None = None


def run_model(
    source: Traceset,
    flags: int = 0,
    *,
    window: Window | None = None,
    counted: Counted | None = None,
    take: Callable[[libptttrack_sums.Model], None] | None = None,
) -> libptttrack_sums.Model:
    """Feed a traceset to a model and finish it.

    Args:
        source: The opened traces.
        flags: The tables that the model keeps, as in `libptttrack_sums.Model`.
        window: The part to read.
        counted: The things to count.
        take: Takes rows out after every batch of events, and once more at the end.

    Raises:
        NativeError: Memory is out.
    """
    for model, _ in model_steps(source, flags, window=window, counted=counted):
        if take is not None:
            take(model)
            model.drop_rows()
    return model


def model_steps(
    source: Traceset, flags: int, *, window: Window | None = None, counted: Counted | None = None
) -> Iterator[tuple[libptttrack_sums.Model, int]]:
    """Feed a traceset to a model, and yield the model after every batch, to take rows out.

    Args:
        source: The opened traces.
        flags: The tables that the model keeps, as in `libptttrack_sums.Model`.
        window: The part to read.
        counted: The things to count.

    Yields:
        The model and the time of the last event so far, in ns. At the end, the finished model and
        `libptttrack_sums.END`.

    Raises:
        NativeError: Memory is out.
    """
    window, counted = window or Window(), counted or Counted()
    model = new_model(source, flags)
    restrict(model, counted)
    for buffer in feed_window(model, source, window):
        yield model, int(buffer.column("ts")[-1])
    finish_model(model, source)
    yield model, libptttrack_sums.END


def restrict(model: libptttrack_sums.Model, counted: Counted) -> None:
    """Let a model count only some threads, objects and call sites. It still follows all events."""
    if counted.threads is not None:
        model.only_threads(counted.threads)
    if counted.objects is not None:
        model.only_objects(counted.objects)
    if counted.sites is not None:
        model.only_sites(counted.sites)


def feed_window(
    model: libptttrack_sums.Model, source: Traceset, window: Window
) -> Iterator[ArrayBuffer]:
    """Feed a new model the events that it needs for a window. Then call `finish_model`.

    The model needs all events before the window: they show the holds and waits at its beginning.
    After the events of the window, the model needs more events until the last wait that reaches
    out of the window has ended.

    Args:
        model: A new model that knows the threads of the traceset.
        source: The opened traces.
        window: The part to count.

    Yields:
        The events, after the model has seen them.
    """
    begin_window(model, source, window)
    state = begun_from(model, source, window)
    keeper = Keeper(source, model)
    if state is not None or window.begin_ns is None or not model.counts_all:
        keeper.drop()
    for buffer in event_buffers(source, Window(), state, processors=True):
        if not buffer.count:
            continue
        ts = buffer.column("ts")
        if keeper.wanted and int(ts[-1]) >= (window.begin_ns or 0):
            keeper.finish()
        model.feed(buffer)
        keeper.saw(ts)
        yield buffer
        last = int(buffer.column("ts")[-1])
        if window.end_ns is not None and last >= window.end_ns and not model.undecided:
            break


def begin_window(model: libptttrack_sums.Model, source: Traceset, window: Window) -> None:
    """Give a new model its window, and the holds and waits that reach into the window.

    Args:
        model: A new model that knows the threads of the traceset.
        source: The opened traces.
        window: The part to count.
    """
    window = window.of(source)
    model.window(window.begin_ns, window.end_ns)
    for trace, early in source.before():
        numbers, known = _numbers_of(model, source, trace, early)
        domains = early.traces[0].info.session.domains
        for number, (owner, index, _) in enumerate(source.reader.processes(0)):
            if owner == trace.number and number in known:
                model.set_full(number, domains.get(index, 0))
        with reading_ahead(libpttread.Cursor(early.reader)) as batches:
            for buffer in batches:
                threads = buffer.column("thread")
                threads[:] = numbers[threads]
                model.feed_early(buffer)


def _numbers_of(
    model: libptttrack_sums.Model, source: Traceset, trace: TraceFiles, early: Traceset
) -> tuple[NDArray[Any], set[int]]:
    """Return the numbers in the traceset of the threads of the events before a trace.

    The second value is the numbers of the processes that the model knows.
    """
    number_of = {pair: number for number, pair in enumerate(source.thread_ids)}
    process_of = {
        index: number
        for number, (owner, index, _) in enumerate(source.reader.processes(0))
        if owner == trace.number
    }
    indices = [index for _, index, _ in early.reader.processes(0)]
    numbers = np.full(len(early.thread_ids), _UNKNOWN, np.uint32)
    for at, (process, tid) in enumerate(early.thread_ids):
        number = process_of.get(indices[process])
        if number is not None:
            # A thread without events in the traces gets a number after all others.
            numbers[at] = number_of.setdefault((number, tid), len(number_of))
            model.thread(int(numbers[at]), number, tid)
    return numbers, {process for process, _ in number_of}


def new_model(source: Traceset, flags: int) -> libptttrack_sums.Model:
    """Return a model that knows the threads and processes of a traceset."""
    model = libptttrack_sums.Model(flags)
    for number, (process, tid) in enumerate(source.reader.threads()):
        model.thread(number, process, tid)
    add_parents(model, source)
    share_memory(model, source)
    add_purposes(model, source)
    add_site_uses(model, source)
    return model


def add_parents(model: libptttrack_sums.Model, source: Traceset) -> None:
    """Give the model the id spaces, the levels and the parents of the processes."""
    for number, (trace, _, _) in enumerate(source.reader.processes(0)):
        process = source.processes[number]
        # The parent of a process in another PID namespace knows the process by another id.
        model.space(number, trace + 1 if process.pid == process.inner_pid else 0)
    add_levels(model, source)
    seen = {process for process, _ in source.reader.threads()}
    for number, parent in source.parents().items():
        if {parent, number} <= seen:
            model.child(number, parent)


def add_purposes(model: libptttrack_sums.Model, source: Traceset) -> None:
    """Give the model the purposes of locks and semaphores: of Python, and of gates."""
    for number in range(len(source.processes)):
        for gil in filter(None, source.python.gils(number)):
            for part in GIL_PARTS:
                model.gil(number, gil + part, HAND_OVER if part == 0 else 0)
    _add_gates(model, source)
    for process, stack, units, purpose in source.python.purposes():
        model.semaphore(process, stack, purpose, units=units)


def _add_gates(model: libptttrack_sums.Model, source: Traceset) -> None:
    """Give the model the gates: locks where programs park threads."""
    gates_by_process = {
        number: set(gates)
        for number, process in enumerate(source.processes)
        if (gates := gates_of(process.exe))
    }
    if not gates_by_process:
        return
    from nptltrace.trace.symbols.lookup import Symbols

    symbols = Symbols(source)
    for name in set().union(*gates_by_process.values()):
        for process, start in symbols.find_object(name):
            if name not in gates_by_process.get(process, ()):
                continue
            for address in range(start, start + _GATES_SIZE, _WORD):
                if symbols.object_name(process, address).partition("+")[0] == name:
                    model.gate(process, address)


def add_site_uses(model: libptttrack_sums.Model, source: Traceset) -> None:
    """Give the model the call sites in wrappers, and the call sites where threads sleep."""
    for process, site, use in source.chosen.uses():
        model.site(process, site, use)


def share_memory(model: libptttrack_sums.Model | Check, source: Traceset) -> None:
    """Give a model or checker the memory that several processes have mapped.

    Args:
        model: A model or checker, which keeps objects by process and address.
        source: The opened traces.
    """
    users: dict[tuple[str, str], set[int]] = {}
    mappings: list[tuple[int, tuple[str, str], SharedMemory]] = []
    for number, (trace, _, _) in enumerate(source.reader.processes(0)):
        boot = source.traces[trace].metadata.env.get("boot_id", "")
        for part in source.processes[number].shared:
            key = (str(boot), part.file)
            users.setdefault(key, set()).add(number)
            mappings.append((number, key, part))
    several = {key: n for n, key in enumerate(key for key in users if len(users[key]) > 1)}
    for number, key, part in mappings:
        if key in several and part.start < part.end:
            model.share(number, part.start, part.end, several[key], part.offset)


def begun_from(model: libptttrack_sums.Model, source: Traceset, window: Window) -> State | None:
    """Load the latest snapshot before a window into a new model; return it, or None."""
    if window.begin_ns is None or not model.counts_all:
        return None
    state = latest(source, window.begin_ns)
    if state is not None and not model.load(state.data):
        forget(source)
        return None
    return state


def event_buffers(
    source: Traceset,
    window: Window,
    state: State | None = None,
    end: libpttread.Position | None = None,
    *,
    processors: bool = False,
) -> Iterator[ArrayBuffer]:
    """Yield events in batches. The next batch is read while the caller uses this one.

    Args:
        source: The opened traces.
        window: The part to read.
        state: Begin after this state, and not at the beginning of the window.
        end: End before this position, and not at the end of the window.
        processors: Whether to read the numbers of the processors.
    """
    reader = source.reader
    cursor = libpttread.Cursor(reader)
    if state is not None:
        cursor.seek_key(reader.key_of_time(state.ts_ns))
        left = state.same
        while left and (n := cursor.read(ArrayBuffer(min(left, _BATCH)))):
            left -= n
    elif window.begin_ns is not None:
        cursor.seek_key(reader.key_of_time(window.begin_ns))
    if end is not None:
        cursor.limit(end)
    elif window.end_ns is not None:
        cursor.limit_key(reader.key_of_time(window.end_ns))
    yield from whole_batches(source, cursor, processors=processors)


def finish_model(model: libptttrack_sums.Model, source: Traceset) -> None:
    """End the open holds and waits of a model that has seen all its events."""
    model.finish(source.killed_ns(), ended_ns(source))


# ---- tables ----


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a model, as Arrow tables.

    Attributes:
        threads: A row for each thread, in the order of their first events.
        objects: A row for each object. A reused address is another object (`generation`).
        waits: A row for each wait, in the order of their ends.
        holds: A row for each hold of a mutex, rwlock, spin lock, semaphore or running once routine.
        wakeups: A row for each wait that another thread ended.
        edges: A row for each pair of a held lock and a lock that the holder asked for.
        blames: A row for each holder, object and call site, with the waiting of other threads.
    """

    threads: pa.Table
    objects: pa.Table
    waits: pa.Table
    holds: pa.Table
    wakeups: pa.Table
    edges: pa.Table
    blames: pa.Table


def model_tables(source: Traceset, *, window: Window | None = None) -> Tables:
    """Return all tables of a traceset.

    Args:
        source: The opened traces.
        window: The part to read.
    """
    parts: dict[str, list[pa.Table]] = {}
    for name, table in model_batches(source, window=window):
        parts.setdefault(name, []).append(table)
    return Tables(**{name: pa.concat_tables(tables) for name, tables in parts.items()})


def model_batches(
    source: Traceset,
    rows: Collection[str] = ROW_TABLES,
    *,
    edges: bool = True,
    window: Window | None = None,
    counted: Counted | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a traceset in pieces, each with its name, as the events are read.

    Every table comes at least once, and may be empty. The tables threads, objects, edges and
    blames come at the end, in one piece each.

    Args:
        source: The opened traces.
        rows: The tables to yield of waits, holds, wakeups, states and hold_samples.
        edges: Whether to make the edges. There may be many more edges than events.
        window: The part to read.
        counted: The things to count.
    """
    flags = row_flags(rows) | (libptttrack_sums.EDGES if edges else 0)
    for model, _ in model_steps(source, flags, window=window, counted=counted):
        yield from model_rows(model, rows)
        model.drop_rows()
    names = _Numbers(model)
    yield from ((name, _ROWS[name](names, model.table(name))) for name in rows)
    yield from model_sums(model, source, edges=edges, window=window)


def row_flags(rows: Collection[str]) -> int:
    """Return the flags of a model that makes some of its tables of rows.

    Args:
        rows: Names of the tables.
    """
    flags = libptttrack_sums.ROWS if any(name in ROW_TABLES for name in rows) else 0
    flags |= libptttrack_sums.STATES_OF if "states" in rows else 0
    return flags | (libptttrack_sums.INSIDE_OF if "hold_samples" in rows else 0)


def model_rows(
    model: libptttrack_sums.Model, rows: Collection[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables with new rows of a model, each with its name.

    Args:
        model: The model.
        rows: The tables to yield of waits, holds, wakeups, states and hold_samples.
    """
    names = _Numbers(model)
    for name in rows:
        table = model.table(name, copy=False)
        if len(table):
            yield name, _ROWS[name](names, table)


def model_sums(
    model: libptttrack_sums.Model, source: Traceset, *, edges: bool, window: Window | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield threads, objects, edges and blames of a finished model, each with its name.

    Args:
        model: The model.
        source: The opened traces.
        edges: Whether to make the edges.
        window: The part that the model counted.
    """
    names, part = _Numbers(model), (window or Window()).of(source)
    yield "threads", _threads(source, names, part=part != Window())
    yield "objects", _objects(names, part)
    if edges:
        yield "edges", _edges(names, model.table("edges")[1:])
    yield "blames", _blames(names, model.table("blames")[1:])


class _Numbers:
    """Turns row numbers of a model into ids and addresses; valid until the model changes.

    Each method is a conversion of `catalog/tables.toml`.
    """

    def __init__(self, model: libptttrack_sums.Model) -> None:
        self.threads = model.table("threads", copy=False)
        self.objects = model.table("objects", copy=False)
        self.pairs = model.table("pairs", copy=False)
        self.sites = model.table("sites", copy=False)

    def tid(self, rows: NDArray[Any]) -> pa.Array:
        """Return kernel thread ids, null for none."""
        tids = self.threads["tid"][rows]
        return _copy(tids, tids == 0)

    def gen(self, rows: NDArray[Any]) -> pa.Array:
        """Return the generations of threads among threads with the same id, null for none."""
        return self._of_threads("generation", rows)

    def process_or_null(self, rows: NDArray[Any]) -> pa.Array:
        """Return the processes of threads, null for none."""
        return self._of_threads("process", rows)

    def _of_threads(self, field: str, rows: NDArray[Any]) -> pa.Array:
        return pa.array(self.threads[field][rows], mask=self.threads["tid"][rows] == 0)

    def process(self, rows: NDArray[Any]) -> pa.Array:
        """Return the processes of threads."""
        return pa.array(self.threads["process"][rows])

    def object(self, rows: NDArray[Any]) -> pa.Array:
        """Return addresses of objects."""
        return pa.array(self.objects["address"][rows])

    def object_process(self, rows: NDArray[Any]) -> pa.Array:
        """Return the processes of objects."""
        return pa.array(self.objects["process"][rows])

    def site(self, rows: NDArray[Any]) -> pa.Array:
        """Return addresses of call sites."""
        return pa.array(self.sites["address"][rows])

    def site_process(self, rows: NDArray[Any]) -> pa.Array:
        """Return the processes of call sites. For a shared object they may differ from its own."""
        return pa.array(self.sites["process"][rows])


def _words(
    numbers: NDArray[Any], words: tuple[str, ...], unknown: NDArray[Any] | None = None
) -> pa.Array:
    """Return numbers as words; null if they are unknown."""
    codes = pa.array(numbers.astype(np.int8), mask=unknown)
    return pa.DictionaryArray.from_arrays(codes, pa.array(words))


def _kind(numbers: NDArray[Any]) -> pa.Array:
    kinds = sorted(libptttrack_sums.KINDS)
    words = tuple(libptttrack_sums.KINDS[number] for number in kinds)
    return _words(np.searchsorted(kinds, numbers), words)


def _copy(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a copy of numbers, null where `null` is true. The model reuses its own memory."""
    return pa.array(np.array(values), mask=null)


_NO_TIMES = (libptttrack_sums.NEVER, 2**63 - 1)
# The conversions of `catalog/tables.toml` that need only the field.
_CONVERSIONS: dict[str, Callable[..., pa.Array]] = {
    "flag": lambda values, bit=1: pa.array((values & bit) != 0),
    "kind": _kind,
    "known": lambda values: _copy(values, values < 0),
    "nonzero": lambda values: _copy(values, values == 0),
    "plain": _copy,
    "processor": lambda values: _copy(values, values == _NO_CPU),
    "time": lambda values: _copy(values, np.isin(values, _NO_TIMES)),
    "words": _words,
    "words_or_null": lambda values, words: _words(values, words, values == 0),
}


def _table(
    name: str, names: _Numbers, rows: NDArray[Any], made: Mapping[str, pa.Array] | None = None
) -> pa.Table:
    """Return rows as `catalog/tables.toml` declares their table.

    Args:
        name: The table.
        names: The meanings of the numbers in the rows.
        rows: The rows.
        made: The columns that no conversion makes.
    """
    columns = {}
    for column, conversion, field, argument in FROM_ROWS[name]:
        if conversion == "made":
            columns[column] = (made or {})[column]
            continue
        convert = _CONVERSIONS.get(conversion) or getattr(names, conversion)
        columns[column] = convert(rows[field], *(() if argument is None else (argument,)))
    return pa.table(columns)


def _lists(values: NDArray[Any], ends: NDArray[Any]) -> pa.Array:
    """Return lists that follow one another in an array."""
    ends = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values, pa.uint32()))


def _threads(source: Traceset, names: _Numbers, *, part: bool) -> pa.Table:
    rows = names.threads[1:]
    rows = rows[(rows["first_ns"] != libptttrack_sums.END) | (not part)]
    number = {pair: n for n, pair in enumerate(source.thread_ids)}
    lives = rows["last_ns"] - rows["first_ns"]
    columns = (rows[name].tolist() for name in ("process", "tid", "first_ns"))
    thread_names = [
        source.names.of(number[process, tid], first) if (process, tid) in number else ""
        for process, tid, first in zip(*columns, strict=True)
    ]
    made = {
        "name": pa.array(thread_names, pa.string()),
        "running_ns": pa.array(np.maximum(lives - rows["blocked_ns"].astype(np.int64), 0)),
    }
    return _table("threads", names, rows, made)


def _objects(names: _Numbers, part: Window) -> pa.Table:
    # The objects that are used or initialized in the window. Row 0 stands for no object.
    used = names.objects["flags"] & _MADE != 0
    used &= part.includes(names.objects["first_ns"])
    numbers = np.flatnonzero(used | (names.objects["threads"] > 0))
    users = Users.of(names.objects, names.pairs)
    made = {
        "lock_id": pa.array(numbers.astype(np.uint32)),
        "later_users": _lists(*users.later(numbers)),
    }
    return _table("objects", names, names.objects[numbers], made)


def _waits(names: _Numbers, rows: NDArray[Any]) -> pa.Table:
    others = rows["wait_class"] != 0
    made = {
        "held_ns": pa.array(np.array(rows["held_ns"]), mask=others),
        "wake_ns": pa.array(rows["dur_ns"] - rows["held_ns"], mask=others),
    }
    return _table("waits", names, rows, made)


def _holds(names: _Numbers, rows: NDArray[Any]) -> pa.Table:
    ran = pa.array(rows["dur_ns"] - rows["off_ns"], mask=rows["off_ns"] < 0)
    return _table("holds", names, rows, {"ran_ns": ran})


def _edges(names: _Numbers, rows: NDArray[Any]) -> pa.Table:
    guards = np.array(rows["guard"])
    made = {
        "guard_set": _lists(guards[guards != 0], np.cumsum(np.count_nonzero(guards, axis=1))),
        "one_thread": pa.array(rows["threads"] == 1),
    }
    return _table("edges", names, rows, made)


def _blames(names: _Numbers, rows: NDArray[Any]) -> pa.Table:
    rows = rows[rows["caused_ns"] > 0]
    process = names.objects["process"][rows["object"]]
    known = rows["thread"] > 0
    made = {
        "process": pa.array(np.where(known, names.threads["process"][rows["thread"]], process)),
        "wait_caused_ns": pa.array(rows["caused_ns"].astype(np.int64)),
    }
    return _table("blames", names, rows, made)


_ROWS: dict[str, Callable[[_Numbers, NDArray[Any]], pa.Table]] = {
    "waits": _waits, "holds": _holds, "wakeups": partial(_table, "wakeups"),
    "states": partial(_table, "states"), "hold_samples": partial(_table, "hold_samples"),
}  # fmt: skip
