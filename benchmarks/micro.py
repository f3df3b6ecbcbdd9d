#!/usr/bin/env python3
"""Measures one operation of the thread library: untraced, with the floor, with PTT, with peers.

Every round runs each way once, in turn. The time of an operation is the time of its threads. The
work of tracers in other threads does not count, unless it needs the same processors.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peers import Peer, describe, last_line, usable
from support.common import HERE, Bar, Figures, compile_c, interleave, keep, scratch
from support.ways import BlackBox, Floor, Preloaded, Ptt, Way, ptt_levels

# A run takes much longer than the first tenth of a second, which touches the buffers first.
MANY = 12_000_000
LOOP = Ptt("2", "--stream-full-policy", "loop", name="PTT, level 2, flight recorder")
IDLE = [Preloaded(), Ptt("0")]
BOX = BlackBox()
LEVELS = ptt_levels("1", "2", "3")
# The allowed time of a run of a slow peer, and the ns per operation from which a peer is slow.
RUN_NS = 4e8
SLOW_NS = 5_000.0
FEWEST = 1_000
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Case:
    """An operation to time.

    Attributes:
        name: Its name in tables.
        program: The case of cases.c.
        threads: How many threads.
        domain: The kind of objects that it uses.
        count: Operations per thread and run.
        about_ns: The rough time of an operation.
        more: Ways to run only this case.
        flags: More compiler flags.
    """

    name: str
    program: str
    threads: int
    domain: str
    count: int
    about_ns: float
    more: tuple[Way, ...] = ()
    flags: tuple[str, ...] = ()

    def count_for(self, way: Way) -> int:
        """Return the number of operations of a run."""
        if not isinstance(way, Peer):
            return self.count
        return max(FEWEST, min(self.count, int(RUN_NS / (self.about_ns + way.slow_ns))))


GLIB = ("-DGLIB", "-l:libglib-2.0.so.0")
CASES = (
    Case("lock + unlock", "mutex", 1, "mutex", MANY, 12, (*IDLE, LOOP, BOX)),
    Case("lock + unlock, 2 threads", "mutex", 2, "mutex", MANY, 12, (LOOP, BOX)),
    Case("contended, 2 threads, 1 µs section", "contended", 2, "mutex", 150_000, 1_100, (BOX,)),
    Case("condition ping-pong, 2 threads", "cond", 2, "cond", 20_000, 10_000),
    Case("create + join", "create", 1, "thread", 10_000, 30_000),
    Case("sem_wait + sem_post", "sem", 1, "sem", MANY, 12),
    Case("rdlock + unlock", "rdlock", 1, "rwlock", MANY, 12),
    Case("wrlock + unlock", "wrlock", 1, "rwlock", MANY, 12),
    Case("barrier, 2 threads", "barrier", 2, "barrier", 20_000, 10_000),
    Case("GLib's lock + unlock", "gmutex", 1, "gmutex", MANY, 12, tuple(IDLE), GLIB),
)
PAIR, PAIRS_OF_TWO, CONTENDED = CASES[0].name, CASES[1].name, CASES[2].name
PAIR_OF_GLIB = CASES[-1].name


@dataclass(slots=True)
class Measured:
    """The results of one case.

    Attributes:
        wall: Wall time of each way, in ns per operation.
        cpu: Processor time of the working threads; other load does not change it much.
        lost: Lost events of each way that reports them.
        failed: The reason of the last failed run of each way.
    """

    wall: dict[str, Figures] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def added(self, name: str) -> float:
        """Return the ns that a way adds to an operation."""
        return self.wall[name].median - self.wall["untraced"].median

    def cpu_added(self, name: str) -> float:
        """Return the ns of processor time that a way adds to an operation."""
        return statistics.median(self.cpu[name]) - statistics.median(self.cpu["untraced"])

    def ratio(self, name: str) -> float:
        """Return the time of an operation, as a multiple of its untraced time."""
        return self.wall[name].median / self.wall["untraced"].median


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        rounds: How often each way runs.
        slow_rounds: How often each slow way runs.
        scale: Factor on the operations of a run.
    """

    rounds: int
    slow_rounds: int
    scale: float


def measure(case: Case, ways: Sequence[Way], effort: Effort, work: Path) -> Measured:
    """Run a case in all ways."""
    measured, runs, traces = Measured(), itertools.count(), work / "traces"

    def room() -> Path:
        """Return a directory for the output of a run.

        There is a file for every few threads. For a while after the removal of many files, ext4
        takes milliseconds to create a file. So the files stay to the end of the case.
        """
        if case.domain != "thread":
            return work
        path = traces / str(next(runs))
        path.mkdir(parents=True)
        return path

    def runner(way: Way) -> Callable[[], float | None]:
        flags = (*case.flags, *way.flags)
        program = work / f"cases{''.join(flags)}"
        if not program.exists():
            compile_c(HERE / "hotpath/cases.c", program, *flags)
        count = max(FEWEST, int(case.count_for(way) * effort.scale))
        command = [str(program), case.program, str(case.threads), str(count)]

        def run() -> float | None:
            try:
                with way.on(room()) as on:
                    wall, cpu = map(float, on.call(command, timeout=_LIMIT_S).stdout.split())
            except (subprocess.SubprocessError, ValueError) as error:
                if not isinstance(way, Peer):
                    raise
                said = last_line(str(getattr(error, "stderr", "")))
                measured.failed[way.name] = said or "the program printed nothing"
                return None
            measured.cpu.setdefault(way.name, []).append(cpu)
            if on.lost is not None:
                measured.lost[way.name] = measured.lost.get(way.name, 0) + on.lost
            return wall

        return run

    slow = [way.name for way in ways if isinstance(way, Peer) and way.slow_ns > SLOW_NS]
    measured.wall = interleave(
        {way.name: runner(way) for way in ways}, effort.rounds, slow, effort.slow_rounds
    )
    shutil.rmtree(traces, ignore_errors=True)
    return measured


def print_case(case: Case, measured: Measured, ways: Sequence[Way]) -> None:
    """Print one table."""
    print(f"\n{case.name}: ns, median (min … max), added, of that processor time, ratio")
    for way in ways:
        if way.name in measured.failed:
            print(f"{way.name:<30}failed: {measured.failed[way.name]}")
        if way.name not in measured.wall:
            continue
        note = ""
        if way.domains is not None and case.domain not in way.domains and way.name != "floor":
            note = "  records none of this"
        if measured.lost.get(way.name):
            note += f"  LOST {measured.lost[way.name]} events"
        print(
            f"{way.name:<30}{measured.wall[way.name]}  {measured.added(way.name):+11.2f}"
            f" {measured.cpu_added(way.name):+11.2f}  × {measured.ratio(way.name):8.3f}{note}"
        )


def bars(results: dict[str, Measured]) -> list[Bar]:
    """Return the first two bars, by the figures."""
    level, held = "PTT, level 2", []
    if PAIR in results:
        pair = results[PAIR]
        lttng = pair.added(level) / pair.added("LTTng") if "LTTng" in pair.wall else None
        floor = pair.added(level) / pair.added("floor")
        lost = float(sum(n for name, n in pair.lost.items() if name.startswith("PTT")))
        cpu = pair.cpu_added(level) / pair.cpu_added("floor")
        held += [
            Bar(1, "added to lock + unlock at level 2, of what LTTng adds", lttng, 1 / 15),
            Bar(1, "added to lock + unlock at level 2, × the floor", floor, 1.6),
            Bar(1, "the same in processor time of the thread", cpu, 1.6),
            Bar(1, "events lost by PTT in these runs", lost, 0),
        ]
    if PAIR_OF_GLIB in results:
        pair = results[PAIR_OF_GLIB]
        cpu = pair.cpu_added(level) / pair.cpu_added("floor")
        held.append(Bar(1, "added to GLib's lock + unlock, × its floor, processor time", cpu, 1.6))
    if CONTENDED in results:
        ratio = results[CONTENDED].ratio(level)
        held.append(Bar(2, "contended lock, 1 µs section, level 2, × untraced", ratio, 1.05))
    if PAIR in results and PAIRS_OF_TWO in results:
        one, two = (results[name].wall[LOOP.name].median for name in (PAIR, PAIRS_OF_TWO))
        held.append(
            Bar(2, "a traced pair on 2 threads, × on 1 thread, nothing drained", two / one, 1.1)
        )
    return held


def keep_all(
    results: dict[str, Measured], effort: Effort, floor: Floor, peers: list[Peer],
    reasons: dict[str, str],
) -> list[Bar]:  # fmt: skip
    """Keep the figures measured so far; return their bars."""
    verdicts = bars(results)
    each = list(results.items())
    unseen = {
        case.name: [p.name for p in peers if p.domains is not None and case.domain not in p.domains]
        for case in CASES
    }
    keep(
        "micro",
        {f"{case}/{way}": f for case, m in each for way, f in m.wall.items()},
        bars=verdicts,
        cpu={f"{case}/{way}": v for case, m in each for way, v in m.cpu.items()},
        lost={f"{case}/{way}": n for case, m in each for way, n in m.lost.items() if n},
        failed={f"{case}/{way}": why for case, m in each for way, why in m.failed.items()},
        rounds=effort.rounds,
        slow_rounds=effort.slow_rounds,
        operations={case.name: int(case.count * effort.scale) for case in CASES},
        unseen=unseen,
        ways={way.name: way.about for way in (floor, *IDLE, LOOP, *LEVELS)},
        peers=describe(peers),
        not_here=reasons,
    )
    return verdicts


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=9)
    parser.add_argument("--slow-rounds", type=int, default=3, help="rounds of slow peers")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer operations")
    parser.add_argument("--no-peers", action="store_true", help="only PTT and the floor")
    parser.add_argument("-k", "--only", default="", help="cases with this in their name")
    args = parser.parse_args()
    effort = Effort(3, 1, 1 / 3) if args.quick else Effort(args.rounds, args.slow_rounds, 1.0)
    work = scratch()
    results: dict[str, Measured] = {}
    verdicts: list[Bar] = []
    try:
        peers, reasons = ([], {}) if args.no_peers else usable(work)
        for name, why in reasons.items():
            print(f"{name} cannot run here: {why}")
        for name, facts in describe(peers).items():
            print(f"{name} {facts['version']}: {facts['settings']}")
        floor = Floor.build(work)
        for case in CASES:
            if args.only not in case.name:
                continue
            ways = [Way(), floor, *case.more, *LEVELS, *peers]
            ways = [way for way in ways if way.name != "floor" or case.domain in floor.domains]
            results[case.name] = measure(case, ways, effort, work)
            print_case(case, results[case.name], ways)
            verdicts = keep_all(results, effort, floor, peers, reasons)
    finally:
        shutil.rmtree(work)
    print()
    for bar in verdicts:
        print(bar)
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
