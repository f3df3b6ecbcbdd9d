#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the processor time of `ptt guard`, which watches processes with threads.

idle  all threads wait for work that never comes
busy  ten times a second, a thread of each process gets work

The guard may use more for a few minutes after it has begun: it looks once at each process. So the
measurement begins after `--settle`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.common import HERE, PTT, compile_c, environment, scratch_directory

BOUND_PERCENT = 0.2
TICKS_MS = {"idle": 0, "busy": 100}


def used_ns(pid: int) -> int:
    """Return the processor time of a process with one thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])


def percent(program: Path, args: argparse.Namespace, tick_ms: int) -> float:
    """Return the processor time of the guard, in per cent of a processor."""
    words = [str(program), str(args.processes), str(args.threads), str(tick_ms)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as watched:
        guard = subprocess.Popen(
            [*PTT, "guard", "-q", "--pid", str(watched.pid), "-o", str(program.parent / "report")],
            env=environment(),
        )
        try:
            time.sleep(args.settle)
            before_ns, began_ns = used_ns(guard.pid), time.monotonic_ns()
            time.sleep(args.seconds)
            used = used_ns(guard.pid) - before_ns
            return 100 * used / (time.monotonic_ns() - began_ns)
        finally:
            guard.terminate()
            guard.wait()
            os.killpg(watched.pid, signal.SIGKILL)


def main() -> int:
    """Print a line for each state; return 1 if the guard uses too much."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=10, help="of each process")
    parser.add_argument("--settle", type=float, default=300.0, help="in s")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the measurement")
    args = parser.parse_args()
    worst = 0.0
    with scratch_directory() as place:
        program = compile_c(HERE / "guarded" / "many.c", Path(place) / "many")
        for name, tick_ms in TICKS_MS.items():
            share = percent(program, args, tick_ms)
            worst = max(worst, share)
            what = f"{args.processes} processes, {args.processes * args.threads} threads"
            print(f"{name}  {what}: {share:.3f} % of a processor (bound {BOUND_PERCENT} %)")
    return int(worst > BOUND_PERCENT)


if __name__ == "__main__":
    sys.exit(main())
