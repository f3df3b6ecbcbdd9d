#!/usr/bin/env python3
"""Compares whole programs traced and untraced: wall time, draining included, and processor time.

Every recording has a fixed cost, whatever its length. The benchmark measures this cost on `true`
and reports it separately. The bounds apply to the rest. For a server, the benchmark times the run
of its client.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers import PEERS, Lttng, Peer, describe
from support.common import (
    KEPT,
    Bar,
    Figures,
    interleave,
    keep,
    machine,
    now,
    ratio_between,
    scratch,
)
from support.ways import Run, Way, ptt_levels
from support.workloads import Program, programs, silently, wait_for_port

NOTHING = Program("true", ("true",))
FIXED_ROUNDS = 15
STOP_S = 60.0


@dataclass(slots=True)
class Measured:
    """The results of one program.

    Attributes:
        wall: Seconds of each way.
        cpu: Processor seconds, tracer included.
        lost: Events lost.
        events: Events of the last run.
    """

    wall: dict[str, Figures] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)

    @property
    def noise(self) -> float:
        """Half the spread of the untraced runs, divided by their median."""
        bare = self.wall["untraced"]
        if len(bare.values) < 2:
            return 0.0
        low, _, high = statistics.quantiles(bare.values, n=4, method="inclusive")
        return (high - low) / bare.median

    def ratio(self, name: str, fixed: float = 0.0) -> float:
        """Return the time without the fixed cost, as a multiple of the untraced time."""
        return (self.wall[name].median - fixed) / self.wall["untraced"].median

    def between(self, name: str, fixed: float = 0.0) -> tuple[float, float]:
        """Return the bounds of this ratio, with a confidence of 95 %."""
        low, high = ratio_between(self.wall[name], self.wall["untraced"], fixed)
        return round(low, 3), round(high, 3)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        rounds: How often each way runs.
        scale: How long programs run, 1 for about ten seconds.
    """

    rounds: int
    scale: float


def timed(program: Program, run: Run, errors: Path) -> tuple[float, float]:
    """Run a program once; return its wall time (for a server, of its client) and processor time."""
    env, command = {**os.environ, **run.env}, run.wrap(program.command)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with errors.open("w") as err:
        began = time.monotonic()
        server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=err)
        try:
            if program.client:
                wait_for_port(program.port, server)
                began = time.monotonic()
                silently(*program.client)
                seconds = time.monotonic() - began
                server.terminate()
            server.wait(None if not program.client else STOP_S)
        except BaseException:
            server.kill()
            server.wait()
            raise
        if not program.client:
            seconds = time.monotonic() - began
            if server.returncode:
                said = errors.read_text(errors="replace").strip()
                raise SystemExit(f"{' '.join(command)}: {server.returncode}: {said}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def measure(program: Program, ways: list[Way], rounds: int, work: Path) -> Measured:
    """Interleave the ways to run a program."""
    measured = Measured()

    def runner(way: Way) -> Callable[[], float]:
        def once() -> float:
            with way.on(work) as run:
                wall, cpu = timed(program, run, work / "stderr")
            measured.cpu.setdefault(way.name, []).append(cpu)
            if run.lost is not None:
                measured.lost[way.name] = measured.lost.get(way.name, 0) + run.lost
            if run.events is not None:
                measured.events[way.name] = run.events
            return wall

        return once

    measured.wall = interleave({way.name: runner(way) for way in ways}, rounds)
    return measured


def print_program(program: Program, measured: Measured, fixed: dict[str, float]) -> None:
    """Print one table."""
    bare = statistics.median(measured.cpu["untraced"][1:])
    print(f"{program.name}: untraced {measured.wall['untraced']} s, noise {measured.noise:.1%}")
    for name, f in measured.wall.items():
        if name == "untraced":
            continue
        cpu = statistics.median(measured.cpu[name][1:]) / bare
        events = f"  {measured.events[name]:,} events" if name in measured.events else ""
        lost = f"  LOST {measured.lost[name]}" if measured.lost.get(name) else ""
        once = 0.0 if program.client else fixed.get(name, 0.0)
        low, high = measured.between(name, once)
        print(
            f"    {name:<18}{f} s  × {measured.ratio(name):.3f}, without the fixed cost × "
            f"{measured.ratio(name, once):.3f} (95 %: {low:.3f} … {high:.3f}), "
            f"processors × {cpu:.3f}{events}{lost}",
            flush=True,
        )


def bars(program: Program, measured: Measured, fixed: dict[str, float]) -> list[Bar]:
    """Return the bars of a program."""
    held = []
    for name in ("PTT, level 1", "PTT, level 2"):
        if program.bound is None:
            break
        bound = program.bound if name == "PTT, level 2" else 1.01
        noise = measured.noise if program.noisy or bound == 1.01 else 0.0
        once = 0.0 if program.client else fixed[name]
        what = f"{program.name}, {name[5:]}, × untraced" + (" (bound with noise)" if noise else "")
        held.append(
            Bar(3, what, round(measured.ratio(name, once), 3), round(bound + noise, 3),
                between=measured.between(name, once))
        )  # fmt: skip
    lost = sum(n for name, n in measured.lost.items() if name.startswith("PTT"))
    held.append(Bar(3, f"{program.name}, events lost by PTT", float(lost), 0))
    return held


def kept_before() -> dict[str, Any]:
    """Return the kept figures; nothing if they are of another machine."""
    try:
        kept: dict[str, Any] = json.loads((KEPT / "programs.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return kept if kept["machine"] == machine() and "runs" in kept else {}


def keep_all(
    results: dict[str, Measured], verdicts: list[Bar], fixed: dict[str, float], effort: Effort,
    tried: dict[Peer, str],
) -> None:  # fmt: skip
    """Keep the figures measured so far."""
    run = {"at": now(), "rounds": effort.rounds, "scale": effort.scale, "fixed": fixed}
    keep(
        "programs",
        {f"{name}/{way}": f for name, m in results.items() for way, f in m.wall.items()},
        bars=verdicts,
        cpu={f"{name}/{way}": v[1:] for name, m in results.items() for way, v in m.cpu.items()},
        lost={f"{name}/{way}": n for name, m in results.items() for way, n in m.lost.items()},
        events={f"{name}/{way}": n for name, m in results.items() for way, n in m.events.items()},
        noise={name: m.noise for name, m in results.items()},
        runs=dict.fromkeys(results, run),
        peers=describe([peer for peer, why in tried.items() if not why]),
        not_here={peer.name: why for peer, why in tried.items() if why},
    )  # fmt: skip


def add_earlier(earlier: dict[str, Any], measured: Collection[str]) -> None:
    """Add the earlier figures of workloads that this run did not measure to the kept figures."""
    path = KEPT / "programs.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    for part in ("figures", "cpu", "lost", "events", "noise", "runs"):
        others = {k: v for k, v in earlier[part].items() if k.partition("/")[0] not in measured}
        kept[part] = others | kept[part]
    others = [bar for bar in earlier["bars"] if bar["what"].partition(",")[0] not in measured]
    kept["bars"] = others + kept["bars"]
    kept["peers"] = earlier["peers"] | kept["peers"]
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure every workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="3 rounds of a third of the length")
    parser.add_argument("--scale", type=float, default=1.0, help="1: about ten seconds a run")
    parser.add_argument("--all-peers", action="store_true", help="not LTTng only")
    parser.add_argument(
        "only", nargs="*", help="names of workloads; other workloads keep their figures"
    )
    args = parser.parse_args()
    effort = Effort(3, args.scale / 3) if args.quick else Effort(args.rounds, args.scale)
    work = scratch()
    earlier = kept_before() if args.only else {}
    results: dict[str, Measured] = {}
    verdicts: list[Bar] = []
    try:
        wanted = [make() for make in PEERS if make is Lttng or (args.all_peers and make.programs)]
        tried = {peer: peer.why_not(work) for peer in wanted}
        for peer, why in tried.items():
            print(f"{peer.name} cannot run here: {why}" if why else f"{peer.name} runs beside")
        peers = [peer for peer, why in tried.items() if not why]
        ways: list[Way] = [Way(), *ptt_levels("1", "2", "3"), *peers]
        nothing = measure(NOTHING, ways, FIXED_ROUNDS, work)
        bare = nothing.wall["untraced"].median
        fixed = {name: f.median - bare for name, f in nothing.wall.items()}
        print("fixed cost, s:", ", ".join(f"{name} {s:.3f}" for name, s in fixed.items()))
        for program in programs(work, effort.scale):
            if args.only and program.name not in args.only:
                continue
            measured = results[program.name] = measure(program, ways, effort.rounds, work)
            print_program(program, measured, fixed)
            verdicts += bars(program, measured, fixed)
            keep_all(results, verdicts, fixed, effort, tried)
            if earlier:
                add_earlier(earlier, results)
    finally:
        shutil.rmtree(work)
    for bar in verdicts:
        print(bar)
    if missing := sorted(set(args.only) - set(results)):
        print(f"no such workload here: {', '.join(missing)}", file=sys.stderr)
        return 2
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
