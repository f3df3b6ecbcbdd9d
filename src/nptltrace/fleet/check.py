"""`ptt fleet check`: the findings of runs, and lock orders that differ between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.fleet.orders import inversions
from nptltrace.fleet.selection import value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nptltrace.analysis.vocabulary.document_types import FleetCheck, FleetFinding
    from nptltrace.fleet.fleet import Fleet
    from nptltrace.fleet.selection import Chosen

__all__ = ["fleet_check"]


def fleet_check(fleet: Fleet, chosen: Chosen, *, by: str | None) -> FleetCheck:
    """Return the findings of the chosen runs.

    Args:
        fleet: The store.
        chosen: The runs.
        by: List the values of this label with each finding; None for no label.
    """
    runs = {row["run_id"]: row for row in chosen.rows}
    fleet.choose(chosen.run_ids)
    findings = [_finding(group, runs, by) for group in (*_groups(fleet), *inversions(fleet))]
    findings.sort(
        key=lambda finding: (
            finding["severity"],
            -finding["runs"],
            finding["kind"],
            finding["message"],
            finding["sites"],
        )
    )
    return {"store": fleet.store.place, "runs": len(chosen.rows), "findings": findings}


def _groups(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the findings of single runs. Findings of one kind at the same places are one group.

    The texts of a group come from the first run that has it, so that both engines agree.
    """
    groups: list[dict[str, Any]] = fleet.sql(
        """
        with placed as (
            select run_id, kind, severity, message, sites, "count",
                   list_sort(list_distinct(list_transform(sites, lambda site:
                       regexp_replace(site, '\\+0x[0-9a-f]+', '')))) as places
            from findings where run_id in (select run_id from chosen_runs)),
        numbered as (
            select p.*, row_number() over (
                       partition by kind, places
                       order by r.start_unix_ns, p.run_id, message, sites) as number
            from placed p join runs r on r.run_id = p.run_id)
        select kind, any_value(severity) filter (where number = 1) as severity,
               any_value(message) filter (where number = 1) as message,
               any_value(sites) filter (where number = 1) as sites,
               list(distinct run_id) as run_ids, sum("count")::bigint as count
        from numbered group by kind, places"""
    ).to_pylist()
    return groups


def _finding(
    group: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]], by: str | None
) -> FleetFinding:
    affected = sorted((runs[run] for run in group["run_ids"]), key=lambda run: run["start_unix_ns"])
    return {
        "kind": group["kind"], "severity": group["severity"], "message": group["message"],
        "sites": group["sites"], "runs": len(affected), "count": group["count"],
        "hosts": sorted({run["host"] or "" for run in affected}),
        "values": sorted({value_of(run, by) or "" for run in affected}) if by else [],
        "first_unix_ns": affected[0]["start_unix_ns"],
        "last_unix_ns": affected[-1]["start_unix_ns"],
        "first_run_id": affected[0]["run_id"], "last_run_id": affected[-1]["run_id"],
        "orders": group.get("orders", []),
    }  # fmt: skip
