"""Measures the trace-enabled thread library, off and at level 2, beside the unmodified library.

The figure is the processor time of one uncontended lock and unlock. The unmodified library is the
library of the system, unless --unmodified names another libc.so.6. Name a build of the same source
with the same compiler.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median

from support.common import HERE, PTT, Bar, compile_c, environment, interleave, keep, scratch

OFF = "off: ns a pair, trace-enabled / unmodified library"
OFF_ONE = "off, never a second thread: trace-enabled / unmodified library"
LEVEL_2 = "level 2: ns a pair, trace-enabled library / preloaded tracer alone"

STARTS = 11
"""How often a program is started for one figure: where the system happens to load it, and the
library, costs or saves it as much as several instructions do."""


def library() -> Path:
    """Return the directory of the trace-enabled library."""
    done = subprocess.run(
        [*PTT, "nptl", "path"], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return Path(done.stdout.strip())


def bare(program: Path, count: int, libc: Path | None, *more: str) -> Callable[[], float]:
    """Return a function that measures the program untraced, on a libc.so.6 or on the system's."""
    env = dict(os.environ)
    if libc is not None:
        env["LD_LIBRARY_PATH"] = str(libc.parent)

    def once() -> float:
        done = subprocess.run(
            [program, str(count), *more], env=env, stdout=subprocess.PIPE, text=True, check=True
        )
        return float(done.stdout)

    return lambda: median(once() for _ in range(STARTS))


def traced(program: Path, count: int, nptl: str, level: str, work: Path) -> Callable[[], float]:
    """Return a function that measures the program under `ptt record`."""
    options = ["-q", "--force", "-o", str(work / "trace"), "--nptl", nptl, "--level", level]

    def run() -> float:
        done = subprocess.run(
            [*PTT, "record", *options, "--", str(program), str(count)],
            env=environment(), stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    return run


def main() -> int:
    """Measure; fail if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--unmodified", metavar="LIBC", type=Path, help="libc.so.6 to compare with")
    args = parser.parse_args()
    prefix, work = library(), scratch()
    program = compile_c(HERE / "nptl" / "pairs.c", work / "pairs")
    enabled = prefix / "lib" / "libc.so.6"
    many, some = 2_000_000, 1_000_000
    try:
        figures = interleave(
            {
                "unmodified": bare(program, many, args.unmodified),
                "trace-enabled, off": bare(program, many, enabled),
                "unmodified, one thread": bare(program, many, args.unmodified, "single"),
                "trace-enabled, off, one thread": bare(program, many, enabled, "single"),
                "preloaded, level 2": traced(program, some, "stock", "2", work),
                "trace-enabled, level 2": traced(program, some, str(prefix), "2", work),
                "trace-enabled, level 4": traced(program, some, str(prefix), "4", work),
            },
            5 if args.quick else args.rounds,
        )
    finally:
        shutil.rmtree(work)
    for name, figure in figures.items():
        print(f"{name:<34} {figure} ns")
    off = figures["trace-enabled, off"].median / figures["unmodified"].median
    one = (
        figures["trace-enabled, off, one thread"].median / figures["unmodified, one thread"].median
    )
    level_2 = figures["trace-enabled, level 2"].median / figures["preloaded, level 2"].median
    # two runs of the same program differ by some percent if they write traces
    bars = [Bar(7, OFF, off, 1.05), Bar(7, OFF_ONE, one, 1.05), Bar(7, LEVEL_2, level_2, 1.05)]
    for bar in bars:
        print(bar)
    keep("nptl", figures, bars=bars)
    return 0 if all(bar.held for bar in bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
