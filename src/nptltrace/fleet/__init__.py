"""Fleets: the traces of many runs in one store, and the questions that only many runs answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.fleet.fleet import Fleet

__all__ = ["open"]


def open(  # noqa: A001 -- as nptltrace.open
    store: str, *, engine: str = "duckdb", master: str | None = None, remote: str | None = None
) -> Fleet:
    """Open a store that `ptt fleet add` made.

    Args:
        store: Directory of the store, or the address of a bucket and a path in the bucket.
        engine: The engine that answers queries: `duckdb` or `spark`.
        master: Address of a Spark cluster; None: Spark's own settings decide.
        remote: Address of a Spark Connect server, in place of `master`.

    Raises:
        UsageError: There is no store, or the engine does not take these arguments.
    """
    from nptltrace.fleet.fleet import Fleet

    return Fleet(store, engine=engine, master=master, remote=remote)
