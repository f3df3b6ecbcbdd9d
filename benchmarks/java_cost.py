#!/usr/bin/env python3
"""Measures the cost of the agent in a Java virtual machine, for threads that contend for locks.

It compares a recording with the agent, a recording without the agent, and the untraced program.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.common import HERE, Bar, Figures, interleave, keep, ratio_between, scratch_directory
from support.ways import Ptt, Way

WITHOUT, WITH = Ptt("2", "--no-java", name="without the agent"), Ptt("2", name="with the agent")
RATIO = 1.03


def measure(work: Path, rounds: int, count: int) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Run the program in all ways; return wall time and processor time, in ns."""
    subprocess.run(["javac", "-d", work, HERE / "java/Contended.java"], check=True)
    command = ["java", "-Xshare:auto", "-cp", str(work), "Contended", str(count)]
    cpu: dict[str, list[float]] = {}

    def runner(way: Way) -> Callable[[], float]:
        def run() -> float:
            with way.on(work) as on:
                wall, used = map(float, on.call(command).stdout.split())
            cpu.setdefault(way.name, []).append(used)
            return wall

        return run

    wall = interleave({way.name: runner(way) for way in (Way(), WITHOUT, WITH)}, rounds)
    # the first round only warms up
    return wall, {name: Figures(tuple(values[1:])) for name, values in cpu.items()}


def main() -> int:
    """Measure, print, keep; return 1 if a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=11)
    parser.add_argument("-c", "--count", type=int, default=6000, help="sections a thread enters")
    args = parser.parse_args()
    if not shutil.which("javac"):
        print("there is no JDK")
        return 0
    with scratch_directory() as directory:
        measured = measure(Path(directory), args.rounds, args.count)
    bars = []
    for figures, what in zip(measured, ("time", "processor time"), strict=True):
        for name, values in figures.items():
            print(f"{name:<20}{values.median / 1e6:10.1f} ms of {what}")
        ours, theirs = figures[WITH.name], figures[WITHOUT.name]
        between = ratio_between(ours, theirs)
        ratio = ours.median / theirs.median
        bars.append(Bar(0, f"with the agent, {what}, × without", ratio, RATIO, between=between))
    keep("java_cost", measured[0], bars=bars)
    for bar in bars:
        print(bar)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
