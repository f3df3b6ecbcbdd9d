#!/usr/bin/env python3
"""Compares the cost of posix_trace_event() with 16 bytes and of a time stamp with a store."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.common import HERE, ROOT, compile_c, environment, interleave, keep, scratch

RECORDED_NS = 40.0
IDLE_NS = 2.0


def main() -> int:
    """Measure, print, and fail if an event costs more than its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=15)
    parser.add_argument("--events", type=int, default=10_000_000)
    args = parser.parse_args()
    work = scratch()
    stage = Path(environment()["NPTLTRACE_NATIVE_DIR"])
    lib = stage / "lib"
    program = compile_c(
        HERE / "posix/event.c", work / "event",
        f"-I{stage / 'include'}", f"-L{lib}", "-lposixtrace", f"-Wl,-rpath,{lib}",
    )  # fmt: skip

    def timed(mode: str) -> Callable[[], float]:
        def run() -> float:
            command = [str(program), mode, str(args.events)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            return float(done.stdout)

        return run

    modes = {
        "loop and call": "bare",
        "ticks and store": "ticks",
        "clock_gettime and store": "floor",
        "no stream": "none",
        "filtered": "filtered",
        "recorded": "loop",
    }
    figures = interleave({name: timed(mode) for name, mode in modes.items()}, args.rounds)
    shutil.rmtree(work)
    bare = figures["loop and call"].median
    print("posix_trace_event() with 16 bytes, ns: median (min … max), without loop and call")
    for name, f in figures.items():
        print(f"{name:<24}{f}  {f.median - bare:8.2f}")
    recorded = figures["recorded"].median
    idle = max(figures["no stream"].median, figures["filtered"].median) - bare
    keep("posix", figures, recorded_ns=recorded, idle_ns=idle)
    print(
        f"recorded {recorded:.1f} ns (bound {RECORDED_NS}), "
        f"not recorded {idle:.2f} ns more than a call (bound {IDLE_NS})"
    )
    return int(recorded > RECORDED_NS or idle > IDLE_NS)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
