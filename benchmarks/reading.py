"""How fast traces are read, beside babeltrace2 on the same trace: counts, columns, text, seeks.

python benchmarks/reading.py [--events 10000000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from analysis import make_trace
from common import PTT, ROOT, Figures, environment, have, interleave, keep, scratch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

sys.path.insert(0, str(ROOT / "src"))

PAGE = 50
SEEKS = 200
BT2_EVENTS = 100_000
# What a program has to do to have the fields of each event.
BT2 = """
import itertools, sys, time
import bt2

messages = bt2.TraceCollectionMessageIterator(sys.argv[1])
events = (m.event for m in messages if type(m) is bt2._EventMessageConst)
began = time.perf_counter()
n = 0
for event in itertools.islice(events, int(sys.argv[2])):
    (event.name, {name: int(value) for name, value in (event.payload_field or {}).items()
                  if isinstance(value, bt2._IntegerFieldConst)})
    n += 1
print((time.perf_counter() - began) / n)
"""


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def silently(*command: str) -> Callable[[], object]:
    """Return what runs a command whose output nobody wants."""
    return lambda: subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, check=True)


def cases(trace: Path, events: int) -> dict[str, Callable[[], float]]:
    """Return what to measure: each returns events a second."""
    from nptltrace.trace import _native
    from nptltrace.trace.source import Source
    from nptltrace.trace.traceset import Traceset

    def count() -> None:
        found, _, _ = _native.count(
            Source([trace]).reader, workers=len(os.sched_getaffinity(0)), objects=False
        )
        if sum(row.events for row in found) != events:
            raise SystemExit("not all events were counted")

    def columns(*fields: str) -> None:
        tables = Traceset(trace).batches(fields=fields)
        if sum(table.num_rows for table in tables) != events:
            raise SystemExit("not all events were read")

    counter = [
        "babeltrace2", "run", "--component=in:source.ctf.fs", f'--params=inputs=["{trace}"]',
        "--component=mux:filter.utils.muxer", "--component=out:sink.utils.counter",
        "--params=step=+0", "--connect=in:mux", "--connect=mux:out",
    ]  # fmt: skip
    works: dict[str, Callable[[], object]] = {
        "count": count,
        "columns": columns,
        "columns and fields": lambda: columns("wait_ns", "owner"),
        "text": silently(*PTT, "view", str(trace)),
    }
    if have("babeltrace2"):
        works["babeltrace2 count"] = silently(*counter)
        works["babeltrace2 text"] = silently("babeltrace2", str(trace))
    rates = {name: (lambda work=work: events / seconds(work) / 1e6) for name, work in works.items()}
    if (
        subprocess.run(["/usr/bin/python3", "-c", "import bt2"], check=False, stderr=-3).returncode
        == 0
    ):
        rates["bt2, with fields"] = lambda: bt2_rate(trace)
    return rates


def bt2_rate(trace: Path) -> float:
    """Return how many million events a second a loop in Python over babeltrace2 reads."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        ["/usr/bin/python3", "-c", BT2, str(trace), str(BT2_EVENTS)],
        env=env, stdout=subprocess.PIPE, encoding="ascii", check=True,
    )  # fmt: skip
    return 1 / float(done.stdout) / 1e6


def seeks(trace: Path) -> Figures:
    """Return how many ms it takes to read a page at arbitrary times."""
    from nptltrace.trace.traceset import Traceset

    traceset = Traceset(trace)
    first, last = traceset.source.reader.key_range() or (0, 0)
    times = [traceset.source.reader.time_of_key(key) for key in (first, last)]
    arbitrary = random.Random(1)  # noqa: S311 -- places to look at
    found = []
    for _ in range(SEEKS):
        at = arbitrary.randrange(times[0], times[1])

        def read(at: int = at) -> None:
            traceset.seek_time(at)
            traceset.middle_time(max_events=PAGE)

        found.append(seconds(read) * 1e3)
    return Figures(tuple(found))


def first_page(trace: Path) -> float:
    """Return how many seconds pass until `ptt view` has printed a page."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*PTT, "view", str(trace)], env=environment(), stdout=subprocess.PIPE
    ) as process:
        for _ in range(PAGE):
            process.stdout.readline()  # type: ignore[union-attr] -- it is a pipe
        took = time.perf_counter() - began
        process.kill()
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    directory = scratch()
    try:
        trace = directory / "big.ptt"
        make_trace(trace, args.events, args.threads, args.locks)
        figures = interleave(cases(trace, args.events), args.rounds)
        figures = {f"{name}, million events/s": f for name, f in figures.items()}
        figures["seek and 50 events, ms"] = seeks(trace)
        figures |= interleave({"first page, s": lambda: first_page(trace)}, 5)
        for name, figure in figures.items():
            print(f"{name:<40}{figure}")
        for mine, other in (
            ("count", "babeltrace2 count"), ("columns", "babeltrace2 count"),
            ("text", "babeltrace2 text"), ("columns and fields", "bt2, with fields"),
        ):  # fmt: skip
            pair = [figures.get(f"{name}, million events/s") for name in (mine, other)]
            if pair[0] and pair[1]:
                ratio = pair[0].median / pair[1].median
                print(f"{f'{mine} / {other}':<40}{ratio:10.1f}")
        keep("reading", figures, events=args.events, threads=args.threads, locks=args.locks)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
