"""How long the runs of a store waited, and where: a row for each place, a column for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._dataclasses import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nptltrace.fleet.fleet import Fleet

__all__ = ["Place", "Waiting", "waiting"]

# Nobody looks at more places, and more tests would hide changes at the worst places.
_PLACES_MAX = 100
# A place takes the least of its names, so that both engines take the same name.
_BY_PLACE = """
    with placed as (
        select run_id, stack_id, place, site, module
        from stacks join sites using (run_id, site_id)),
    by_place as (
        select place, min(site) as site, min(module) as module, kind, run_id,
               sum(waits)::bigint as waits, sum(wait_ns)::bigint as wait_ns,
               sum(held_ns)::bigint as held_ns, max(wait_max_ns) as wait_max_ns
        from sums left join placed using (run_id, stack_id)
        where class = 'contended' and run_id in (select run_id from chosen_runs)
        group by place, kind, run_id)"""
_WORST = f""",
    whole as (
        select place, kind, min(site) as site, min(module) as module,
               sum(waits)::bigint as waits, sum(wait_ns)::bigint as wait_ns,
               max(wait_max_ns) as wait_max_ns
        from by_place group by place, kind)
    select * from whole order by wait_ns desc, place, kind limit {_PLACES_MAX}"""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the program, the same in every build.

    Attributes:
        place: Function and file.
        site: The call site in one of the builds, with its line.
        module: File name of the module.
        kind: Kind of the objects that threads waited for there.
        waits: Number of contended waits in all runs.
        wait_max_ns: The longest wait.
    """

    place: str
    site: str
    module: str
    kind: str
    waits: int
    wait_max_ns: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Contended waiting, in ns.

    Attributes:
        places: The places, the worst place first; at most 100.
        wait_ns: Waiting, with shape (places, runs).
        held_ns: The part of it in which a thread held the lock, with shape (places, runs).
        total_ns: Waiting of each run at all places, also at places that are left out.
    """

    places: list[Place]
    wait_ns: NDArray[np.float64]
    held_ns: NDArray[np.float64]
    total_ns: NDArray[np.float64]


def waiting(fleet: Fleet, run_ids: Sequence[str]) -> Waiting:
    """Return how long runs waited, and where.

    Args:
        fleet: The store.
        run_ids: UUIDs of the runs, in the order of the columns.
    """
    fleet.choose(run_ids)
    worst = fleet.sql(f"{_BY_PLACE} {_WORST}").to_pylist()
    places = [
        Place(
            row["place"] or "unknown place", row["site"] or "", row["module"] or "", row["kind"],
            row["waits"], row["wait_max_ns"],
        )
        for row in worst
    ]  # fmt: skip
    number = {(row["place"], row["kind"]): n for n, row in enumerate(worst)}
    column = {run: n for n, run in enumerate(run_ids)}
    wait, held = (np.zeros((len(places), len(run_ids))) for _ in range(2))
    total = np.zeros(len(run_ids))
    for row in fleet.sql(f"{_BY_PLACE} select * from by_place").to_pylist():
        run = column[row["run_id"]]
        total[run] += row["wait_ns"]
        place = number.get((row["place"], row["kind"]))
        if place is not None:
            wait[place, run] += row["wait_ns"]
            held[place, run] += row["held_ns"] or 0
    return Waiting(places, wait, held, total)
