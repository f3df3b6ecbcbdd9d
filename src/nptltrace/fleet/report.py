"""`ptt fleet report` and `ptt fleet diff`: where runs wait, and which runs wait longer."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.report.significance import chances_of_all
from nptltrace.errors import UsageError
from nptltrace.fleet.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.vocabulary.document_types import (
        FleetChange,
        FleetDiff,
        FleetPlace,
        FleetPlaceChange,
        FleetReport,
    )
    from nptltrace.fleet.fleet import Fleet
    from nptltrace.fleet.selection import Chosen

__all__ = ["fleet_diff", "fleet_report"]


def fleet_report(fleet: Fleet, chosen: Chosen, *, by: str, confidence: float) -> FleetReport:
    """Return the places where runs waited, the worst place first.

    Args:
        fleet: The store.
        chosen: The runs.
        by: Divide the runs into groups by this name: `host`, `exe` or a label.
        confidence: Report a change from one group to the next if it is at least so sure, 0 to 1.

    Raises:
        UsageError: No run has such a name.
    """
    waits = waiting(fleet, chosen.run_ids)
    groups = chosen.values(by)
    changes = _changes(
        waits.wait_ns, [(groups[before], groups[after]) for before, after in pairwise(groups)]
    )
    places: list[FleetPlace] = []
    for number, place in enumerate(waits.places):
        values = waits.wait_ns[number]
        median, p90 = np.quantile(values, [0.5, 0.9], method="inverted_cdf")
        places.append(
            {
                "place": place.place, "site": place.site, "module": place.module,
                "kind": place.kind, "runs": int(np.count_nonzero(values)), "waits": place.waits,
                "wait_ns": int(values.sum()), "held_ns": int(waits.held_ns[number].sum()),
                "wait_max_ns": place.wait_max_ns,
                "run_mean_ns": int(values.mean()), "run_p50_ns": int(median),
                "run_p90_ns": int(p90), "run_max_ns": int(values.max()),
                "groups": [
                    {"value": value, "runs": len(runs), "run_mean_ns": int(values[runs].mean())}
                    for value, runs in groups.items()
                ],
                "changes": [
                    {"value_before": before, "value_after": after, **_change(change, number)}
                    for (before, after), change in zip(pairwise(groups), changes, strict=True)
                    if change.chance[number] <= 1 - confidence
                ],
            }
        )  # fmt: skip
    return {
        "store": fleet.store.place, "by": by, "runs": len(chosen.rows),
        "wait_ns": int(waits.total_ns.sum()), "confidence": confidence,
        "groups": [
            {"value": value, "runs": len(runs), "run_mean_ns": int(waits.total_ns[runs].mean())}
            for value, runs in groups.items()
        ],
        "places": places,
    }  # fmt: skip


def fleet_diff(fleet: Fleet, before: Chosen, after: Chosen, *, confidence: float) -> FleetDiff:
    """Return the changes of waiting from some runs to others, the largest change first.

    Args:
        fleet: The store.
        before: The earlier runs.
        after: The later runs.
        confidence: Goes into the document: how sure a change must be, 0 to 1.

    Raises:
        UsageError: One side has no runs, or a run is on both sides.
    """
    for side, runs in (("before", before), ("after", after)):
        if not runs.rows:
            raise UsageError(f"no run in the store matches {side}")
    common = set(before.run_ids) & set(after.run_ids)
    if common:
        raise UsageError(f"run {min(common)} is on both sides; choose others")
    n, m = len(before.rows), len(after.rows)
    waits = waiting(fleet, [*before.run_ids, *after.run_ids])
    sides = list(range(n)), list(range(n, n + m))
    [by_place] = _changes(waits.wait_ns, [sides])
    [whole] = _changes(waits.total_ns[np.newaxis], [sides])
    rows: list[FleetPlaceChange] = [
        {"place": place.place, "site": place.site, "module": place.module, "kind": place.kind,
         **_change(by_place, number)}
        for number, place in enumerate(waits.places)
    ]  # fmt: skip
    rows.sort(key=lambda row: -abs(row["after_ns"] - row["before_ns"]))
    return {
        "store": fleet.store.place, "runs_before": n, "runs_after": m, "confidence": confidence,
        "total": _change(whole, 0), "places": rows,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes from one group of runs to another, an element for each place.

    Attributes:
        before: Mean wait of a run in the first group, in ns.
        after: Mean wait of a run in the second group, in ns.
        chance: Probability of such a difference by chance alone.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    chance: NDArray[np.float64]


def _changes(
    values: NDArray[np.float64], steps: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[_Changes]:
    """Return the changes of all places at each step; all steps are one family of tests."""
    sides = [(values[:, before], values[:, after]) for before, after in steps]
    return [
        _Changes(before.mean(axis=1), after.mean(axis=1), chance)
        for (before, after), chance in zip(sides, chances_of_all(sides), strict=True)
    ]


def _change(changes: _Changes, number: int) -> FleetChange:
    was, now = float(changes.before[number]), float(changes.after[number])
    return {
        "before_ns": int(was), "after_ns": int(now),
        "change_percent": (now / was - 1) * 100 if was else None,
        "chance": float(changes.chance[number]),
    }  # fmt: skip
