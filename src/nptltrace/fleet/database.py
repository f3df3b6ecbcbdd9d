"""SQL over a store by DuckDB: the tables of all runs, and the same views as over one trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nptltrace.analysis.sql.query import Database
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.errors import one_line
from nptltrace.fleet.store import StoreError
from nptltrace.fleet.tables import ADDITION, COMPUTED, DAY, DETAILS, STORED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.fleet.store import Store

__all__ = ["FleetDatabase"]

_FILES, _FOUND, _EMPTY = "files_of_", "found_of_", "columns_of_"


class FleetDatabase(Database):
    """A DuckDB database over the present tables of a store and their views.

    Args:
        store: The store.

    Raises:
        StoreError: A file of the store cannot be read.
    """

    def __init__(self, store: Store) -> None:
        self._begin(lambda: self._declare_store(store), enable_external_access="true")

    def choose(self, run_ids: Sequence[str]) -> None:
        """Fill the table `chosen_runs` with some runs."""
        self._connection.register(
            "chosen_runs", pa.table({"run_id": pa.array(run_ids, pa.string())})
        )

    def relation(self, sql: str) -> Any:
        """Return a query as a relation of DuckDB."""
        return self._connection.sql(sql)

    def _declare_store(self, store: Store) -> None:
        """Declare tables and views.

        Raises:
            StoreError: A file of the store cannot be read.
        """

        def run(statement: str) -> None:
            try:
                self._connection.execute(statement)
            except self._duckdb.Error as error:
                what = one_line(error).partition(" LINE 1: ")[0].partition("Error: ")[2]
                raise StoreError(f"{store.place}: {what}; put the file back from a copy") from None

        for name in STORED:
            run(f"create view {_FILES}{name} as {self._source(store, name)}")
        # `runs` does not list an addition yet, or any more: its rows are not part of the store.
        listed = f"(select {ADDITION} from {_FILES}runs)"
        for name in STORED:
            hidden = f"{ADDITION}, {DAY}" if name in DETAILS else ADDITION
            run(
                f"create view {name} as select * exclude ({hidden}){COMPUTED.get(name, '')} "
                f"from {_FILES}{name} where {ADDITION} in {listed}"
            )
        for view in VIEWS:
            run(view.statement)
        run(f"set allowed_directories = ['{_quoted(store.place)}/']")
        run("set enable_external_access = false")

    def _source(self, store: Store, name: str) -> str:
        """Return the query that reads the files of a table, with the columns of this version."""
        declared = STORED[name].schema
        table = store.table(name) if store.has(name) else None
        store.check_log(name)
        files = table.file_uris() if table is not None else []
        if table is None or not files:
            self._connection.register(f"{_EMPTY}{name}", declared.empty_table())
            return f"select * from {_EMPTY}{name}"
        if "://" in store.place:  # DuckDB needs an extension to read a bucket
            self._connection.register(f"{_FOUND}{name}", table.to_pyarrow_dataset())
            rows = f"select * from {_FOUND}{name}"
        else:
            listed = ", ".join(f"'{_quoted(file)}'" for file in files)
            rows = f"select * from read_parquet([{listed}], union_by_name = true)"
        if {field.name for field in table.schema().fields} >= set(declared.names):
            return rows
        # All runs come from earlier versions, which had fewer columns.
        self._connection.register(f"{_EMPTY}{name}", declared.empty_table())
        return f"select * from {_EMPTY}{name} union all by name {rows}"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
