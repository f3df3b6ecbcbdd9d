"""The engines that answer SQL over a store: DuckDB in this process, or Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from nptltrace.fleet.database import FleetDatabase
    from nptltrace.fleet.spark import SparkDatabase
    from nptltrace.fleet.store import Store

__all__ = ["ENGINES", "database_of", "spark_session"]

ENGINES = ("duckdb", "spark")


def database_of(
    store: Store, *, engine: str = "duckdb", master: str | None = None, remote: str | None = None
) -> FleetDatabase | SparkDatabase:
    """Open a database over the present tables of a store and their views.

    Args:
        store: The store.
        engine: `duckdb` or `spark`.
        master: Address of a Spark cluster; None: Spark's own settings decide.
        remote: Address of a Spark Connect server, in place of `master`.

    Raises:
        UsageError: There is no such engine, or the engine does not take these arguments.
        QueryError: Spark cannot be reached.
        StoreError: A file of the store cannot be read.
    """
    _check(engine, master, remote)
    if engine == "spark":
        from nptltrace.fleet.spark import SparkDatabase

        return SparkDatabase(store, master=master, remote=remote)
    from nptltrace.fleet.database import FleetDatabase

    return FleetDatabase(store)


def spark_session(
    *, engine: str = "spark", master: str | None = None, remote: str | None = None
) -> Any:
    """Return a session of Spark; None for another engine. The arguments are as in `database_of`.

    Raises:
        UsageError: There is no such engine, or the engine does not take these arguments.
        QueryError: Spark cannot be reached.
    """
    _check(engine, master, remote)
    if engine != "spark":
        return None
    from nptltrace.fleet.spark import new_session

    return new_session(master, remote)


def _check(engine: str, master: str | None, remote: str | None) -> None:
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine}: take {' or '.join(ENGINES)}")
    if engine != "spark" and (master is not None or remote is not None):
        raise UsageError("--master and --remote are for --engine spark")
    if master is not None and remote is not None:
        raise UsageError("give --master or --remote, not both")
