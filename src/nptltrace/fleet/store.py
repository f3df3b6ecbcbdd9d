"""A store on disk: a folder of Delta tables, and how rows get into them and out.

Delta and not Iceberg: a table is a folder that needs no catalogue beside it and names its files by
relative paths, so it can be copied, mounted elsewhere and read without a service; writers add to
its log by creating the next file of it, which only one of them can.

A run is added under a name of its own, its *addition*: first the rows of all tables, and last the
row in `runs` that lists it. A reader takes the rows of listed additions only, so an addition that
was interrupted is nowhere to be seen, and `compact` removes what it left. The log of `runs` also
has each run as a transaction of Delta's: of two that add one run at once, one finds it there.

Of hundreds that create the next file of a log at once all but one would try again, each time. So
writers on one machine, or on a file system that locks files, take turns; no reader minds that, and
those that cannot lock find out by the log.
"""

from __future__ import annotations

import fcntl
import json
import random
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from nptltrace.errors import PttError, UsageError, one_line
from nptltrace.fleet.tables import ADDITION, DAY, DETAILS, LABEL, LATER, STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from deltalake import DeltaTable, WriterProperties

    from nptltrace.fleet.tables import StoredTable

__all__ = ["Addition", "Store", "StoreError"]

_FORMAT = "ptt-fleet 1"
# Writers that find the next file of the log taken try the one after it; two hundred do so at once.
_RETRIES = 10_000
_PATIENCE_S = 300.0
_PAUSE_S = 0.1
_LEAST_PAUSE_S = 0.004
# What an addition left that did not come to its end is removed after so long.
_ABANDONED_S = 24 * 3600
_NS = 10**9
_ZSTD = 3
# Files that writers lock; Delta has no table in it.
_TURNS = ".turns"
_MANY = 1 << 14


class StoreError(PttError):
    """A store that cannot be read or written."""


class Store:
    """A store.

    Args:
        place: Its directory, or the address of a bucket and a path in it.
        create: Make it if there is none.

    Raises:
        UsageError: There is none.
        StoreError: It cannot be made, or a later version of PTT made it.

    Attributes:
        place: Where it is.
    """

    def __init__(self, place: str, *, create: bool = False) -> None:
        from deltalake import DeltaTable

        self.place = place.rstrip("/") or place
        with self._explained():
            there = DeltaTable.is_deltatable(self._of("runs"))
            if not there and create:
                with self._turn("runs"):
                    if not DeltaTable.is_deltatable(self._of("runs")):
                        # Last, as it says that there is a store.
                        self._create(sorted(STORED, key="runs".__eq__))
            elif not there:
                raise UsageError(
                    f"{self.place} is not a ptt fleet store; ptt fleet add creates one"
                )
            description = self.table("runs").metadata().description or ""
        if description.partition(" ")[0] != _FORMAT.partition(" ")[0]:
            raise UsageError(
                f"{self.place} is not a ptt fleet store: its table runs has a foreign format"
            )
        if description != _FORMAT:
            raise StoreError(f"{self.place}: a later version of PTT made this store; update PTT")
        if create and there:
            with self._explained():
                self._create([name for name in LATER if not self.has(name)])

    # ---- reading ----

    def table(self, name: str) -> DeltaTable:
        """Return a table as Delta has it now.

        Raises:
            StoreError: A file of its log is cut off, or it cannot be read for another reason.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            with self._explained():
                return DeltaTable(self._of(name))
        except StoreError as error:
            if isinstance(error.__cause__, DeltaError):
                self.check_log(name, whole=True)
            raise

    def has(self, name: str) -> bool:
        """Return whether a table is there: later versions of PTT add some, when runs come."""
        from deltalake import DeltaTable

        with self._explained():
            there: bool = name not in LATER or DeltaTable.is_deltatable(self._of(name))
        return there

    def check_log(self, name: str, *, whole: bool = False) -> None:
        """Check the log of a table: Delta takes an empty file for a change of nothing.

        Args:
            name: The table.
            whole: Read the files, and do not only look at their sizes.

        Raises:
            StoreError: One is cut off.
        """
        log = Path(self._of(name), "_delta_log")
        for file in sorted(log.glob("*.json")) if "://" not in self.place else ():
            if file.stat().st_size == 0 or (whole and not _is_whole(file)):
                raise StoreError(f"{file} is cut off; put the file back from a copy")

    def runs(self) -> pa.Table:
        """Return the runs, in the order in which they began."""
        table = self.table("runs")
        with self._explained():
            rows = table.to_pyarrow_table(filesystem=self._files("runs"))
        return rows.sort_by([("start_unix_ns", "ascending"), ("run_id", "ascending")])

    def has_run(self, run_id: str, table: DeltaTable | None = None) -> bool:
        """Return whether a run is listed.

        Args:
            run_id: Its UUID.
            table: `runs` as it was at some time; None for now.
        """
        table = table or self.table("runs")
        with self._explained():
            if table.transaction_version(run_id) is None:
                return False  # it never was, which takes no file of the table to see
            rows = table.to_pyarrow_table(
                columns=["run_id"],
                filters=[("run_id", "=", run_id)],
                filesystem=self._files("runs"),
            )
        return bool(rows.num_rows)

    def labels(self) -> list[str]:
        """Return the names of the labels that runs have."""
        names = [field.name for field in self.table("runs").schema().fields]
        return sorted(n.removeprefix(LABEL) for n in names if n.startswith(LABEL))

    # ---- writing ----

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows to a table other than `runs`."""
        # To write many takes longer than to try again, and others need not wait for that.
        turns = self._turn(name) if rows.num_rows < _MANY else nullcontext()
        with turns:
            self._persistently(lambda: self._write(self.table(name), name, rows))

    def list_run(self, row: pa.Table) -> bool:
        """Append a row to `runs`; columns that it has not yet are added to it.

        Args:
            row: The row.

        Returns:
            Whether the run was not there yet.
        """
        run = str(row["run_id"][0].as_py())
        listed = True

        def write() -> None:
            nonlocal listed
            table = self.table("runs")
            listed = not self.has_run(run, table)
            if listed:
                # Of those that found it missing in the same state of the table, one can write.
                self._write(table, "runs", row, (run, (table.transaction_version(run) or 0) + 1))

        with self._turn("runs"):
            self._persistently(write)
        return listed

    def remove(self, run_ids: Collection[str]) -> None:
        """Remove runs: first from `runs`, and with it from sight, then their rows.

        Args:
            run_ids: Their UUIDs, as `runs` has them.
        """
        rows = self.runs()
        chosen = rows.filter(pc.is_in(rows["run_id"], pa.array(run_ids, pa.string())))
        # Not by the ids of the runs: what is being added anew meanwhile stays.
        gone = f"{ADDITION} in ({_quoted(chosen[ADDITION].to_pylist())})"
        for name in ("runs", *(name for name in STORED if name != "runs" and self.has(name))):
            self._delete(name, gone)

    def compact(self) -> None:
        """Make few files of many, and remove the rows of abandoned additions and unused files."""
        listed = {str(addition) for addition in self.runs()[ADDITION].to_pylist()}
        for name, declared in STORED.items():
            if not self.has(name):
                continue
            if name != "runs":
                self._remove_abandoned(name, listed)
            self._persistently(partial(self._unite, name, declared))
            with self._explained():
                table = self.table(name)
                table.create_checkpoint()
                table.vacuum(_ABANDONED_S // 3600, dry_run=False, enforce_retention_duration=False)

    def _remove_abandoned(self, name: str, listed: set[str]) -> None:
        table = self.table(name)
        with self._explained():
            rows = table.to_pyarrow_dataset(filesystem=self._files(name))
            batches = rows.scanner(columns=[ADDITION]).to_reader()
            seen = {
                str(addition)
                for batch in batches
                for addition in batch[ADDITION].unique().to_pylist()
            }
        horizon = time.time_ns() - _ABANDONED_S * _NS
        gone = [addition for addition in seen - listed if int(addition.partition("-")[0]) < horizon]
        if gone:
            self._delete(name, f"{ADDITION} in ({_quoted(gone)})")

    # ---- inside ----

    @staticmethod
    def _write(
        table: DeltaTable, name: str, rows: pa.Table, once: tuple[str, int] | None = None
    ) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake

        write_deltalake(
            table,
            rows,
            mode="append",
            schema_mode="merge",
            writer_properties=_properties(STORED[name]),
            commit_properties=CommitProperties(
                max_commit_retries=_RETRIES,
                app_transactions=[Transaction(*once)] if once else None,
            ),
        )

    def _of(self, table: str) -> str:
        return f"{self.place}/{table}"

    def _files(self, table: str) -> Any:
        """Return what reads the files of a table; None for Delta's own way.

        That opens files in Python, for threads of Arrow's: one that still has to close a file when
        the interpreter ends takes the process down.
        """
        if "://" in self.place:
            return None
        from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

        return SubTreeFileSystem(str(Path(self._of(table)).resolve()), LocalFileSystem())

    def _create(self, names: Iterable[str]) -> None:
        """Make tables, unless somebody else does."""
        from deltalake import DeltaTable

        for name in names:
            self._persistently(
                partial(
                    DeltaTable.create,
                    self._of(name),
                    STORED[name].schema,
                    mode="ignore",
                    partition_by=[DAY] if name in DETAILS else None,
                    description=_FORMAT if name == "runs" else STORED[name].row,
                )
            )

    def _unite(self, name: str, declared: StoredTable) -> None:
        self.table(name).optimize.compact(writer_properties=_properties(declared))

    def _delete(self, name: str, condition: str) -> None:
        self._persistently(lambda: self.table(name).delete(condition))

    def _persistently(self, change: Callable[[], object]) -> None:
        """Make a change, again where others changed the table meanwhile in a way that matters."""
        from deltalake.exceptions import CommitFailedError

        until = time.monotonic() + _PATIENCE_S
        while True:
            with self._explained():
                try:
                    change()
                except CommitFailedError:
                    if time.monotonic() > until:
                        raise
                else:
                    return
            time.sleep(_PAUSE_S * random.random())  # noqa: S311 -- so that two do not meet again

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        """Let no other writer change a table meanwhile, as far as files can be locked there."""
        with ExitStack() as stack:
            if "://" not in self.place:
                with suppress(OSError):
                    turns = Path(self.place, _TURNS)
                    turns.mkdir(parents=True, exist_ok=True)
                    _lock(stack.enter_context((turns / name).open("ab")))
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Report what goes wrong in one line that names the store."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            what = one_line(error).removeprefix("Failed to parse parquet: External: ")
            raise StoreError(f"{self.place}: {what}") from error


class Addition:
    """The rows of one run on their way into a store.

    Args:
        store: The store.
        start_unix_ns: When the run began.
    """

    def __init__(self, store: Store, start_unix_ns: int) -> None:
        self._store = store
        self._name = f"{time.time_ns():020d}-{uuid4().hex}"
        self._day = datetime.fromtimestamp(start_unix_ns // _NS, UTC).date()

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows of a table other than `runs`; nobody sees them yet."""
        if rows.num_rows:
            self._store.append(name, self._signed(rows, daily=name in DETAILS))

    def list_run(self, row: pa.Table) -> bool:
        """List the run, which makes all of its rows part of the store.

        Args:
            row: Its row in `runs`.

        Returns:
            Whether it was not there yet.
        """
        return self._store.list_run(self._signed(row))

    def _signed(self, rows: pa.Table, *, daily: bool = False) -> pa.Table:
        """Return rows with the name of the addition."""
        count = rows.num_rows
        rows = rows.append_column(ADDITION, pa.repeat(self._name, count))
        if daily:
            rows = rows.append_column(DAY, pa.repeat(pa.scalar(self._day, pa.date32()), count))
        return rows


def _lock(file: BinaryIO) -> None:
    """Lock a file; not if another process keeps it for minutes, as one that was stopped does."""
    until = time.monotonic() + _PATIENCE_S
    pause = _LEAST_PAUSE_S
    while time.monotonic() <= until:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        # Hundreds that look often leave the one whose turn it is no processor.
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_S)


def _is_whole(file: Path) -> bool:
    """Return whether a file has an object of JSON in each line."""
    try:
        return all(json.loads(line) for line in file.read_text("utf-8").splitlines())
    except ValueError:
        return False


def _quoted(names: Iterable[str]) -> str:
    """Return names of additions as a list of SQL."""
    return ", ".join(f"'{name}'" for name in names)


def _properties(table: StoredTable) -> WriterProperties:
    """Return how the columns of a table are written."""
    from deltalake import ColumnProperties, WriterProperties

    # A dictionary of them would be as long as the column.
    steps = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    return WriterProperties(
        compression="ZSTD",
        compression_level=_ZSTD,
        column_properties=dict.fromkeys(table.steady, steps),
    )
