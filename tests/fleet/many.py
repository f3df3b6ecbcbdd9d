"""Makes many runs from few: copies of their rows with other runs, hosts and releases."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

import pyarrow as pa

from nptltrace.fleet.store import Store
from nptltrace.fleet.tables import ADDITION, LABEL, STORED

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HOSTS", "RELEASES", "multiply"]

HOSTS, RELEASES = 20, 3
DAY_NS = 24 * 3600 * 10**9


def multiply(place: str, times: int) -> int:
    """Add the runs of a store again, as runs of several hosts and releases.

    Args:
        place: The store; its runs have a label `release`.
        times: Factor of the number of runs.

    Returns:
        The new number of runs.
    """
    store = Store(place)
    # Threads of Arrow would come back to Python after its end.
    own = {
        name: store.table(name).to_pyarrow_dataset().to_table(use_threads=False) for name in STORED
    }
    names = own["runs"]["run_id"].to_pylist()
    for name, rows in own.items():
        more = []
        for time in range(1, times):
            run_ids = {run: str(uuid5(NAMESPACE_OID, f"{run} {time}")) for run in names}
            again = _renamed(rows, "run_id", run_ids)
            additions = dict.fromkeys(rows[ADDITION].to_pylist(), "")
            renamed = {addition: f"{addition}-{time}" for addition in additions}
            again = _renamed(again, ADDITION, renamed)
            more.append(_elsewhere(again, time, times) if name == "runs" else again)
        store.append(name, pa.concat_tables(more))
    return len(names) * times


def _elsewhere(runs: pa.Table, time: int, times: int) -> pa.Table:
    """Return copies of runs with other days, hosts and releases."""
    numbers = range(time * runs.num_rows, (time + 1) * runs.num_rows)
    starts = [start + time * DAY_NS for start in runs["start_unix_ns"].to_pylist()]
    values = {
        "start_unix_ns": pa.array(starts, pa.int64()),
        "host": pa.array([f"web{number % HOSTS}" for number in numbers]),
        f"{LABEL}release": pa.array([f"1.{time * RELEASES // times}"] * runs.num_rows),
    }
    for name, value in values.items():
        runs = runs.set_column(runs.column_names.index(name), name, value)
    return runs


def _renamed(rows: pa.Table, column: str, names: Mapping[str, str]) -> pa.Table:
    renamed = pa.array([names[name] for name in rows[column].to_pylist()], pa.string())
    return rows.set_column(rows.column_names.index(column), column, renamed)
