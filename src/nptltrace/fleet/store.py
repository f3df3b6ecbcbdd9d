"""A store on disk: a folder of Delta tables, and how rows get into them and out.

Delta tables need no service. An Iceberg table needs a catalogue. A Delta table is a folder that
names its files by relative paths, so you can copy it or mount it elsewhere. A writer commits by
creating the next file of the log of the table. Only one writer can create that file.

Each run has an *addition*, a name of its own. A writer appends the rows of all tables first, and
last the row of `runs` that lists the addition. Readers take the rows of listed additions only. So
nobody sees an interrupted addition, and `compact` removes its rows. The log of `runs` also has each
run as a transaction of Delta: if two writers add one run at once, one of them finds it there.

If hundreds of writers create the next file of a log at once, all but one must try again. So writers
on one machine, or on a file system that locks files, take turns. Readers do not wait for them.
Writers that cannot lock files notice a conflict by the log.
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
# A writer tries the next file of the log if another one was faster. Plan for 200 writers at once.
_RETRIES = 10_000
_PATIENCE_S = 300.0
_PAUSE_S = 0.1
_LEAST_PAUSE_S = 0.004
# Rows of an unlisted addition are removed after this time.
_ABANDONED_S = 24 * 3600
_NS = 10**9
_ZSTD = 3
# The folder of the files that writers lock; it is not a table.
_TURNS = ".turns"
_MANY = 1 << 14  # rows


class StoreError(PttError):
    """A store that cannot be read or written."""


class Store:
    """A store of the runs of many traces.

    Args:
        place: Directory of the store, or the address of a bucket and a path in the bucket.
        create: Make the store if there is none.

    Raises:
        UsageError: There is no store.
        StoreError: The store cannot be made, or a later version of PTT made it.

    Attributes:
        place: As given, without a slash at the end.
    """

    def __init__(self, place: str, *, create: bool = False) -> None:
        from deltalake import DeltaTable

        self.place = place.rstrip("/") or place
        with self._explained():
            exists = DeltaTable.is_deltatable(self._path("runs"))
            if not exists and create:
                with self._turn("runs"):
                    if not DeltaTable.is_deltatable(self._path("runs")):
                        # `runs` comes last: it shows that there is a store.
                        self._create(sorted(STORED, key="runs".__eq__))
            elif not exists:
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
        if create and exists:
            with self._explained():
                self._create([name for name in LATER if not self.has(name)])

    # ---- reading ----

    def table(self, name: str) -> DeltaTable:
        """Return the present version of a table.

        Raises:
            StoreError: The table cannot be read, for example since a file of its log is cut off.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            with self._explained():
                return DeltaTable(self._path(name))
        except StoreError as error:
            if isinstance(error.__cause__, DeltaError):
                self.check_log(name, whole=True)
            raise

    def has(self, name: str) -> bool:
        """Return whether a table is there. Older stores lack the tables in `LATER`."""
        from deltalake import DeltaTable

        with self._explained():
            exists: bool = name not in LATER or DeltaTable.is_deltatable(self._path(name))
        return exists

    def check_log(self, name: str, *, whole: bool = False) -> None:
        """Check the log of a table: Delta accepts an empty file as a commit without changes.

        Args:
            name: The table.
            whole: Read the files too; otherwise check only that no file is empty.

        Raises:
            StoreError: A file of the log is cut off.
        """
        log = Path(self._path(name), "_delta_log")
        for file in sorted(log.glob("*.json")) if "://" not in self.place else ():
            if file.stat().st_size == 0 or (whole and not _is_whole(file)):
                raise StoreError(f"{file} is cut off; put the file back from a copy")

    def runs(self) -> pa.Table:
        """Return the table `runs`, ordered by the start of the runs."""
        table = self.table("runs")
        with self._explained():
            rows = table.to_pyarrow_table(filesystem=self._files("runs"))
        return rows.sort_by([("start_unix_ns", "ascending"), ("run_id", "ascending")])

    def has_run(self, run_id: str, table: DeltaTable | None = None) -> bool:
        """Return whether `runs` lists a run.

        Args:
            run_id: UUID of the run.
            table: A version of the table `runs`; None for the present version.
        """
        table = table or self.table("runs")
        with self._explained():
            if table.transaction_version(run_id) is None:
                return False  # never added: the log says so, without a look at the rows
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
        # Many rows take longer to write than a conflict costs. Others need not wait for them.
        turns = self._turn(name) if rows.num_rows < _MANY else nullcontext()
        with turns:
            self._persistently(lambda: self._write(self.table(name), name, rows))

    def list_run(self, row: pa.Table) -> bool:
        """Append a row to `runs`. New columns of the row become columns of the table.

        Args:
            row: A table of one row.

        Returns:
            Whether the row was appended; False if the run is listed already.
        """
        run = str(row["run_id"][0].as_py())
        listed = True

        def write() -> None:
            nonlocal listed
            table = self.table("runs")
            listed = not self.has_run(run, table)
            if listed:
                # Of all writers that see this version without the run, only one can commit.
                self._write(table, "runs", row, (run, (table.transaction_version(run) or 0) + 1))

        with self._turn("runs"):
            self._persistently(write)
        return listed

    def remove(self, run_ids: Collection[str]) -> None:
        """Remove runs: first their rows in `runs`, which hides all other rows, then those rows.

        Args:
            run_ids: UUIDs of the runs.
        """
        rows = self.runs()
        chosen = rows.filter(pc.is_in(rows["run_id"], pa.array(run_ids, pa.string())))
        # Delete by addition, not by run: a writer may be adding the same run again.
        gone = f"{ADDITION} in ({_quoted(chosen[ADDITION].to_pylist())})"
        for name in ("runs", *(name for name in STORED if name != "runs" and self.has(name))):
            self._delete(name, gone)

    def compact(self) -> None:
        """Unite small files, and remove rows of abandoned additions and unused files."""
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

    def _path(self, table: str) -> str:
        return f"{self.place}/{table}"

    def _files(self, table: str) -> Any:
        """Return the file system to read the files of a table; None for Delta's file system.

        Delta's file system opens files in Python, for threads of Arrow. A thread that closes its
        file while the interpreter ends kills the process.
        """
        if "://" in self.place:
            return None
        from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

        return SubTreeFileSystem(str(Path(self._path(table)).resolve()), LocalFileSystem())

    def _create(self, names: Iterable[str]) -> None:
        """Make tables, unless another writer makes them."""
        from deltalake import DeltaTable

        for name in names:
            self._persistently(
                partial(
                    DeltaTable.create,
                    self._path(name),
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
        """Make a change; repeat it after a conflict with another writer, for up to 5 minutes."""
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
            time.sleep(_PAUSE_S * random.random())  # noqa: S311 -- so that two writers part

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        """Keep other writers from a table within the block, if the file system locks files."""
        with ExitStack() as stack:
            if "://" not in self.place:
                with suppress(OSError):
                    turns = Path(self.place, _TURNS)
                    turns.mkdir(parents=True, exist_ok=True)
                    _lock(stack.enter_context((turns / name).open("ab")))
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of libraries into a `StoreError` of one line that names the store."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            what = one_line(error).removeprefix("Failed to parse parquet: External: ")
            raise StoreError(f"{self.place}: {what}") from error


class Addition:
    """Adds the rows of one run to a store, which shows them after `list_run`.

    Args:
        store: The store.
        start_unix_ns: When the run began, in ns of Unix time.
    """

    def __init__(self, store: Store, start_unix_ns: int) -> None:
        self._store = store
        self._name = f"{time.time_ns():020d}-{uuid4().hex}"
        self._day = datetime.fromtimestamp(start_unix_ns // _NS, UTC).date()

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows of a table other than `runs`; nobody sees them yet."""
        if rows.num_rows:
            self._store.append(name, self._named(rows, daily=name in DETAILS))

    def list_run(self, row: pa.Table) -> bool:
        """List the run, which makes all of its rows part of the store.

        Args:
            row: Its row in `runs`.

        Returns:
            Whether the run was listed; False if it is listed already.
        """
        return self._store.list_run(self._named(row))

    def _named(self, rows: pa.Table, *, daily: bool = False) -> pa.Table:
        """Return rows with the name of the addition."""
        count = rows.num_rows
        rows = rows.append_column(ADDITION, pa.repeat(self._name, count))
        if daily:
            rows = rows.append_column(DAY, pa.repeat(pa.scalar(self._day, pa.date32()), count))
        return rows


def _lock(file: BinaryIO) -> None:
    """Lock a file. Give up after 5 minutes: the process that has the lock may be stopped."""
    until = time.monotonic() + _PATIENCE_S
    pause = _LEAST_PAUSE_S
    while time.monotonic() <= until:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        # Hundreds of waiting writers that look often take the processors from the active writer.
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_S)


def _is_whole(file: Path) -> bool:
    """Return whether each line of a file is valid JSON."""
    try:
        return all(json.loads(line) for line in file.read_text("utf-8").splitlines())
    except ValueError:
        return False


def _quoted(names: Iterable[str]) -> str:
    """Return names of additions as the elements of a list in SQL."""
    return ", ".join(f"'{name}'" for name in names)


def _properties(table: StoredTable) -> WriterProperties:
    """Return the encoding and compression of a table's files."""
    from deltalake import ColumnProperties, WriterProperties

    # The values of these columns hardly repeat: a dictionary is as long as the column.
    steps = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    return WriterProperties(
        compression="ZSTD",
        compression_level=_ZSTD,
        column_properties=dict.fromkeys(table.steady, steps),
    )
