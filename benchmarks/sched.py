#!/usr/bin/env python3
"""Measures the cost of scheduler data: `--sched auto` and `perf`, beside `none`.

pair        an uncontended lock and unlock, which read the word of rseq.
contended   sections of 1 µs that two threads want, with a scheduler reading after each wait.
switch      threads take turns, and the kernel writes a record of each context switch. The figure
            is the added processor time per switch, also for `perf sched record`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from micro import CASES, CONTENDED, PAIR, Case, Effort, Measured, measure, print_case
from support.common import PTT, Bar, environment, have, keep, scratch_directory
from support.ways import Ptt, Run, Way

BAR = 4
NONE, AUTO, PERF = (
    Ptt("2", "--sched", how, name=f"--sched {how}") for how in ("none", "auto", "perf")
)
TURNS = Case("condition ping-pong", "cond", 2, "cond", 20_000, 10_000)
PAIR_NS, CONTENDED_RATIO, SWITCH_NS = 1.0, 1.06, 2_500.0


class PerfSched(Way):
    """Context switches of the whole machine, recorded by perf."""

    name = "perf sched record"
    about = name

    @contextmanager
    def on(self, work: Path) -> Iterator[Run]:
        """See the base class."""
        record = ["perf", "sched", "record", "-q", "-o", str(work / "perf.data"), "--"]
        yield Run(wrap=lambda command: [*record, *command])


def switches(work: Path) -> float:
    """Return the number of context switches per operation of threads that take turns."""
    trace = work / "counted"
    program = [str(work / "cases"), TURNS.program, "2", str(TURNS.count)]
    command = [*PTT, "record", "-q", "--sched", "perf", "-o", str(trace), "--", *program]
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
    stat = [*PTT, "stat", "--format", "json", str(trace)]
    text = subprocess.run(stat, env=environment(), check=True, capture_output=True).stdout
    types = json.loads(text)["event_types"]
    # The program does a tenth of its work before the clock starts.
    return float(types["SCHED_IN"]) / (TURNS.count * TURNS.threads * 1.1)


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=11)
    args = parser.parse_args()
    effort = Effort(args.rounds, 3, 1.0)
    results: dict[str, Measured] = {}
    with scratch_directory() as directory:
        work = Path(directory)
        for case in (*(case for case in CASES if case.name in {PAIR, CONTENDED}), TURNS):
            ways = [Way(), NONE, AUTO, *([PERF] if case is TURNS else [])]
            ways += [PerfSched()] if case is TURNS and have("perf") else []
            results[case.name] = measure(case, ways, effort, work)
            print_case(case, results[case.name], ways)
        each = switches(work)
    turns = results[TURNS.name]
    by_switch = {
        way: (turns.cpu_added(way) - turns.cpu_added(base)) / each
        for way, base in ((PERF.name, AUTO.name), (PerfSched.name, Way.name))
        if way in turns.wall
    }
    print(f"\n{each:.2f} switches an operation; added to one:")
    for way, ns in by_switch.items():
        print(f"{way:<20}{ns:8.0f} ns")
    pair, contended = results[PAIR], results[CONTENDED]
    verdicts = [
        Bar(BAR, "ns added to a pair by the look at rseq, processor time",
            pair.cpu_added(AUTO.name) - pair.cpu_added(NONE.name), PAIR_NS),
        Bar(BAR, "contended, 1 µs section, × untraced",
            contended.ratio(AUTO.name), CONTENDED_RATIO),
        Bar(BAR, "--sched perf, ns a switch", by_switch[PERF.name], SWITCH_NS),
    ]  # fmt: skip
    figures = {
        f"{case}/{way}": measured.wall[way]
        for case, measured in results.items()
        for way in measured.wall
    }
    keep("sched", figures, bars=verdicts, switches=each, by_switch=by_switch)
    for bar in verdicts:
        print(bar)
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
