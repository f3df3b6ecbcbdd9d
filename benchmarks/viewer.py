#!/usr/bin/env python3
"""Measures the viewer's server on a big trace.

The server makes its levels of detail once. Then it starts anew for each round and answers the
requests of a page: the first picture, and ranges at all zooms, as if somebody panned and zoomed.
Processor time stands beside wall time: it is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
from support.common import PTT, Bar, Figures, environment, keep, own_mib, scratch
from support.made import make_trace

ROWS, PIXELS = 40, 1500
BUILT_S, FIRST_S, MEDIAN_MS, P99_MS, MEMORY_MIB = 60.0, 1.0, 50.0, 150.0, 4096.0
BAR = 8  # as `make bench` counts


@dataclass(slots=True)
class Server:
    """A running viewer.

    Attributes:
        process: Its process.
        asks: Sends requests to it.
        began: The time of its start.
    """

    process: subprocess.Popen[str]
    asks: httpx.Client
    began: float

    @classmethod
    def start(cls, trace: Path) -> Server:
        """Start a viewer."""
        began = time.perf_counter()
        process = subprocess.Popen(
            [*PTT, "ui", "--no-browser", str(trace)],
            env=environment(), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        line = process.stdout.readline() if process.stdout else ""
        base, _, token = line.strip().partition("/?token=")
        headers = {"Authorization": f"Bearer {token}"}
        return cls(process, httpx.Client(base_url=base, headers=headers, timeout=600), began)

    def get(self, path: str) -> bytes:
        """Return the answer to a request."""
        return self.asks.get(f"/api/{path}").raise_for_status().content

    def trace(self) -> dict[str, int]:
        """Return the server's facts about the open trace."""
        return dict(json.loads(self.get("trace")))

    def wait(self, key: str) -> float:
        """Wait until the trace is `ready` or `analysed`; return the seconds since the start."""
        with self.asks.stream("GET", "/api/live") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    state = json.loads(line[6:])
                    if state["message"]:
                        raise SystemExit(state["message"])
                    if state["analysed"] if key == "analysed" else state["detail"]["ready"]:
                        break
        return time.perf_counter() - self.began

    def cpu(self) -> float:
        """Return the processor seconds of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def peak_mib(self) -> float:
        """Return the peak of its memory, mapped files included."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def stop(self) -> None:
        """End the viewer."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def rows_of(server: Server, by: str) -> str:
    """Return the first rows that a page shows."""
    import pyarrow as pa

    table = pa.ipc.open_stream(server.get(f"rows?by={by}&limit={ROWS}")).read_all()
    return ",".join(map(str, table["row"].to_pylist()))


def first_picture(server: Server) -> float:
    """Ask for the first picture of a page; return the seconds since the start."""
    server.wait("ready")
    server.get("trace")
    server.get(f"overview?width={PIXELS}")
    for by in ("thread", "object"):
        server.get(f"spans?by={by}&rows={rows_of(server, by)}&width={PIXELS}")
    return time.perf_counter() - server.began


def moves(server: Server, count: int) -> tuple[list[float], float]:
    """Ask for ranges at all zooms; return the ms of each, and the mean processor ms."""
    chance = random.Random(1)  # noqa: S311 -- the same each time
    facts = server.trace()
    begin, end = facts["first_ns"], facts["end_ns"] + 1
    rows = {by: rows_of(server, by) for by in ("thread", "object")}
    times, cpu = [], server.cpu()
    for n in range(count):
        by = ("thread", "object")[n % 2]
        size = max(int((end - begin) * 10 ** chance.uniform(-7, 0)), 1)
        low = begin + int(chance.random() * (end - begin - size))
        path = f"spans?by={by}&rows={rows[by]}&from_ns={low}&to_ns={low + size}&width={PIXELS}"
        at = time.perf_counter()
        server.get(path)
        times.append((time.perf_counter() - at) * 1e3)
    return times, (server.cpu() - cpu) * 1e3 / count


def measured(trace: Path, rounds: int, count: int) -> dict[str, Figures]:
    """Return the figures of a trace."""
    server = Server.start(trace)
    built = server.wait("ready")
    cpu, memory, own = server.cpu(), server.peak_mib(), own_mib(server.process.pid)
    server.wait("analysed")
    server.stop()
    firsts, medians, highs, costs = [], [], [], []
    for _ in range(rounds):
        server = Server.start(trace)
        firsts.append(first_picture(server))
        times, cost = moves(server, count)
        medians.append(statistics.median(times))
        highs.append(sorted(times)[int(len(times) * 0.99)])
        costs.append(cost)
        server.stop()
    return {
        "built, s": Figures((built,)),
        "built, processor s": Figures((cpu,)),
        "built, MiB": Figures((memory,)),
        "built, MiB of its own": Figures((own,)),
        "first picture, s": Figures(tuple(firsts)),
        "answer, median ms": Figures(tuple(medians)),
        "answer, p99 ms": Figures(tuple(highs)),
        "answer, processor ms": Figures(tuple(costs)),
    }


def main() -> int:
    """Measure and print; return 1 if a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--moves", type=int, default=400)
    parser.add_argument("--trace", type=Path, help="an existing trace; its kept levels are removed")
    args = parser.parse_args()
    directory = scratch()
    try:
        trace = args.trace or directory / "big.ptt"
        if args.trace is None:
            make_trace(trace, args.events, args.threads, args.locks)
        shutil.rmtree(trace / ".ptt-view", ignore_errors=True)
        figures = measured(trace, args.rounds, args.moves)
        shutil.rmtree(trace / ".ptt-view", ignore_errors=True)
    finally:
        shutil.rmtree(directory)
    for name, figure in figures.items():
        print(f"{name:<28}{figure}")
    bars = [
        Bar(BAR, "levels of detail built, s", figures["built, s"].median, BUILT_S),
        Bar(BAR, "memory meanwhile, MiB", figures["built, MiB"].median, MEMORY_MIB),
        Bar(BAR, "first picture, s", figures["first picture, s"].median, FIRST_S),
        Bar(BAR, "answer, median ms", figures["answer, median ms"].median, MEDIAN_MS),
        Bar(BAR, "answer, p99 ms", figures["answer, p99 ms"].median, P99_MS),
    ]
    keep(
        "viewer", figures, bars=bars, events=args.events, threads=args.threads, locks=args.locks
    )  # fmt: skip
    for bar in bars:
        print(bar)
    return 0 if all(bar.held for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
