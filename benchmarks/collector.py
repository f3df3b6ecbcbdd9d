#!/usr/bin/env python3
"""Measures the cost of the collector: processor time per event, and its own memory.

Each time is the difference of two recordings of different length, divided by the difference of
their events. So start and end do not count. The recorder itself reports its processor time. Its
own memory is the largest of many samples of its memory without mapped files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from support.common import (
    HERE,
    LOOK_S,
    Bar,
    Figures,
    compile_c,
    environment,
    interleave,
    keep,
    own_mib,
    scratch,
)

NS_AN_EVENT, OWN_MIB = 5.0, 64.0
SHORT, LONG = 1_000_000, 9_000_000
# Runs `ptt`, and at the end prints its processor time without its children.
SELF = """
import atexit, json, pathlib, resource, runpy, sys

def write_usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    pathlib.Path(report).write_text(json.dumps([used.ru_utime, used.ru_stime]))

report = sys.argv.pop(1)
atexit.register(write_usage)
runpy.run_module("nptltrace", run_name="__main__", alter_sys=True)
"""


class Recorder:
    """Records a program and watches the recorder.

    Args:
        work: A directory for temporary files.
    """

    def __init__(self, work: Path) -> None:
        self.work = work
        self.env = environment()
        self.program = compile_c(HERE / "hotpath/cases.c", work / "cases")
        self.peak_mib = 0.0

    def run(self, threads: int, pairs: int) -> tuple[float, float, int]:
        """Record pairs of calls; return seconds in user and system mode, and the event count."""
        trace, report = self.work / "trace", self.work / "report"
        with subprocess.Popen(
            [sys.executable, "-c", SELF, str(report), "record", "-q", "--force", "-o", str(trace),
             "--", str(self.program), "mutex", str(threads), str(pairs)],
            env=self.env, stdout=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            while process.poll() is None:
                self.peak_mib = max(self.peak_mib, own_mib(process.pid))
                time.sleep(LOOK_S)
        session = json.loads((trace / "info" / "session.json").read_text(encoding="utf-8"))
        if process.returncode or sum(session["lost"].values()):
            sys.exit(f"recording ended with {process.returncode}, lost {session['lost']}")
        user, system = json.loads(report.read_text(encoding="utf-8"))
        return user, system, session["events"]

    def an_event(self, threads: int, scale: float) -> tuple[float, float]:
        """Return the ns per event in user and in system mode."""
        short, long = (self.run(threads, int(n * scale / threads)) for n in (SHORT, LONG))
        events = (long[2] - short[2]) / 1e9
        return (long[0] - short[0]) / events, (long[1] - short[1]) / events


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds, a third of the events")
    args = parser.parse_args()
    rounds, scale = (3, 1 / 3) if args.quick else (args.rounds, 1.0)
    work = scratch()
    system: dict[str, list[float]] = {}
    try:
        recorder = Recorder(work)

        def one(threads: int) -> float:
            user, kernel = recorder.an_event(threads, scale)
            system.setdefault(f"{threads} thread(s)", []).append(kernel)
            return user + kernel

        cases = {f"{n} thread(s)": lambda n=n: one(n) for n in (1, 2, 8)}
        figures = interleave(cases, rounds)
    finally:
        shutil.rmtree(work)
    print("processor time of the collector, ns an event: median (min … max), of it in the kernel")
    for name, f in figures.items():
        print(f"{name:<16}{f}  {Figures(tuple(system[name][1:])).median:8.2f}")
    worst = max(f.median for f in figures.values())
    bars = [
        Bar(6, "processor time of the collector, ns an event", worst, NS_AN_EVENT),
        Bar(6, "memory of the collector that is its own, MiB", recorder.peak_mib, OWN_MIB),
    ]
    for bar in bars:
        print(bar)
    keep("collector", figures, bars=bars, own_mib=recorder.peak_mib,
         system={name: values[1:] for name, values in system.items()}, rounds=rounds)  # fmt: skip
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
