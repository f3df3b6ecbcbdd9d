#!/usr/bin/env python3
"""Checks that many writers of one store lose nothing, even if SIGKILL ends some of them.

All writers start at once, and each adds its own run to a store that the first writer makes. SIGKILL
ends some writers at random moments. Afterwards, each listed run must be complete, and the run of
each writer that ended by itself must be there. After another add of all runs, the store must have
each run once.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from support.common import PTT, ROOT, Bar, environment, keep, scratch
from support.made import make_trace

sys.path.insert(0, str(ROOT / "src"))

BAR = 10
EVENTS = 3_000


def holds_of(store: Path) -> dict[str, int]:
    """Return the number of holds by listed run; if the list has a run twice, its holds double."""
    import nptltrace.fleet

    counts = (
        "select run_id, (select count(*) from holds h where h.run_id = r.run_id) as n from runs r"
    )
    with nptltrace.fleet.open(str(store)) as fleet:
        holds: dict[str, int] = {}
        for row in fleet.sql(counts).to_pylist():
            holds[row["run_id"]] = holds.get(row["run_id"], 0) + row["n"]
    return holds


def adding(store: Path, *traces: Path) -> subprocess.Popen[str]:
    """Start a writer that adds runs."""
    command = [*PTT, "-q", "fleet", "add", str(store), *map(str, traces)]
    return subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)


def main() -> int:
    """Add, kill, check; fail if a run is lost or incomplete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--writers", type=int, default=200)
    parser.add_argument("-k", "--killed", type=int, default=40, help="number of writers to kill")
    args = parser.parse_args()
    directory = scratch()
    try:
        traces = [directory / f"{n}.ptt" for n in range(args.writers)]
        for trace in traces:
            make_trace(trace, EVENTS, threads=4, locks=4)
        store = directory / "store"
        began = time.monotonic()
        writers = [adding(store, trace) for trace in traces]
        chosen = random.sample(range(args.writers), args.killed)
        for number in chosen:
            time.sleep(random.uniform(0, args.writers / args.killed / 4))  # noqa: S311 -- to meet them anywhere
            writers[number].kill()
        errors = [writer.communicate()[1] for writer in writers]
        seconds = time.monotonic() - began
        codes = [writer.returncode for writer in writers]
        failed = [error for code, error in zip(codes, errors, strict=True) if code > 0]
        found = holds_of(store)
        print(f"{args.writers} writers took {seconds:.1f} s; {codes.count(-9)} were killed")
        print("".join(failed[:3]), end="")
        listed = len(found)
        again = adding(store, *traces)
        again.communicate()
        whole = holds_of(store)
        half = sum(count != whole.get(run) for run, count in found.items())
        verdicts = [
            Bar(BAR, "writers that failed", len(failed), 0),
            Bar(BAR, "runs lost of writers that ended", codes.count(0) - listed, 0),
            Bar(BAR, "runs that are half", half, 0),
            Bar(BAR, "different numbers of holds, all added", len(set(whole.values())), 1),
            Bar(BAR, "runs missing, all added", len(traces) - len(whole), 0),
        ]
        keep("writers", {}, bars=verdicts, seconds=seconds, writers=args.writers)
    finally:
        shutil.rmtree(directory)
    for bar in verdicts:
        print(bar)
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
