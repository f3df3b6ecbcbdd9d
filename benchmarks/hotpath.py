#!/usr/bin/env python3
"""Cost of an uncontended lock + unlock, beside the floor of a time stamp and a store an event."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from common import HERE, PTT, ROOT, compile_c, environment, interleave, keep, scratch

RATIO = 1.6
IDLE_NS = 3.0


def main() -> int:
    """Measure, print, and fail where the ratio to the floor or the idle cost is over its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    work = scratch()
    pairs = str(compile_c(HERE / "hotpath/pairs.c", work / "pairs"))
    floor = str(compile_c(HERE / "hotpath/floor.c", work / "floor.so", "-shared", "-fPIC"))
    env = environment()
    tracer = str(Path(env["NPTLTRACE_NATIVE_DIR"]) / "lib/libnptltrace.so")

    def timed(command: list[str], **more: str) -> float:
        out = subprocess.run(
            [*command, pairs, str(args.threads), str(args.pairs)],
            env={**env, **more}, check=True, capture_output=True, text=True,
        )  # fmt: skip
        if command and " (0 lost" not in out.stderr:
            sys.exit(f"events were lost: {out.stderr}")
        return float(out.stdout)

    def record(level: str) -> Callable[[], float]:
        trace = str(work / "trace")
        return lambda: timed([*PTT, "record", "--force", "-l", level, "-o", trace, "--"])

    cases: dict[str, Callable[[], float]] = {
        "bare": lambda: timed([]),
        "floor": lambda: timed([], LD_PRELOAD=floor),
        "preloaded, no handler": lambda: timed([], LD_PRELOAD=tracer),
        "level 0": record("0"),
        "level 1": record("1"),
        "level 2": record("2"),
        "level 3": record("3"),
    }
    figures = interleave(cases, args.rounds)
    shutil.rmtree(work)
    bare = figures["bare"].median
    base = figures["floor"].median - bare
    print(
        f"uncontended lock + unlock, {args.threads} thread(s), ns a pair: "
        "median (min … max), added, × floor"
    )
    for name, f in figures.items():
        print(f"{name:<24}{f}  {f.median - bare:+8.2f}  {(f.median - bare) / base:6.2f}")
    ratio = (figures["level 2"].median - bare) / base
    idle = max(figures["preloaded, no handler"].median, figures["level 0"].median) - bare
    keep(f"hotpath-{args.threads}", figures, ratio=ratio, idle_ns=idle)
    print(
        f"level 2 adds {ratio:.2f} × the floor (bound {RATIO}); "
        f"idle adds {idle:.2f} ns (bound {IDLE_NS})"
    )
    return int(ratio > RATIO or idle > IDLE_NS)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
