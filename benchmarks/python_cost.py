#!/usr/bin/env python3
"""Measures the cost of Python functions in stacks: `--python auto`, the default, beside `off`.

compute     four threads that want only the interpreter's lock.
queue       two threads put small objects into a queue, and two threads get them.
pool        a pool of four threads gets small tasks, one after the other.
ping-pong   two threads hand two locks to one another, ten calls down.
service     eight threads parse and write JSON, and share a dictionary under a lock.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import programs as whole
from support.common import Bar, Figures, keep, ratio_between, scratch_directory
from support.ways import Ptt
from support.workloads import PYTHON, PYTHON_QUEUE, Program

OFF, AUTO = (Ptt("2", "--python", how, name=f"--python {how}") for how in ("off", "auto"))
RATIO, BAR = 1.03, 4
PING_PONG = Path(__file__).resolve().parent.parent / "tests/programs/python_ping_pong.py"
POOL = """
import sys
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    for each in [pool.submit(hash, n) for n in range(int(sys.argv[1]))]: each.result()
"""
SERVICE = """
import json, sys, threading
lock, known = threading.Lock(), {}
def serve(first):
    for n in range(int(sys.argv[1])):
        said = json.loads(json.dumps({"key": (first + n) % 50, "words": ["some", "words"] * 20}))
        with lock:
            known[said["key"]] = known.get(said["key"], 0) + len(said["words"])
ts = [threading.Thread(target=serve, args=(n,)) for n in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
"""


def workloads(python: str, scale: float) -> list[Program]:
    """Return the programs to run."""

    def run(name: str, text: str, count: int) -> Program:
        return Program(name, (python, "-c", text, str(int(count * scale))))

    rounds = str(int(40_000 * scale))
    return [
        run("compute", PYTHON, 4_000_000),
        run("queue", PYTHON_QUEUE, 100_000),
        run("pool", POOL, 40_000),
        Program("ping-pong", (python, str(PING_PONG), rounds, "10")),
        run("service", SERVICE, 12_000),
    ]


def main() -> int:
    """Measure, print, keep; return 1 if a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=11)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor on the work of the programs"
    )
    parser.add_argument(
        "--interpreter", default=sys.executable, help="interpreter that runs the programs"
    )
    parser.add_argument("-k", default="", help="only programs with this in their name")
    args = parser.parse_args()
    kept: dict[str, Figures] = {}
    bars = []
    with scratch_directory() as directory:
        for program in workloads(args.interpreter, args.scale):
            if args.k not in program.name:
                continue
            measured = whole.measure(program, [OFF, AUTO], args.rounds, Path(directory))
            off, auto = measured.wall[OFF.name], measured.wall[AUTO.name]
            low, high = ratio_between(auto, off)
            cpu = [statistics.median(measured.cpu[way.name][1:]) for way in (OFF, AUTO)]
            ratio = auto.median / off.median
            events, lost = measured.events[AUTO.name], measured.lost.get(AUTO.name, 0)
            print(f"{program.name}: {off} s, with functions {auto} s, × {ratio:.4f} "
                  f"(95 %: {low:.3f} … {high:.3f}), processors × {cpu[1] / cpu[0]:.4f}, "
                  f"{events:,} events, {lost} lost", flush=True)  # fmt: skip
            kept |= {f"{program.name}/{way}": figures for way, figures in measured.wall.items()}
            bars.append(Bar(BAR, f"{program.name}, × --python off", ratio, RATIO))
    keep("python_cost", kept, bars=bars)
    for bar in bars:
        print(bar)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
