"""A store, and queries over all of its runs."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from nptltrace.fleet.engines import database_of
from nptltrace.fleet.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from nptltrace.analysis.sql.query import Params
    from nptltrace.fleet.database import FleetDatabase
    from nptltrace.fleet.spark import SparkDatabase

__all__ = ["Fleet"]


class Fleet:
    """The runs of a store; see `nptltrace.fleet.open`. It is a context manager.

    Its arguments are the arguments of `open`.

    Raises:
        UsageError: There is no store.
    """

    def __init__(
        self,
        store: str,
        *,
        engine: str = "duckdb",
        master: str | None = None,
        remote: str | None = None,
    ) -> None:
        self.store = Store(store)
        self._open = partial(database_of, self.store, engine=engine, master=master, remote=remote)

    def __repr__(self) -> str:
        """Return the place of the store and its number of runs."""
        return f"<Fleet {self.store.place}: {self.runs.num_rows} runs>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> pa.Table:
        """The runs, ordered by their start."""
        return self.store.runs()

    @cached_property
    def database(self) -> FleetDatabase | SparkDatabase:
        """The tables and views, in their state when you first use this property."""
        return self._open()

    def choose(self, run_ids: Sequence[str]) -> None:
        """Fill the table `chosen_runs`, which later queries can read.

        Args:
            run_ids: UUIDs of the runs.
        """
        self.database.choose(run_ids)

    def relation(self, query: str) -> Any:
        """Return a query as a relation of DuckDB or as a data frame of Spark.

        Args:
            query: The query, in DuckDB's SQL.
        """
        return self.database.relation(query)

    def sql(self, query: str, params: Params = None) -> pa.Table:
        """Return the result of a query over the tables and views.

        Args:
            query: The query, in DuckDB's SQL.
            params: Values for the parameters of the query, by place or by name.

        Raises:
            QueryError: The engine cannot answer the query.
        """
        return self.database.query(query, params)

    def table(self, name: str) -> pa.Table:
        """Return a table of the store, with the rows of listed runs only."""
        return self.sql(f'select * from "{name}"')  # noqa: S608 -- an unknown name is an error

    def close(self) -> None:
        """Close the database, if a query has opened it."""
        if "database" in vars(self):
            self.database.close()
