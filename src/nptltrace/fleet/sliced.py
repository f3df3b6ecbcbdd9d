"""Adds a trace that is too large for one process: the rows of each slice of time by another one.

This process goes over the events once, without a row, for the model's state at the beginning of
each slice and for the sums of all. Workers, processes of this machine or those of Spark, make the
rows of the slices and write them. The store is the same as if one process had added the run.
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
    """What workers have to know.

    Attributes:
        path: The trace.
        addition: What takes rows.
        rows: Which tables slices have.
        least_ns: As in `add_run`.
        times: Where slices but the first begin.
        states: Directory of the states with which they begin.
    """

    path: Path
    addition: Addition
    rows: list[str]
    least_ns: int | None
    times: list[int]
    states: Path

    def state(self, number: int) -> Path:
        """Return the file of the state of a slice."""
        return self.states / f"slice-{number}"

    @property
    def rest(self) -> int:
        """The number that stands for tables which are not made in slices."""
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
    """Add a run to a store, its rows made in slices of time by several processes.

    Args:
        store: The store.
        path: The run's trace; with Spark, where its workers find it too.
        labels: What the run is called in comparisons.
        slices: How many slices to make.
        least_ns: Only sums, and waits that took so long or longer; None for everything.
        workers: How many processes of this machine; None for one a processor.
        spark: A session of Spark whose workers make the slices instead.
        scratch: Where to put states meanwhile, where Spark's workers find them too; None for a
            directory of this machine. Nobody else may write there.

    Returns:
        Whether it was not in the store yet.

    Raises:
        UsageError: The recording goes on, or the trace is a part of one.
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
            on: AbstractContextManager[_Here | _OnSpark] = (
                _here(workers, job) if spark is None else nullcontext(_OnSpark(spark, job))
            )
            with on as slicing:
                pieces = tables.sums_and_states(rows, times, slicing.begin)
                append_all(addition, pieces, keys, sums, least_ns)
                for part in slicing.parts():
                    sums.take(part)
            addition.append("sums", sums.table(keys))
        return list_run(addition, run, labels, least_ns)


# ---- a worker ----


def _append(job: _Job, number: int) -> pa.Table:
    """Append the rows of a slice, or the rest of the tables; return sums of its waits."""
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


class _Here:
    """Slices made by processes of this machine, each as soon as its state is there."""

    def __init__(self, pool: ProcessPoolExecutor, job: _Job) -> None:
        self._pool, self._job = pool, job
        self._going = [pool.submit(_append, job, number) for number in (job.rest, 0)]

    def begin(self, number: int, model: Any) -> None:
        """Begin a slice with the state of a model."""
        _save(self._job, number, model)
        self._going.append(self._pool.submit(_append, self._job, number))

    def parts(self) -> Iterator[pa.Table]:
        """Yield the sums of the slices."""
        try:
            yield from (slice_.result() for slice_ in self._going)
        except BrokenProcessPool:
            what = "a process that made a slice ended before its time; was there too little memory?"
            raise PttError(f"{self._job.path}: {what}") from None


@contextmanager
def _here(workers: int | None, job: _Job) -> Iterator[_Here]:
    count = workers or len(os.sched_getaffinity(0))
    # Not forked: the libraries that write the store have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context) as pool:
        try:
            yield _Here(pool, job)
        finally:
            pool.shutdown(cancel_futures=True)


class _OnSpark:
    """Slices made by Spark, when all states are there."""

    def __init__(self, session: Any, job: _Job) -> None:
        self._session, self._job = session, job

    def begin(self, number: int, model: Any) -> None:
        """Keep the state of a model for a slice."""
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
        made = numbers.repartition(count).mapInArrow(partial(_appended, self._job), columns)
        try:
            yield made.toArrow().select(schema.names).cast(schema)
        except PySparkException as error:
            raise PttError(f"{self._job.path}: Spark: {one_line(error)}") from None


def _appended(job: _Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Append slices that Spark names, and yield sums of their waits."""
    for batch in batches:
        for number in batch["number"].to_pylist():
            yield from _append(job, number).to_batches()


def _save(job: _Job, number: int, model: Any) -> None:
    with job.state(number).open("wb") as file:
        model.save(file.fileno())
