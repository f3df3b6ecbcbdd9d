#!/usr/bin/env python3
"""Measures the cost of whole call stacks: `--stacks 16`, the default, beside `--stacks 0`.

frames      a lock and an unlock, 8 and 16 calls down. Each event has a stack.
contended   sections of 1 µs that two threads want.
programs    whole runs of x264, ffmpeg and memcached, if they are installed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from itertools import takewhile
from pathlib import Path

import programs as whole
from micro import CASES, CONTENDED, Case, Effort, measure, print_case
from support.common import Bar, Figures, keep, ratio_between, scratch_directory
from support.ways import Ptt, Way
from support.workloads import programs

NONE, SOME, ALL = (Ptt("2", "--stacks", how, name=f"--stacks {how}") for how in ("0", "16", "all"))
DEEP = {depth: Case(f"{depth} calls down", f"deep-{depth}", 1, "mutex", 300_000, 100)
        for depth in (8, 16)}  # fmt: skip
PROGRAMS = ("x264", "ffmpeg", "memcached")
EVENTS = 2  # of a pair
STACK_NS, FRAME_NS, CONTENDED_RATIO, PROGRAM_RATIO = 1_000.0, 40.0, 1.06, 1.01
BAR = 2


def frames(work: Path, rounds: int, kept: dict[str, Figures]) -> list[Bar]:
    """Measure the cost of a stack of 16 frames, and of a frame."""
    added = {}
    for depth, case in DEEP.items():
        measured = measure(case, [Way(), NONE, ALL], Effort(rounds, 3, 1.0), work)
        print_case(case, measured, [Way(), NONE, ALL])
        kept |= {f"{case.name}/{way}": figures for way, figures in measured.wall.items()}
        added[depth] = (measured.cpu_added(ALL.name) - measured.cpu_added(NONE.name)) / EVENTS
    frame = (added[16] - added[8]) / 8
    return [
        Bar(BAR, "a stack 16 calls down, ns of processor time", added[16], STACK_NS),
        Bar(BAR, "a frame of it, ns", frame, FRAME_NS),
    ]


def contended(work: Path, rounds: int, kept: dict[str, Figures]) -> Bar:
    """Measure the lock that two threads want all the time."""
    case = next(one for one in CASES if one.name == CONTENDED)
    ways = [Way(), NONE, SOME]
    measured = measure(case, ways, Effort(rounds, 3, 1.0), work)
    print_case(case, measured, ways)
    kept |= {f"{case.name}/{way}": figures for way, figures in measured.wall.items()}
    return Bar(
        BAR, "contended, 1 µs section, × untraced", measured.ratio(SOME.name), CONTENDED_RATIO
    )


def programs_beside(work: Path, rounds: int, kept: dict[str, Figures]) -> list[Bar]:
    """Measure whole programs."""
    bars = []
    wanted = takewhile(lambda one: one.name != "mariadb", programs(work, 0.33))
    for program in (one for one in wanted if one.name in PROGRAMS):
        measured = whole.measure(program, [Way(), NONE, SOME], rounds, work)
        without, with_stacks = measured.wall[NONE.name], measured.wall[SOME.name]
        low, high = ratio_between(with_stacks, without)
        cpu = [statistics.median(measured.cpu[way.name][1:]) for way in (NONE, SOME)]
        ratio = with_stacks.median / without.median
        print(f"{program.name}: × {ratio:.4f} (95 %: {low:.3f} … {high:.3f}) of --stacks 0, "
              f"processors × {cpu[1] / cpu[0]:.4f}", flush=True)  # fmt: skip
        kept |= {f"{program.name}/{way}": figures for way, figures in measured.wall.items()}
        bars.append(Bar(BAR, f"{program.name}, × --stacks 0", ratio, PROGRAM_RATIO))
    return bars


def main() -> int:
    """Measure, print, keep; return 1 if a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=11)
    parser.add_argument("--no-programs", action="store_true", help="leave out whole programs")
    args = parser.parse_args()
    kept: dict[str, Figures] = {}
    with scratch_directory() as directory:
        work = Path(directory)
        bars = [*frames(work, args.rounds, kept), contended(work, args.rounds, kept)]
        if not args.no_programs:
            bars += programs_beside(work, args.rounds, kept)
    keep("stack_cost", kept, bars=bars)
    for bar in bars:
        print(bar)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
