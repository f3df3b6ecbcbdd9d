#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the time of `ptt hang`, and its cost for the process that it looks at.

look      a thousand threads in a deadlock, linked dynamically and statically. Measures the first
          look in a fresh interpreter with imported modules, which reads all files for names. Then
          it measures the next look. `cpu` is the processor time of the first look; other programs
          do not change it much. Beside them stand the whole command, as users wait for it, and the
          interpreter alone.
disturb   latencies of servers in three states: nobody looks, `ptt hang` looks at another process
          again and again (which takes the same processor time), and it looks at the server.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.common import (
    HERE,
    PTT,
    Bar,
    Figures,
    compile_c,
    environment,
    have,
    interleave,
    keep,
    scratch_directory,
)
from support.workloads import free_port, wait_for_port

BOUND_MS = 50.0
WAYS = {"dynamic": (), "static": ("-static",)}
FORMS = {"pair": "two in a deadlock, all others behind them", "ring": "each behind the next"}
SERVERS = {
    "redis": ["redis-server", "--save", "", "--port"],
    "memcached": ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p"],
}
LOOK = """
import json, sys, time
import symbolic.debuginfo, symbolic.symcache, tomllib, importlib.resources
from nptltrace.hang.picture import look
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.hang.verdicts import verdicts
from nptltrace.trace.symbols.lookup import Symbols
took = []
for _ in range(2):
    began, used = time.perf_counter(), time.process_time()
    process = Process(int(sys.argv[1]))
    names = Names(Symbols(OneProcess(process)))
    picture = look(process, names)
    found = verdicts(process, picture, names)
    took.append((1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - used)))
print(json.dumps([took, len(picture.threads), [one.kind for one in found]]))
"""


@contextmanager
def hung(program: Path, threads: int, form: str) -> Iterator[int]:
    """Run a program until its threads hang; yield its process id."""
    command = [str(program), str(threads), form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise SystemExit(f"{program} does not start")
        time.sleep(0.5)  # released threads are asleep by then
        try:
            yield process.pid
        finally:
            process.kill()


def looked_at(pid: int, threads: int, seen: dict[str, list[float]]) -> float:
    """Look in a fresh interpreter; return milliseconds, and add the other times to `seen`."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(pid)],
        env=environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    ((first, cpu), (again, _)), count, kinds = json.loads(done.stdout)
    if count != threads + 1 or kinds != ["deadlock"]:
        raise SystemExit(f"{count} threads and {kinds} were seen")
    seen.setdefault("again", []).append(again)
    seen.setdefault("cpu", []).append(cpu)
    return float(first)


def timed(command: list[str]) -> Callable[[], float]:
    """Return a function that runs a command and returns its milliseconds."""

    def run() -> float:
        began = time.perf_counter()
        subprocess.run(command, env=environment(), check=False, stdout=subprocess.DEVNULL)
        return 1e3 * (time.perf_counter() - began)

    return run


def looks(work: Path, rounds: int, threads: int) -> tuple[dict[str, Figures], list[Bar]]:
    """Measure looks and commands at programs that hang."""
    figures = interleave({"python -c pass": timed([sys.executable, "-c", "pass"])}, rounds)
    bars = []
    for way, flags in WAYS.items():
        program = compile_c(HERE / "hang/many.c", work / way, "-g", *flags)
        for form in FORMS:
            seen: dict[str, list[float]] = {}
            with hung(program, threads, form) as pid:

                def first(pid: int = pid, seen: dict[str, list[float]] = seen) -> float:
                    return looked_at(pid, threads, seen)

                cases = {"first look": first, "ptt hang": timed([*PTT, "hang", str(pid)])}
                measured = interleave(cases, rounds)
            measured |= {name: Figures(tuple(values)) for name, values in seen.items()}
            figures |= {f"{way}, {form}: {name}": one for name, one in measured.items()}
            what = f"first look at {threads} threads, {way}, {form} (ms)"
            bars.append(Bar(0, what, measured["first look"].median, BOUND_MS))
    return figures, bars


def latencies(port: int, server: str, pid: int | None, count: int) -> tuple[float, float]:
    """Return the 50th and 99th percentile of a server's latency, in milliseconds.

    Args:
        port: The port of the server.
        server: The name of the server.
        pid: A process to look at meanwhile; None waits for the same time without looks.
        count: How many looks.
    """
    client = subprocess.Popen(
        [sys.executable, HERE / "attached/client.py", server, str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(0.2)
    if pid is None:
        time.sleep(0.1 * count)
    else:
        for _ in range(count):
            timed([*PTT, "hang", str(pid)])()
    said = json.loads(client.communicate()[0])
    if said["wrong"]:
        raise SystemExit(f"{server}: {said['wrong'][0]}")
    return said["ms"][0], said["ms"][1]


def disturbed(work: Path, rounds: int, count: int) -> dict[str, Figures]:
    """Measure latencies of servers while `ptt hang` looks at them."""
    figures: dict[str, Figures] = {}
    for name, command in SERVERS.items():
        if not have(command[0]):
            print(f"{name}: left out, it is not installed")
            continue
        ports = [free_port(), free_port()]
        servers = [
            subprocess.Popen([*command, str(port)], cwd=work, stdout=subprocess.DEVNULL)
            for port in ports
        ]
        try:
            for port, server in zip(ports, servers, strict=True):
                wait_for_port(port, server)
            pids = {"nobody looks": None, "at another": servers[1].pid, "at it": servers[0].pid}
            upper: dict[str, list[float]] = {case: [] for case in pids}

            def run(case: str) -> Callable[[], float]:
                def once() -> float:
                    median, p99 = latencies(ports[0], name, pids[case], count)  # noqa: B023 -- used within the turn
                    upper[case].append(p99)  # noqa: B023 -- as above
                    return median

                return once

            measured = interleave({case: run(case) for case in pids}, rounds)
        finally:
            for server in servers:
                server.kill()
                server.wait()
        for case, one in measured.items():
            figures[f"{name}, {case}: p50"] = one
            figures[f"{name}, {case}: p99"] = Figures(tuple(upper[case][1:]))
    return figures


def main() -> int:
    """Measure; fail if a look takes too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", choices=("look", "disturb"), default=["look", "disturb"])
    parser.add_argument("-n", "--rounds", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument(
        "--count", type=int, default=100, help="looks in a row (default: %(default)s)"
    )
    args = parser.parse_args()
    figures: dict[str, Figures] = {}
    bars: list[Bar] = []
    with scratch_directory() as directory:
        if "look" in args.part:
            figures, bars = looks(Path(directory), args.rounds, args.threads)
        if "disturb" in args.part:
            figures |= disturbed(Path(directory), args.rounds, args.count)
    for name, one in figures.items():
        print(f"{name:<40}{one} ms")
    for bar in bars:
        print(bar)
    keep("hang", figures)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
