"""SQL over a store by Spark: the same tables, views and SQL as with DuckDB."""

from __future__ import annotations

import json
import re
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from deltalake import Schema
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nptltrace.analysis.sql.query import QueryError
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.errors import one_line
from nptltrace.fleet.spark_sql import statements
from nptltrace.fleet.tables import ADDITION, COMPUTED, DAY, STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from nptltrace.analysis.sql.query import Params
    from nptltrace.fleet.store import Store

__all__ = ["SparkDatabase", "new_session"]

_FILES = "files_of_"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # A store of a few runs is small: Spark's default of 200 tasks takes longer than a step.
    "spark.sql.shuffle.partitions": "8",
}

T = TypeVar("T")


class SparkDatabase:
    """A Spark session over the present tables of a store and their views.

    Args:
        store: The store. Spark must reach it at the same place.
        master: Address of a cluster, or `local[*]`; None: Spark's own settings decide.
        remote: Address of a Spark Connect server, in place of `master`.

    Raises:
        QueryError: Spark cannot be reached.
        StoreError: A file of the store cannot be read.
    """

    def __init__(
        self, store: Store, *, master: str | None = None, remote: str | None = None
    ) -> None:
        self._session = new_session(master, remote)
        self._missing: dict[str, QueryError] = {}
        for name in STORED:
            self._declare(store, name)
        for view in VIEWS:
            if view.parameters is None:
                (body,) = statements(view.body)
                try:
                    self._view(view.name, body)
                except QueryError as error:
                    # Not every version and server of Spark has recursion.
                    self._missing[view.name] = error

    def close(self) -> None:
        """End the session."""
        self._session.stop()

    def interruptible(self, work: Callable[[], T]) -> T:
        """Do some work, which Ctrl-C ends."""
        return work()

    def is_complete(self, sql: str) -> bool:
        """Return whether the last statement of a text is complete."""
        return sql.rstrip().endswith(";")

    def choose(self, run_ids: Sequence[str]) -> None:
        """Fill the table `chosen_runs` with the UUIDs of runs."""

        def declare() -> None:
            rows = self._session.createDataFrame([(run,) for run in run_ids], "run_id string")
            rows.createOrReplaceTempView("chosen_runs")

        self.asked(declare)

    def relation(self, sql: str) -> DataFrame:
        """Return a query in DuckDB's SQL as a data frame; of several statements, the last."""
        tables = deque(self._frames(sql), maxlen=1)
        if not tables:
            raise QueryError("it is empty")
        return tables[0]

    def query(self, sql: str, params: Params = None) -> pa.Table:
        """Return the result of a query; of several statements, the result of the last.

        Args:
            sql: The query, in DuckDB's SQL.
            params: Must be None: only DuckDB has parameters.

        Raises:
            QueryError: Spark cannot answer the query.
        """
        if params is not None:
            raise QueryError("parameters are for DuckDB; write the values into the query")
        table = None
        for reader in self.results(sql):
            table = reader.read_all()
        return table

    def results(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        """Run the statements of a query, and yield the result of each.

        Args:
            sql: The query, in DuckDB's SQL.

        Raises:
            QueryError: Spark cannot answer the query.
        """
        for frame in self._frames(sql):
            yield self.asked(frame.toArrow).to_reader()

    # ---- inside ----

    def _frames(self, sql: str) -> Iterator[DataFrame]:
        for statement in statements(sql):
            for name, error in self._missing.items():
                if re.search(rf"\b{name}\b", statement):
                    raise QueryError(f"this Spark cannot have {name}: {error}")
            yield self.asked(partial(self._session.sql, statement))

    def _declare(self, store: Store, name: str) -> None:
        """Declare a table with the rows of listed additions, as in `FleetDatabase`."""
        table = store.table(name) if store.has(name) else None
        store.check_log(name)
        # The columns of all runs: of earlier versions, and of this version.
        declared = Schema.from_arrow(STORED[name].schema)
        both = [declared] if table is None else [table.schema(), declared]
        fields = {
            f["name"]: f
            for frame_schema in both
            for f in json.loads(frame_schema.to_json())["fields"]
        }
        fields.pop(DAY, None)
        schema = StructType.fromJson({"type": "struct", "fields": list(fields.values())})
        files = [] if table is None else table.file_uris()

        def declare() -> None:
            rows = (
                self._session.read.schema(schema).parquet(*files)
                if files
                else self._session.createDataFrame([], schema)
            )
            rows.createOrReplaceTempView(f"{_FILES}{name}")

        self.asked(declare)
        columns = ", ".join(f"`{column}`" for column in schema.names if column != ADDITION)
        self._view(
            name,
            f"select {columns}{COMPUTED.get(name, '')} from {_FILES}{name} "
            f"where {ADDITION} in (select {ADDITION} from {_FILES}runs)",
        )

    def _view(self, name: str, body: str) -> None:
        statement = f"create or replace temporary view {name} as {body}"
        self.asked(lambda: self._session.sql(statement))

    @staticmethod
    def asked(question: Callable[[], T]) -> T:
        """Ask Spark a question, and turn its errors into a `QueryError` of one line."""
        try:
            return question()
        except PySparkException as error:
            raise QueryError(one_line(error).partition(" SQLSTATE: ")[0]) from None


def new_session(master: str | None, remote: str | None) -> Any:
    """Return a session of Spark; see `SparkDatabase`.

    Raises:
        QueryError: Spark cannot be reached.
    """
    return SparkDatabase.asked(lambda: _session(master, remote))


def _session(master: str | None, remote: str | None) -> Any:
    if remote is not None:
        return SparkSession.builder.remote(remote).getOrCreate()
    builder = SparkSession.builder.appName("ptt")
    if master is not None:
        builder = builder.master(master)
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
