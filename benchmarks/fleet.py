#!/usr/bin/env python3
"""Measures the cost of a fleet: adding a run, bytes of a wait in a store, queries over many runs.

The benchmark makes one run of a made-up program, as large as you want, and adds it as a user does.
The other runs in the store repeat these rows with other runs, days, hosts and releases. They leave
out holds, wake-ups and states: no query here reads them. Each query is a command, and its start
counts. It runs on a store with a tenth of the waits, and then on the whole store.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from support.common import PTT, Bar, Figures, Used, environment, keep, scratch, used_by
from support.made import make_trace

BAR = 10
ADD_S = 5.0  # for a million waits
BYTES = 12.0  # of a wait, in the table of waits
WORST_S = 10.0  # for a hundred million waits
MEMORY_MIB = 2048.0
GROWTH = 11.0  # of processor time, for ten times the waits
EVENTS_OF_A_WAIT = 3.3  # of the made-up program, on few locks
HOSTS, RELEASES = 20, 3
DAY_NS = 24 * 3600 * 10**9
NOT_ASKED = ("holds", "wakeups", "states")

WORST_SITES = """
    select site, count(*) as waits, sum(dur_ns)::bigint as wait_ns, max(dur_ns) as longest
    from waits join stack_sites using (run_id, stack_id) where class = 'contended'
    group by site order by wait_ns desc limit 10"""
BY_RELEASE = """
    select label_release, kind, approx_quantile(dur_ns, 0.99)::bigint as p99_ns
    from waits join runs using (run_id) group by all order by all"""
QUESTIONS = {
    "fleet report": ["fleet", "report", "STORE"],
    "fleet check": ["fleet", "check", "STORE"],
    "worst sites of all waits": ["sql", "--store", "STORE", WORST_SITES],
    "contention_by_site": ["sql", "--store", "STORE", "from contention_by_site limit 10"],
    "by release, with percentiles": ["sql", "--store", "STORE", BY_RELEASE],
}
WORST = ("fleet report", "worst sites of all waits")


def rows_of(store: str, sql: str) -> int:
    """Return the number that a query returns."""
    command = [*PTT, "sql", "--store", store, sql, "--format", "csv"]
    return int(used_by(command, environment(), read=True).printed.split()[1])


def bytes_of(folder: Path) -> int:
    """Return the bytes of the data of one table, or of all tables."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def added_run(directory: Path, store: Path, waits: int) -> tuple[Used, int]:
    """Make a run and add it; return the cost, and the number of its waits."""
    trace = directory / "run.ptt"
    make_trace(trace, int(waits * EVENTS_OF_A_WAIT), threads=16, locks=4)
    command = [*PTT, "fleet", "add", str(store), str(trace), "--label", "release=1.0"]
    used = used_by(command, environment())
    shutil.rmtree(trace)
    return used, rows_of(str(store), "select count(*) as n from waits")


def repeated(place: Path, runs: int) -> Iterator[int]:
    """Add the rows of the store's run again and again as other runs; yield the number of runs."""
    import pyarrow as pa

    from nptltrace.fleet.store import Addition, Store
    from nptltrace.fleet.tables import ADDITION, DAY, STORED

    store = Store(str(place))
    own = {
        name: store.table(name).to_pyarrow_table()
        for name in STORED
        if name not in NOT_ASKED
    }  # fmt: skip
    own = {
        name: rows.drop_columns([c for c in (ADDITION, DAY) if c in rows.column_names])
        for name, rows in own.items()
    }

    def replaced(rows: pa.Table, **values: object) -> pa.Table:
        for name, value in values.items():
            column = rows.column_names.index(name)
            kind = rows.schema.field(name).type
            same = pa.repeat(pa.scalar(value, kind), rows.num_rows)
            rows = rows.set_column(column, name, same)
        return rows

    yield 1
    begin = own["runs"]["t0_unix_ns"][0].as_py()
    for number in range(1, runs):
        run_id, start = str(uuid4()), begin + number * DAY_NS
        addition = Addition(store, start)
        for name, rows in own.items():
            if name != "runs":
                addition.append(name, replaced(rows, run_id=run_id))
        addition.list_run(
            replaced(
                own["runs"], run_id=run_id, start_unix_ns=start, host=f"web{number % HOSTS}",
                label_release=f"1.{number * RELEASES // runs}",
            )
        )  # fmt: skip
        yield number + 1


def asked(store: Path) -> dict[str, Used]:
    """Run all queries and return the cost of each."""
    costs = {}
    for name, words in QUESTIONS.items():
        command = [*PTT, *(str(store) if word == "STORE" else word for word in words)]
        costs[name] = used_by(command, environment())
    return costs


def bars(
    added: Used, run_waits: int, wait_bytes: float, taken: dict[int, dict[str, Used]]
) -> list[Bar]:
    """Return the bars; queries have bars only if the store has as many waits as the bounds say."""
    few, most = taken
    held = [Bar(BAR, "bytes of a wait in a store", wait_bytes, BYTES)]
    if run_waits >= 0.9 * 10**6:
        held.append(
            Bar(BAR, "adding a run, s a million waits", added.seconds * 1e6 / run_waits, ADD_S)
        )
    if most >= 0.9 * 10**8:
        used = taken[most]
        held += [Bar(BAR, f"{name}: s", used[name].seconds, WORST_S) for name in WORST]
        held += [Bar(BAR, f"{name}: MiB", used[name].own_mib, MEMORY_MIB) for name in used]
    for name in QUESTIONS:
        growth = taken[most][name].cpu / taken[few][name].cpu
        bound = GROWTH * most / few / 10
        held.append(Bar(BAR, f"{name}: processor time, × at {most / few:.0f} ×", growth, bound))
    return held


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waits", type=int, default=10**6, help="of a run (default: a million)")
    parser.add_argument("--runs", type=int, default=100, help="two or more (default: 100)")
    parser.add_argument("--quick", action="store_true", help="20 runs of 100,000 waits")
    args = parser.parse_args()
    waits, runs = (100_000, 20) if args.quick else (args.waits, args.runs)
    directory = scratch()
    try:
        store = directory / "store"
        added, run_waits = added_run(directory, store, waits)
        wait_bytes, all_bytes = bytes_of(store / "waits") / run_waits, bytes_of(store) / run_waits
        print(
            f"added {run_waits:,} waits in {added.seconds:.1f} s, "
            f"{added.cpu:.1f} s of the processor, {added.own_mib:.0f} MiB; "
            f"{wait_bytes:.1f} bytes a wait, {all_bytes:.1f} with the "
            "holds, states and wake-ups that belong to it",
            flush=True,
        )
        taken = {}
        tenth = max(runs // 10, 1)  # of at least two
        for number in repeated(store, runs):
            if number in {tenth, runs}:
                taken[number * run_waits] = asked(store)
        print("s (processor s) MiB of its own, by waits:")
        for name in QUESTIONS:
            cells = [
                f"{n:,}: {used[name].seconds:.2f} ({used[name].cpu:.2f}) {used[name].own_mib:.0f}"
                for n, used in taken.items()
            ]
            print(f"{name:<30}{'   '.join(cells)}")
        verdicts = bars(added, run_waits, wait_bytes, taken)
        each = {f"{name}/{n}": used[name] for n, used in taken.items() for name in used}
        keep(
            "fleet",
            {name: Figures((used.seconds,)) for name, used in each.items()},
            bars=verdicts,
            cpu={name: used.cpu for name, used in each.items()},
            own_mib={name: used.own_mib for name, used in each.items()},
            waits=run_waits, runs=runs, bytes_of_a_wait=wait_bytes, bytes_with_all=all_bytes,
        )  # fmt: skip
    finally:
        shutil.rmtree(directory)
    for bar in verdicts:
        print(bar)
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
