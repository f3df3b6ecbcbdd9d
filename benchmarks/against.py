#!/usr/bin/env python3
"""Whether this checkout is slower than another one, such as an earlier version.

    git worktree add ../earlier COMMIT && make -C ../earlier dev
    python benchmarks/against.py ../earlier

Single operations and whole programs run untraced and under both checkouts in turn. Both checkouts
read the same trace in turn. A ratio below 1 means that this checkout is faster. It counts as slower
if the ratio, with a confidence of 95 %, is above the allowed cost of a change.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import growth
import micro
import programs
from support.common import (
    ROOT,
    Figures,
    environment,
    interleave,
    keep,
    ratio_between,
    scratch_directory,
    used_by,
)
from support.made import make_trace
from support.ways import Ptt, Way
from support.workloads import programs as all_programs

THIS, OTHER, UNTRACED = "this", "other", "untraced"
# Allowed cost of a change, as a ratio: chance shifts some of the three dozen comparisons.
ALLOWED = 1.02
# With fewer rounds an interval says nothing.
FEWEST_ROUNDS = 7
MADE_THREADS, MADE_LOCKS = 8, 64


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        rounds: How often each checkout runs.
        scale: How long programs run, 1 for about ten seconds.
        events: Events of the trace to read.
        only: Text that the name of a comparison must contain.
    """

    rounds: int
    scale: float
    events: int
    only: str


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of both checkouts.

    Attributes:
        name: The name of the comparison.
        took: The cost of each round, for each checkout and maybe untraced: one unit for all.
    """

    name: str
    took: Mapping[str, Figures]

    @property
    def between(self) -> tuple[float, float]:
        """The bounds of the ratio of the two, with a confidence of 95 %."""
        return ratio_between(self.took[THIS], self.took[OTHER])

    @property
    def slower(self) -> bool:
        """Whether this checkout is slower, and not by chance."""
        return self.between[0] > ALLOWED

    def __str__(self) -> str:
        this, other = (self.took[name].median for name in (THIS, OTHER))
        low, high = self.between
        verdict = "  SLOWER" if self.slower else "  faster" if high < 1 else ""
        beside = ""
        if UNTRACED in self.took:
            bare = self.took[UNTRACED].median
            beside = f", × untraced {this / bare:.3f} and {other / bare:.3f}"
        return (
            f"{self.name:<44} {this / other:.3f} ({low:.3f} … {high:.3f})"
            f"  {this:.5g} and {other:.5g}{beside}{verdict}"
        )


def recording(tree: Path) -> list[Way]:
    """Return the ways to run operations and programs."""
    return [Way(), Ptt("2", name=THIS), Ptt("2", name=OTHER, tree=tree)]


def operations(tree: Path, effort: Effort, work: Path) -> Iterator[Compared]:
    """Compare single operations: ns each."""
    much = micro.Effort(effort.rounds, slow_rounds=0, scale=1.0)
    for case in micro.CASES:
        if effort.only in case.name:
            yield Compared(case.name, micro.measure(case, recording(tree), much, work).wall)


def whole_programs(tree: Path, effort: Effort, work: Path) -> Iterator[Compared]:
    """Compare whole programs: seconds, and processor seconds."""
    for program in all_programs(work, effort.scale):
        if effort.only not in program.name:
            continue
        measured = programs.measure(program, recording(tree), effort.rounds, work)
        yield Compared(program.name, measured.wall)
        # The first round only warms up.
        cpu = {name: Figures(tuple(values[1:])) for name, values in measured.cpu.items()}
        yield Compared(f"{program.name}, processor time", cpu)


def reading(tree: Path, effort: Effort, work: Path) -> Iterator[Compared]:
    """Compare commands that read a whole trace: processor seconds."""
    trace, out = work / "trace", work / "out"
    make_trace(trace, effort.events, MADE_THREADS, MADE_LOCKS)
    make_trace(work / growth.OTHER, effort.events // 100, MADE_THREADS, MADE_LOCKS)

    def reader(command: list[str], where: Path) -> Callable[[], float]:
        def run() -> float:
            cpu = used_by(command, environment(where)).cpu
            growth.remove(out)
            return cpu

        return run

    for reading in growth.readings():
        if effort.only in reading.name:
            command = reading.command(str(trace), str(out))
            both = {THIS: reader(command, ROOT), OTHER: reader(command, tree)}
            yield Compared(f"{reading.name}, processor time", interleave(both, effort.rounds))


PARTS = {"operations": operations, "programs": whole_programs, "reading": reading}


def main() -> int:
    """Make the comparisons of the command line; fail if this checkout is slower in any of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path, help="the other checkout, built with `make dev`")
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("-n", "--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=0.5, help="of programs; 1: ten seconds each")
    parser.add_argument("--events", type=int, default=3_000_000, help="of the trace to read")
    parser.add_argument("-k", "--only", default="", help="comparisons with this in their name")
    args = parser.parse_intermixed_args()
    tree = args.tree.resolve()
    if not (tree / "build/dev/stage").is_dir():
        parser.error(f"{tree} has no build/dev/stage: run `make dev` there")
    if args.rounds < FEWEST_ROUNDS:
        parser.error(f"{args.rounds} rounds are too few: at least {FEWEST_ROUNDS}")
    if unknown := set(args.part) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    effort = Effort(args.rounds, args.scale, args.events, args.only)
    comparisons: list[Compared] = []
    for part in args.part or PARTS:
        print(f"{part}: this / other (95 %), medians of this and of other", flush=True)
        with scratch_directory() as work:
            for compared in PARTS[part](tree, effort, Path(work)):
                print(f"  {compared}", flush=True)
                comparisons.append(compared)
    figures = {f"{c.name}/{name}": f for c in comparisons for name, f in c.took.items()}
    keep("against", figures, other=str(tree), rounds=args.rounds)
    if comparisons:
        ratios = [c.took[THIS].median / c.took[OTHER].median for c in comparisons]
        print(f"{len(comparisons)} compared, the median ratio is {statistics.median(ratios):.3f}")
    return int(any(compared.slower for compared in comparisons))


if __name__ == "__main__":
    sys.exit(main())
