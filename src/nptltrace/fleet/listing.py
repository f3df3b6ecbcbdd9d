"""`ptt fleet list`: the runs of a store."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from nptltrace.fleet.selection import value_of

if TYPE_CHECKING:
    from nptltrace.analysis.vocabulary.document_types import FleetRuns
    from nptltrace.fleet.fleet import Fleet
    from nptltrace.fleet.selection import Chosen

__all__ = ["fleet_runs"]


def fleet_runs(fleet: Fleet, chosen: Chosen) -> FleetRuns:
    """Return the runs that were chosen, in the order in which they began."""
    labels = fleet.store.labels()
    return {
        "store": fleet.store.place,
        "runs": [
            {
                "run_id": row["run_id"], "start_unix_ns": row["start_unix_ns"],
                "added_unix_ns": row["added_unix_ns"], "host": row["host"] or "",
                "exe": PurePath(row["exe"] or "").name, "events": row["events"],
                "summary": row["summary"],
                "labels": [
                    f"{name}={value}" for name in labels if (value := value_of(row, name))
                ],
            }
            for row in chosen.rows
        ],
    }  # fmt: skip
