"""Adds the run of a trace to a store: the tables of the trace, and sums of its waits."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.errors import UsageError
from nptltrace.fleet.store import Addition
from nptltrace.fleet.tables import ADDITION, DETAILS, LABEL, STORED, as_stored
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.fleet.store import Store

__all__ = [
    "LockKeys", "Sums", "add_run", "append_all", "details_kept", "list_run", "new_run", "start_of",
]  # fmt: skip

# Rows of a table that are gathered before they are written as one file of the store.
_ROWS = 1 << 18
# Pieces that are written at the same time, and are in memory besides the gathered rows.
_WRITERS = 2
_KNOWN_BY = (
    "lock_id", "process", "kind", "name", "name_source", "init_stack", "first_stack",
)  # fmt: skip


def add_run(
    store: Store,
    path: Path,
    labels: Mapping[str, str],
    *,
    symbols: Symbols | None = None,
    least_ns: int | None = None,
) -> bool:
    """Add a run to a store.

    Args:
        store: The store.
        path: The trace of the run.
        labels: Values of the run's labels by name.
        symbols: Names addresses; None: names come from the trace and the files that it names.
        least_ns: Add only sums, and waits of at least this duration; None for everything.

    Returns:
        Whether the run was added; False if it is in the store already.

    Raises:
        UsageError: The recording goes on.
        StoreError: The store cannot be read or written.
    """
    with closing(Traceset(path)) as traceset:
        tables = all_tables(traceset, symbols or Symbols(traceset))
        run = new_run(store, path, tables)
        if run is None:
            return False
        addition = Addition(store, start_of(run))
        _append_tables(addition, tables, least_ns)
        return list_run(addition, run, labels, least_ns)


def new_run(store: Store, path: Path, tables: TraceTables) -> pa.Table | None:
    """Return the row of a trace in its table `runs`; None if the run is in the store.

    Raises:
        UsageError: The recording goes on.
    """
    run = tables.table("runs")
    if run["state"][0].as_py() == "running":
        raise UsageError(f"{path}: the recording goes on; add it when it has ended")
    return None if store.has_run(str(run["run_id"][0])) else run


def start_of(run: pa.Table) -> int:
    """Return when a run began, in ns of Unix time. The store orders runs by it: never null."""
    return int(run["start_unix_ns"][0].as_py() or run["t0_unix_ns"][0].as_py())


def list_run(
    addition: Addition, run: pa.Table, labels: Mapping[str, str], least_ns: int | None
) -> bool:
    """List a run after all of its rows; return False if the run is in the store by now."""
    more = {
        "start_unix_ns": pa.array([start_of(run)], pa.int64()),
        "added_unix_ns": pa.array([time.time_ns()]),
        "summary": pa.array([least_ns is not None]),
    }
    row = as_stored(STORED["runs"], run, more)
    for name, value in labels.items():
        row = row.append_column(LABEL + name, pa.array([value]))
    return addition.list_run(row)


def append_all(
    addition: Addition,
    pieces: Iterable[tuple[str, pa.Table]],
    keys: LockKeys,
    sums: Sums,
    least_ns: int | None,
) -> None:
    """Append pieces of a trace's tables. Threads convert and write them while the next are read.

    Args:
        addition: Takes the rows.
        pieces: Pairs of the name of a table and a piece of it.
        keys: Learns the objects.
        sums: Takes the waits.
        least_ns: Leave out shorter waits; None for none.
    """
    with ThreadPoolExecutor(_WRITERS) as writers:
        pending: deque[Future[pa.Table | None]] = deque()

        def finish() -> None:
            piece = pending.popleft().result()
            if piece is not None:
                sums.take(piece)

        for name, parts in _gather(pieces, keys):
            if len(pending) == _WRITERS:
                finish()
            pending.append(writers.submit(_append, addition, name, parts, least_ns))
        while pending:
            finish()


def details_kept(least_ns: int | None) -> list[str]:
    """Return the tables of details to add."""
    return [name for name in DETAILS if least_ns is None or name == "waits"]


def _append_tables(addition: Addition, tables: TraceTables, least_ns: int | None) -> None:
    """Append all tables but `runs`."""
    keys = LockKeys(tables)
    sums = Sums()
    left_out = {"runs", "events", *DETAILS} - set(details_kept(least_ns))
    pieces = tables.pieces([name for name in TABLES if name not in left_out])
    append_all(addition, pieces, keys, sums, least_ns)
    addition.append("sums", sums.table(keys))


# Rows of a trace's table, and the columns that only the store has.
_Part = tuple[pa.Table, dict[str, pa.Array]]


def _gather(
    pieces: Iterable[tuple[str, pa.Table]], keys: LockKeys
) -> Iterator[tuple[str, list[_Part]]]:
    """Yield pieces of a table until they have enough rows to be written at once."""
    waiting: dict[str, list[_Part]] = {}
    for name, rows in pieces:
        parts = waiting.setdefault(name, [])
        parts.append((rows, _more(name, rows, keys)))
        if sum(part.num_rows for part, _ in parts) >= _ROWS:
            yield name, waiting.pop(name)
    yield from waiting.items()


def _append(
    addition: Addition, name: str, parts: list[_Part], least_ns: int | None
) -> pa.Table | None:
    """Append rows in the form of the store; return the sums of waits."""
    # Sort first: then texts are still numbers of words.
    rows = pa.concat_tables([as_stored(STORED[name], _sorted(part), more) for part, more in parts])
    piece = None
    if name == "waits":
        piece = Sums.of(rows)
        if least_ns is not None:
            rows = rows.filter(pc.greater_equal(rows["dur_ns"], least_ns))
    addition.append(name, rows)
    return piece


def _more(name: str, rows: pa.Table, keys: LockKeys) -> dict[str, pa.Array]:
    """Return the columns of a table that only the store has."""
    if name == "objects":
        return {"lock_key": keys.learn(rows)}
    if name == "sites":
        return {"place": pa.array([place_of(row) for row in rows.to_pylist()], pa.string())}
    return {}


def place_of(site: Mapping[str, Any]) -> str:
    """Return a name of a call site that is the same in every build: no line, no offset.

    Args:
        site: A row of the table `sites`.
    """
    if site["function"]:
        where = site["file"] or site["module"]
        return f"{site['function']} ({where})" if where else str(site["function"])
    return f"{site['module'] or '?'}+{site['offset']:#x}"


def _sorted(rows: pa.Table) -> pa.Table:
    """Return rows in the order of time: then times take fewest bytes."""
    order = [name for name in ("process", "t_ns") if name in rows.column_names]
    return rows.sort_by([(name, "ascending") for name in order]) if len(order) > 1 else rows


class LockKeys:
    """Gives objects keys that are the same in all runs.

    The key of a variable comes from its kind, its program and its name. The key of another object
    comes from its kind and the place that initialized it, or else used it first. All objects of one
    place share a key.

    Args:
        tables: The tables of the run.
    """

    def __init__(self, tables: TraceTables) -> None:
        self._programs = {
            row["process"]: row["exe"].rpartition("/")[2]
            for row in tables.table("processes", ["process", "exe"]).to_pylist()
        }
        self._by_id: dict[int, str] = {}

    def learn(self, objects: pa.Table) -> pa.Array:
        """Return the keys of rows of the table `objects`, and remember them for `of`."""
        for row in objects.select(list(_KNOWN_BY)).to_pylist():
            parts = [row["kind"], self._programs.get(row["process"], ""), row["name"]]
            if row["name_source"] == "address":
                parts[1:] = [row["init_stack"] or row["first_stack"] or ""]
            digest = blake2b("\0".join(parts).encode(), digest_size=16)
            self._by_id[row["lock_id"]] = digest.hexdigest()
        return self.of(objects["lock_id"])

    def of(self, ids: pa.ChunkedArray) -> pa.Array:
        """Return the keys of learnt objects by their `lock_id`; null for null."""
        return pa.array([self._by_id.get(number) for number in ids.to_pylist()], pa.string())


class Sums:
    """Sums up waits by lock, place and class."""

    _BY = ("run_id", "kind", "class", "lock_id", "stack_id")
    _SUMS: tuple[tuple[Any, str, str], ...] = (
        ([], "count_all", "waits"),
        ("dur_ns", "sum", "wait_ns"),
        ("held_ns", "sum", "held_ns"),
        ("dur_ns", "max", "wait_max_ns"),
    )

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    @classmethod
    def of(cls, waits: pa.Table) -> pa.Table:
        """Return sums of rows of the store's table `waits`, for `take`."""
        groups = waits.group_by(list(cls._BY))
        rows = groups.aggregate([(column, how) for column, how, _ in cls._SUMS])
        return rows.rename_columns([*cls._BY, *(name for *_, name in cls._SUMS)])

    def take(self, sums: pa.Table) -> None:
        """Add sums of waits."""
        self._parts.append(sums)

    def parts(self) -> pa.Table:
        """Return the sums so far, for `take` of another object."""
        return pa.concat_tables([self.schema().empty_table(), *self._parts])

    @classmethod
    def schema(cls) -> pa.Schema:
        """Return the columns of `parts`."""
        types = {name: STORED["waits"].schema.field(name).type for name in cls._BY}
        return pa.schema(types | {name: pa.int64() for *_, name in cls._SUMS})

    def table(self, keys: LockKeys) -> pa.Table:
        """Return the sums as rows of the store's table `sums`.

        Args:
            keys: The keys of all locks.
        """
        if not self._parts:
            return STORED["sums"].schema.empty_table().drop_columns([ADDITION])
        rows = pa.concat_tables(self._parts)
        rows = rows.append_column("lock_key", keys.of(rows["lock_id"]))
        by = [name for name in self._BY if name != "lock_id"] + ["lock_key"]
        names = [name for *_, name in self._SUMS]
        how = ["max" if name == "wait_max_ns" else "sum" for name in names]
        rows = rows.group_by(by).aggregate(list(zip(names, how, strict=True)))
        return as_stored(STORED["sums"], rows.rename_columns([*by, *names]), {})
