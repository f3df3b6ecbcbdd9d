#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the cost of an attached recording with the cost of a preloaded tracer.

It measures the processor time of the program itself for a fixed load. In each round, every way has
a turn with a new process: `bare`, `preloaded` (ptt record), `attached` (ptt attach), and `left`,
the attached process after ptt detached. The recorders' processor time does not count: it is the
same.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.common import (
    HERE,
    PTT,
    Bar,
    Figures,
    compile_c,
    environment,
    have,
    keep,
    ratio_between,
    scratch_directory,
)
from support.workloads import free_port, wait_for_port

# Bound: processor time of the attached program, divided by its time with the preloaded tracer.
BOUND = 1.05
WAYS = ("bare", "preloaded", "attached", "left")


@dataclass
class Target:
    """A program and its load.

    Attributes:
        needs: Programs that must be installed.
        serve: The program; {port} stands for a port of its own.
        load: A command that gives the program a fixed amount of work; empty if a line of input
            does.
    """

    needs: tuple[str, ...]
    serve: str
    load: str = ""


TARGETS = {
    "locks": Target(("cc",), "{place}/locks"),
    "redis": Target(
        ("redis-server", "redis-benchmark"), "redis-server --port {port} --save  --io-threads 2",
        "redis-benchmark -p {port} -c 8 -n 150000 -q -t set",
    ),
    "memcached": Target(
        ("memcached", "memcslap"), "memcached -t 2 -u nobody -l 127.0.0.1 -p {port}",
        "memcslap -s 127.0.0.1:{port} --concurrency=2 --execute-number=40000",
    ),
}  # fmt: skip


def cpu_ns(pid: int) -> int:
    """Return the processor time of the threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def child(recorder: subprocess.Popen[bytes], name: str) -> int:
    """Return the process id of the program that a recorder started."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        place = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
        for pid in place.read_text(encoding="utf-8").split():
            # The name in the command, which may be a link to a file with another name.
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == name[:15]:
                return int(pid)
        time.sleep(0.02)
    raise SystemExit(f"{name} does not start")


class Running:
    """A running program.

    Args:
        target: The program and its load.
        place: A directory for this program alone.
        preloaded: Whether `ptt record` runs it.
    """

    def __init__(self, target: Target, place: Path, *, preloaded: bool) -> None:
        self._target, self._place = target, place
        self._port = free_port()
        words = {"port": str(self._port), "place": str(place)}
        # An empty word of the command is an empty argument.
        command = [word.format(**words) for word in target.serve.split(" ")]
        record = [*PTT, "record", "-q", "--force", "-o", str(place / "preloaded"), "--"]
        self._process = subprocess.Popen(
            [*record, *command] if preloaded else command, cwd=place, env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        name = Path(command[0]).name
        self.pid = child(self._process, name) if preloaded else self._process.pid
        if target.load:
            wait_for_port(self._port, self._process)
        else:
            self._work()

    def used(self) -> float:
        """Return the processor time of the load, in ms."""
        begin = cpu_ns(self.pid)
        self._work()
        return (cpu_ns(self.pid) - begin) / 1e6

    def end(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.communicate()

    def _work(self) -> None:
        if self._target.load:
            command = self._target.load.format(port=self._port).split()
            subprocess.run(command, check=True, capture_output=True)
            return
        if self._process.stdin and self._process.stdout:
            self._process.stdin.write(b"\n")
            self._process.stdout.readline()


@contextmanager
def attached(pid: int, trace: Path) -> Iterator[None]:
    """Attach to a process."""
    command = [*PTT, "attach", "--force", "-o", str(trace), str(pid)]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as ptt:
        line = ptt.stderr.readline() if ptt.stderr else ""
        if "recording process" not in line:
            raise SystemExit(line)
        try:
            yield
        finally:
            ptt.send_signal(signal.SIGINT)
            ptt.communicate()


def one_round(target: Target, place: Path, seen: dict[str, list[float]]) -> None:
    """Measure each way once."""
    with ExitStack() as stack:
        for way in ("bare", "preloaded"):
            program = Running(target, place, preloaded=way == "preloaded")
            stack.callback(program.end)
            program.used()
            seen[way].append(program.used())
            stack.pop_all().close()
        program = Running(target, place, preloaded=False)
        stack.callback(program.end)
        with attached(program.pid, place / "attached"):
            program.used()
            seen["attached"].append(program.used())
        seen["left"].append(program.used())


def main() -> int:
    """Measure; fail if attaching costs more than its bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", default=[*TARGETS], metavar="TARGET")
    parser.add_argument("-n", "--rounds", type=int, default=9, help="(default: %(default)s)")
    args = parser.parse_args()
    figures: dict[str, Figures] = {}
    bars: list[Bar] = []
    for name in args.targets:
        target = TARGETS[name]
        if not have(*target.needs):
            print(f"{name}: left out, not all is installed")
            continue
        with scratch_directory() as directory:
            place = Path(directory)
            place.chmod(0o755)
            if name == "locks":
                compile_c(HERE / "attached/locks.c", place / "locks")
            seen: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(args.rounds):
                one_round(target, place, seen)
        for way, values in seen.items():
            figures[f"{name}, {way}"] = Figures(tuple(values))
        ours, theirs = figures[f"{name}, attached"], figures[f"{name}, preloaded"]
        ratio = ours.median / theirs.median
        what = f"{name}: processor time attached / preloaded"
        bars.append(Bar(0, what, ratio, BOUND, between=ratio_between(ours, theirs)))
    for name, one in figures.items():
        print(f"{name:<24}{one} ms")
    for bar in bars:
        print(bar)
    keep("attach_cost", figures, bars=bars)
    return int(any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
