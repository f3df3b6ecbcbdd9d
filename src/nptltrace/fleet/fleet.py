"""A store and the questions that many runs answer together."""

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

    Args:
        store: Where the store is.
        engine: What answers: `duckdb` or `spark`.
        master: Address of a Spark cluster; None for what Spark's settings say.
        remote: Address of a Spark Connect server instead.
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
        """Return what it holds, in a line."""
        return f"<Fleet {self.store.place}: {self.runs.num_rows} runs>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> pa.Table:
        """The runs, in the order in which they began."""
        return self.store.runs()

    @cached_property
    def database(self) -> FleetDatabase | SparkDatabase:
        """The tables and views as they were when this was first asked for."""
        return self._open()

    def choose(self, run_ids: Sequence[str]) -> None:
        """Fill the table `chosen_runs`, which later queries may read, with some runs."""
        self.database.choose(run_ids)

    def relation(self, query: str) -> Any:
        """Return a query to go on with: DuckDB's relation of it, or Spark's data frame.

        Args:
            query: The query, in DuckDB's SQL.
        """
        return self.database.relation(query)

    def sql(self, query: str, params: Params = None) -> pa.Table:
        """Return what a query answers, in DuckDB's SQL over the tables and views.

        Args:
            query: The query.
            params: Values for its parameters, by place or by name.

        Raises:
            QueryError: It cannot be answered.
        """
        return self.database.query(query, params)

    def table(self, name: str) -> pa.Table:
        """Return one of the tables of the store, rows of listed runs only."""
        return self.sql(f'select * from "{name}"')  # noqa: S608 -- an unknown name is an error

    def close(self) -> None:
        """Give back what queries use."""
        if "database" in vars(self):
            self.database.close()
