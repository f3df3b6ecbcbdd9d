"""Cycles of lock orders that only several runs together show.

One run takes A and then B. Another run, perhaps on another host, takes B and then A. Each run looks
correct, but the program can deadlock.

Locks of different runs count as one lock if they are the same variable. So do locks that are each
the only lock made at their place in the program.

These cycles are excused, and not reported:

- Threads hold one common lock whenever they take any of the orders.
- An order uses try-locks, or all orders use shared modes.
- Only the first thread of the program takes the locks, or it takes an order while it is alone.

An excuse in some runs is no excuse in others: each way to take the locks counts for itself. `ptt
check` reports a cycle that can close within a single run, since it knows more about that run.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from nptltrace.fleet.fleet import Fleet

__all__ = ["inversions"]

# Locks of a cycle. Of longer cycles, only the shorter cycles within them are reported.
_LOCKS_MAX = 5

# The first run that has an order is its example, with both engines.
_SHOWN = ("held", "wanted", "run_id", "host", "tid", "held_site", "site")
_OF_THE_FIRST = ", ".join(f"any_value({n}) filter (where number = 1) as first_{n}" for n in _SHOWN)
_ORDERS = """
    with orders as (
        select * from edges
        where not tries and run_id in (select run_id from chosen_runs)),
    single as (
        select lock_key from (
            select lock_key, run_id, process, count(*) as objects,
                   bool_and(name_source = 'address') as made
            from objects where run_id in (select run_id from chosen_runs) group by all)
        group by lock_key having bool_and(not made or objects = 1)),
    locks as (
        select o.run_id, o.lock_id, o.lock_key, o.name, s.lock_key is not null as single
        from objects o left join single s on s.lock_key = o.lock_key
        where o.run_id in (select run_id from chosen_runs)),
    guards as (
        select run_id, process, held_lock, wanted_lock, list_sort(list(lock_key)) as guards
        from (select run_id, process, held_lock, wanted_lock, unnest(guard_set) as lock_id
              from orders)
        join locks using (run_id, lock_id) where single group by all),
    company as (
        select distinct e.run_id, e.process, e.held_lock, e.wanted_lock
        from orders e join threads t on (t.run_id, t.process) = (e.run_id, e.process)
        where e.one_thread and e.tid = e.pid and t.tid <> e.tid
          and coalesce(t.create_ns, t.start_ns) <= e.first_t
          and coalesce(t.join_ns, t.end_ns, e.first_t) >= e.first_t),
    named as (
        select p.exe, h.lock_key as held_key, w.lock_key as wanted_key, h.name as held,
               w.name as wanted, e.run_id, r.host, r.start_unix_ns, e.process, e.tid, e.first_t,
               e."count", g.guards, e.mode_a = 'shared' and e.mode_b = 'shared' as shared,
               e.one_thread and e.tid = e.pid as by_main, c.run_id is not null as in_company,
               hs.site as held_site, ws.site
        from orders e
        left join company c
          on (c.run_id, c.process, c.held_lock, c.wanted_lock)
           = (e.run_id, e.process, e.held_lock, e.wanted_lock)
        left join guards g
          on (g.run_id, g.process, g.held_lock, g.wanted_lock)
           = (e.run_id, e.process, e.held_lock, e.wanted_lock)
        join runs r on r.run_id = e.run_id
        join (select run_id, process, regexp_extract(exe, '[^/]*$') as exe from processes) p
          on (p.run_id, p.process) = (e.run_id, e.process)
        join locks h on (h.run_id, h.lock_id) = (e.run_id, e.held_lock) and h.single
        join locks w on (w.run_id, w.lock_id) = (e.run_id, e.wanted_lock) and w.single
        left join stack_sites hs on (hs.run_id, hs.stack_id) = (e.run_id, e.stack_a)
        left join stack_sites ws on (ws.run_id, ws.stack_id) = (e.run_id, e.stack_b)
        where h.lock_key <> w.lock_key),
    numbered as (
        select *, row_number() over (
                   partition by exe, held_key, wanted_key, guards, shared, by_main
                   order by start_unix_ns, run_id, process, first_t) as number
        from named where in_company or not by_main)
    select exe, held_key, wanted_key, guards, shared, by_main,
           list(distinct run_id) as run_ids, sum("count")::bigint as count,
           EXAMPLE
    from numbered group by exe, held_key, wanted_key, guards, shared, by_main
    order by exe, held_key, wanted_key, guards, shared, by_main""".replace("EXAMPLE", _OF_THE_FIRST)


@dataclass(frozen=True, slots=True)
class _Way:
    """How some runs take one lock while they hold another.

    Attributes:
        guards: Keys of the locks that are held each time.
        shared: Whether both locks are taken in shared modes.
        by_main: Whether the first thread of the program alone takes them.
        count: How often the locks are taken so.
        runs: UUIDs of the runs.
        example: Names, threads and call sites in the first run.
    """

    guards: frozenset[str]
    shared: bool
    by_main: bool
    count: int
    runs: frozenset[str]
    example: Mapping[str, Any]


# All ways to take one lock while another is held.
_Order = list[_Way]


def inversions(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the cycles among the chosen runs, in the form that `check` makes findings from.

    Args:
        fleet: The store, after `choose`.
    """
    programs: dict[str, dict[tuple[str, str], _Order]] = {}
    for row in fleet.sql(_ORDERS).to_pylist():
        orders = programs.setdefault(row["exe"], {})
        order = orders.setdefault((row["held_key"], row["wanted_key"]), [])
        order.append(
            _Way(
                frozenset(row["guards"] or ()), row["shared"], row["by_main"], row["count"],
                frozenset(row["run_ids"]), {name: row[f"first_{name}"] for name in _SHOWN},
            )
        )  # fmt: skip
    inverted = []
    for orders in programs.values():
        for cycle in _cycles(orders):
            closing = _closing(cycle)
            if closing and not _closing(cycle, together=True):
                inverted.append(_described(cycle, closing))
    return inverted


def _cycles(orders: Mapping[tuple[str, str], _Order]) -> Iterator[list[_Order]]:
    """Yield each cycle once: it begins with the least of its locks."""
    after: dict[str, list[str]] = {}
    for held, wanted in orders:
        after.setdefault(held, []).append(wanted)
    for first in sorted(after):
        paths = [[first]]
        while paths:
            path = paths.pop()
            for lock in after.get(path[-1], ()):
                if lock == first:
                    ends = zip(path, [*path[1:], first], strict=True)
                    yield [orders[pair] for pair in ends]
                elif lock > first and lock not in path and len(path) < _LOCKS_MAX:
                    paths.append([*path, lock])


def _closing(cycle: Sequence[_Order], *, together: bool = False) -> tuple[_Way, ...]:
    """Return ways to take the locks of a cycle so that threads can wait for one another.

    The number of combinations is the product of the numbers of ways. Combinations with the same
    excuses and runs continue alike, so the search keeps only the first of them.

    Args:
        cycle: The orders of the cycle.
        together: Whether a single run must have all ways.

    Returns:
        A way of each order; nothing if an excuse holds for all combinations.
    """
    kept: list[tuple[_Way, ...]] = [()]
    for order in cycle:
        first: dict[Hashable, tuple[_Way, ...]] = {}
        for before, way in product(kept, order):
            ways = (*before, way)
            runs = frozenset.intersection(*(step.runs for step in ways)) if together else None
            if runs or not together:
                first.setdefault((_guards(ways), _by_main(ways), _shared(ways), runs), ways)
        kept = list(first.values())
    return next((w for w in kept if not (_guards(w) or _by_main(w) or _shared(w))), ())


def _guards(ways: Sequence[_Way]) -> frozenset[str]:
    """Return the locks that all ways hold."""
    return frozenset.intersection(*(way.guards for way in ways))


def _by_main(ways: Sequence[_Way]) -> bool:
    """Return whether the first thread of the program alone takes the locks."""
    return all(way.by_main for way in ways)


def _shared(ways: Sequence[_Way]) -> bool:
    return all(way.shared for way in ways)


def _described(cycle: Sequence[_Order], closing: Sequence[_Way]) -> dict[str, Any]:
    """Return a cycle as a finding.

    Args:
        cycle: The orders of the cycle.
        closing: A way of each order that closes the cycle. The finding shows these ways.
    """
    shown = [way.example for way in closing]
    counts = [sum(way.count for way in order) for order in cycle]
    runs = [frozenset().union(*(way.runs for way in order)) for order in cycle]
    steps = "; ".join(
        f"run {edge['run_id'][:8]} on {edge['host']} takes {edge['held']} and then {edge['wanted']}"
        for edge in shown
    )
    return {
        "kind": "lock-order-inversion", "severity": "warning",
        "message": f"{', '.join(edge['held'] for edge in shown)} are taken in different orders by "
        f"different runs: {steps}",
        "sites": [edge["site"] or "" for edge in shown],
        "run_ids": sorted(frozenset().union(*runs)),
        "count": min(counts),
        "orders": [
            {
                "held_name": edge["held"], "wanted_name": edge["wanted"], "runs": len(having),
                "count": count, "run_id": edge["run_id"], "host": edge["host"] or "",
                "tid": edge["tid"], "held_site": edge["held_site"] or "",
                "site": edge["site"] or "",
            }
            for edge, having, count in zip(shown, runs, counts, strict=True)
        ],
    }  # fmt: skip
