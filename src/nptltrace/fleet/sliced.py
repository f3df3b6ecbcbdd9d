"""Adds a trace that is too large for one process, in slices of time.

This process goes over the events once and makes no rows. It finds the state of the model at the
beginning of each slice, and the sums of the whole trace. Workers make the rows of the slices and
write them. Workers are processes of this machine or of Spark. The store becomes the same as if one
process adds the run.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.model_slices import cuts
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.errors import PttError, one_line
from nptltrace.fleet.adding import (
    LockKeys,
    Sums,
    append_all,
    details_kept,
    list_run,
    new_run,
    start_of,
)
from nptltrace.fleet.store import Addition
from nptltrace.fleet.tables import DETAILS
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from nptltrace.fleet.store import Store

__all__ = ["add_sliced"]

_MADE_BY_MODEL = ("threads", "objects", "edges", "blames")


@dataclass(frozen=True, slots=True)
class _Job:
    """The work of the workers.

    Attributes:
        path: The trace.
        addition: Takes the rows.
        rows: The tables that are made in slices.
        least_ns: As in `add_run`.
        times: Where the slices begin, without the first slice.
        states: Directory of the states of the model at these times.
    """

    path: Path
    addition: Addition
    rows: list[str]
    least_ns: int | None
    times: list[int]
    states: Path

    def state(self, number: int) -> Path:
        """Return the file with the state at the beginning of a slice."""
        return self.states / f"slice-{number}"

    @property
    def rest(self) -> int:
        """The number, behind the numbers of slices, of the tables that are not made in slices."""
        return len(self.times) + 1


def add_sliced(
    store: Store,
    path: Path,
    labels: Mapping[str, str],
    *,
    slices: int,
    least_ns: int | None = None,
    workers: int | None = None,
    spark: Any = None,
    scratch: Path | None = None,
) -> bool:
    """Add a run to a store. Several processes make its rows in slices of time.

    Args:
        store: The store.
        path: The trace of the run. The workers of Spark must reach it at the same path.
        labels: Values of the run's labels by name.
        slices: The number of slices.
        least_ns: Add only sums, and waits of at least this duration; None for everything.
        workers: The number of processes of this machine; None for one process per processor.
        spark: A session of Spark; its workers make the slices in place of processes here.
        scratch: Directory for the states. The workers of Spark must reach it at the same path.
            Nobody else may write there. None for a temporary directory of this machine.

    Returns:
        Whether the run was added; False if it is in the store already.

    Raises:
        UsageError: The recording goes on, or the trace is a part of a recording.
        PttError: A worker failed.
    """
    with closing(Traceset(path)) as traceset:
        tables = all_tables(traceset, Symbols(traceset))
        run = new_run(store, path, tables)
        if run is None:
            return False
        times = cuts(traceset, slices)
        addition = Addition(store, start_of(run))
        with tempfile.TemporaryDirectory(prefix="ptt-slices-", dir=scratch) as states:
            rows = details_kept(least_ns)
            job = _Job(path.resolve(), addition, rows, least_ns, times, Path(states))
            keys, sums = LockKeys(tables), Sums()
            started: AbstractContextManager[_LocalWorkers | _SparkWorkers] = (
                _local_workers(workers, job)
                if spark is None
                else nullcontext(_SparkWorkers(spark, job))
            )
            with started as slicing:
                pieces = tables.sums_and_states(rows, times, slicing.begin)
                append_all(addition, pieces, keys, sums, least_ns)
                for part in slicing.parts():
                    sums.take(part)
            addition.append("sums", sums.table(keys))
        return list_run(addition, run, labels, least_ns)


# ---- a worker ----


def _append(job: _Job, number: int) -> pa.Table:
    """Append the rows of a slice, or of the other tables; return the sums of its waits."""
    with closing(Traceset(job.path)) as traceset:
        tables = all_tables(traceset, Symbols(traceset))
        if number == job.rest:
            left_out = {"runs", "events", *DETAILS, *_MADE_BY_MODEL}
            pieces = tables.pieces([name for name in TABLES if name not in left_out])
        else:
            state = job.state(number).read_bytes() if number else None
            pieces = tables.pieces_of_slice(job.rows, job.times, number, state)
        sums = Sums()
        append_all(job.addition, pieces, LockKeys(tables), sums, job.least_ns)
        return sums.parts()


class _LocalWorkers:
    """Processes of this machine. They make each slice as soon as its state is known."""

    def __init__(self, pool: ProcessPoolExecutor, job: _Job) -> None:
        self._pool, self._job = pool, job
        self._submitted = [pool.submit(_append, job, number) for number in (job.rest, 0)]

    def begin(self, number: int, model: Any) -> None:
        """Begin a slice with the state of a model."""
        _save(self._job, number, model)
        self._submitted.append(self._pool.submit(_append, self._job, number))

    def parts(self) -> Iterator[pa.Table]:
        """Yield the sums of the slices."""
        try:
            yield from (slice_.result() for slice_ in self._submitted)
        except BrokenProcessPool:
            what = "a process that made a slice ended before its time; was there too little memory?"
            raise PttError(f"{self._job.path}: {what}") from None


@contextmanager
def _local_workers(workers: int | None, job: _Job) -> Iterator[_LocalWorkers]:
    count = workers or len(os.sched_getaffinity(0))
    # Spawn, do not fork: the libraries that write the store have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context) as pool:
        try:
            yield _LocalWorkers(pool, job)
        finally:
            pool.shutdown(cancel_futures=True)


class _SparkWorkers:
    """Workers of Spark. They make the slices when all states are known."""

    def __init__(self, session: Any, job: _Job) -> None:
        self._session, self._job = session, job

    def begin(self, number: int, model: Any) -> None:
        """Keep the state of a model until the slice is made."""
        _save(self._job, number, model)

    def parts(self) -> Iterator[pa.Table]:
        """Yield the sums of the slices."""
        from pyspark.errors import PySparkException

        count, schema = self._job.rest + 1, Sums.schema()
        columns = ", ".join(
            f"`{field.name}` {'string' if field.type == pa.string() else 'bigint'}"
            for field in schema
        )
        numbers = self._session.createDataFrame([(n,) for n in range(count)], "number int")
        sums = numbers.repartition(count).mapInArrow(partial(_append_all, self._job), columns)
        try:
            yield sums.toArrow().select(schema.names).cast(schema)
        except PySparkException as error:
            raise PttError(f"{self._job.path}: Spark: {one_line(error)}") from None


def _append_all(job: _Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Append the slices that Spark assigns to a worker, and yield sums of their waits."""
    for batch in batches:
        for number in batch["number"].to_pylist():
            yield from _append(job, number).to_batches()


def _save(job: _Job, number: int, model: Any) -> None:
    with job.state(number).open("wb") as file:
        model.save(file.fileno())
