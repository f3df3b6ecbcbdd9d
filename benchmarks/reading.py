#!/usr/bin/env python3
"""Measures reading of traces, beside babeltrace2 on the same trace: counts, columns, text, seeks.

The times of Python code do not include the start of Python; the times of commands include their
start. bt2, the Python module of babeltrace2, has three tasks. It reads only the messages; it reads
the event's own numbers; and it reads a full row of our columns. A full row has time, process,
thread, processor, type, object, call site and the numbers. bt2 reads only the first hundred
thousand events.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.common import (
    PTT,
    ROOT,
    Bar,
    Figures,
    Used,
    environment,
    have,
    interleave,
    keep,
    scratch,
    used_by,
)
from support.made import make_trace

sys.path.insert(0, str(ROOT / "src"))

PAGE = 50
SEEKS = 200
BT2_EVENTS = 100_000
SYSTEM_PYTHON = "/usr/bin/python3"

COUNT = """
import os, sys, time
from nptltrace._binding import libpttread
from nptltrace.api import Traceset

began = time.perf_counter()
found, _, _ = libpttread.count(
    Traceset(sys.argv[1]).reader, workers=len(os.sched_getaffinity(0)), objects=False)
print(sum(row.events for row in found), time.perf_counter() - began)
"""
COLUMNS = """
import sys, time
from nptltrace.api import Traceset

began = time.perf_counter()
rows = sum(t.num_rows for t in Traceset(sys.argv[1]).batches(fields=sys.argv[2:]))
print(rows, time.perf_counter() - began)
"""
BT2 = """
import itertools, sys, time
import bt2

messages = bt2.TraceCollectionMessageIterator(sys.argv[1])
events = (m for m in messages if type(m) is bt2._EventMessageConst)
count = int(sys.argv[2])

def nothing(message):
    pass

def own(message):
    event = message.event
    payload = event.payload_field
    row = [event.name]
    for name in payload or ():
        if name in wanted:
            row.append(int(payload[name]))

def row(message):
    event = message.event
    packet, context = event.packet.context_field, event.common_context_field
    row = [message.default_clock_snapshot.ns_from_origin, event.name, event.cls.id,
           int(packet["pid"]), int(packet["tid"]), int(context["cpu"]), int(context["object"]),
           int(context["site"])]
    payload = event.payload_field
    for name in payload or ():
        if name in wanted:
            row.append(int(payload[name]))

wanted = {"owner", "wait_ns"}
work = {"messages": nothing, "own": own, "row": row}[sys.argv[3]]
next(events)
began = time.perf_counter()
n = 0
for message in itertools.islice(events, count):
    work(message)
    n += 1
print(n, time.perf_counter() - began)
"""


@dataclass(slots=True)
class Reader:
    """A reader of a trace.

    Attributes:
        command: The command to run.
        env: The environment of the command.
        prints: Whether the command prints the number of events and its own time.
        used: The cost of each run.
    """

    command: list[str]
    env: dict[str, str] = field(default_factory=environment)
    prints: bool = False
    used: list[Used] = field(default_factory=list)

    def rate(self, events: int) -> float:
        """Run the reader; return its speed, in million events per second."""
        used = used_by(self.command, self.env, read=self.prints)
        self.used.append(used)
        if not self.prints:
            return events / used.seconds / 1e6
        count, seconds = used.printed.split()
        if int(count) not in {events, BT2_EVENTS}:
            raise SystemExit(f"{count} events were read of {events}")
        return int(count) / float(seconds) / 1e6

    @property
    def own_mib(self) -> float:
        """The peak of the reader's own memory, in MiB."""
        return max(used.own_mib for used in self.used)


def ours(trace: Path) -> dict[str, Reader]:
    """Return the readers of PTT."""
    return {
        "count": Reader([sys.executable, "-c", COUNT, str(trace)], prints=True),
        "columns": Reader([sys.executable, "-c", COLUMNS, str(trace)], prints=True),
        "columns and two fields": Reader(
            [sys.executable, "-c", COLUMNS, str(trace), "wait_ns", "owner"], prints=True
        ),
        "ptt stat": Reader([*PTT, "stat", str(trace)]),
        "ptt view": Reader([*PTT, "view", str(trace)]),
    }


def theirs(trace: Path) -> dict[str, Reader]:
    """Return the installed readers of babeltrace2."""
    readers = {}
    # Its Python module belongs to the system's Python, and must not find our modules.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if have("babeltrace2"):
        counter = [
            "babeltrace2", "run", "--component=in:source.ctf.fs", f'--params=inputs=["{trace}"]',
            "--component=mux:filter.utils.muxer", "--component=out:sink.utils.counter",
            "--params=step=+0", "--connect=in:mux", "--connect=mux:out",
        ]  # fmt: skip
        readers["babeltrace2 count"] = Reader(counter, env)
        readers["babeltrace2 text"] = Reader(["babeltrace2", str(trace)], env)
    if not subprocess.run(
        [SYSTEM_PYTHON, "-c", "import bt2"], env=env, check=False, stderr=subprocess.DEVNULL
    ).returncode:
        for name, what in (
            ("bt2, messages only", "messages"), ("bt2, own fields", "own"), ("bt2, rows", "row"),
        ):  # fmt: skip
            command = [SYSTEM_PYTHON, "-c", BT2, str(trace), str(BT2_EVENTS), what]
            readers[name] = Reader(command, env, prints=True)
    return readers


def seeks(trace: Path) -> Figures:
    """Return the ms to read a page at arbitrary times."""
    from nptltrace.api import Traceset

    traceset = Traceset(trace)
    first, last = traceset.reader.key_range() or (0, 0)
    times = [traceset.reader.time_of_key(key) for key in (first, last)]
    arbitrary = random.Random(1)  # noqa: S311 -- places to look at
    times = []
    for _ in range(SEEKS):
        at = arbitrary.randrange(times[0], times[1])
        began = time.perf_counter()
        traceset.seek_time(at)
        traceset.middle_time(max_events=PAGE)
        times.append((time.perf_counter() - began) * 1e3)
    return Figures(tuple(times))


def first_page(trace: Path) -> float:
    """Return the seconds until `ptt view` has printed a page."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*PTT, "view", str(trace)], env=environment(), stdout=subprocess.PIPE
    ) as process:
        for _ in range(PAGE):
            process.stdout.readline()  # type: ignore[union-attr] -- it is a pipe
        took = time.perf_counter() - began
        process.kill()
    return took


def bars(figures: dict[str, Figures]) -> list[Bar]:
    """Return the speed of PTT, as a multiple of the speed of babeltrace2 for the same task."""
    wanted = (
        ("counting, × babeltrace2 counting", "count", "babeltrace2 count", 30),
        ("merged columns, × babeltrace2 counting", "columns", "babeltrace2 count", 8),
        ("columns with fields, × bt2 rows", "columns and two fields", "bt2, rows", 400),
    )
    return [
        Bar(4, what, figures[mine].median / figures[other].median if other in figures else None,
            least, least=True)
        for what, mine, other, least in wanted
    ]  # fmt: skip


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=1000)
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2 rounds, a tenth of the events")
    args = parser.parse_args()
    events, rounds = (args.events // 10, 2) if args.quick else (args.events, args.rounds)
    directory = scratch()
    try:
        trace = directory / "big.ptt"
        make_trace(trace, events, args.threads, args.locks)
        readers = ours(trace) | theirs(trace)
        rates = {name: lambda reader=r: reader.rate(events) for name, r in readers.items()}
        figures = interleave(rates, rounds)
        others = {"seek and 50 events, ms": seeks(trace)}
        others |= interleave({"first page, s": lambda: first_page(trace)}, 5)
    finally:
        shutil.rmtree(directory)
    print(f"million events a second, of {events}; memory of its own, MiB")
    for name, f in figures.items():
        print(f"{name:<28}{f}  {readers[name].own_mib:8.0f}")
    for name, f in others.items():
        print(f"{name:<28}{f}")
    verdicts = bars(figures)
    for bar in verdicts:
        print(bar)
    keep("reading", figures | others, bars=verdicts, events=events, threads=args.threads,
         locks=args.locks, rounds=rounds,
         own_mib={name: reader.own_mib for name, reader in readers.items()})  # fmt: skip
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
