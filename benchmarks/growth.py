#!/usr/bin/env python3
"""Measures how the cost of every command that reads a whole trace grows with the trace.

Time is processor time, user and system: it is the same on a busy machine. Wall time stands beside
it. Memory is the command's own memory: the system can drop the pages of a mapped trace at any time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.common import PTT, Bar, Figures, Used, environment, keep, scratch, used_by
from support.made import make_trace

# The allowed growth from ten million events to a hundred million.
TIME = 11.0
MEMORY = 2.0
COLUMNS = """
import sys
from nptltrace.api import Traceset

rows = sum(table.num_rows for table in Traceset(sys.argv[1]).batches())
sys.exit(rows != int(sys.argv[2]))
"""
# A small trace to merge others with.
OTHER = "other"
EVENTS = "SELECT event, count(*), min(ts_ns), max(ts_ns) FROM events GROUP BY event"
WAITS = "SELECT lock_id, class, count(*), sum(dur_ns) FROM waits GROUP BY lock_id, class"


@dataclass(slots=True)
class Reading:
    """A command that reads a whole trace.

    Attributes:
        name: Its name in tables.
        command: Makes the command from a trace and a directory to write to.
        used: The cost of each run, by the number of events.
    """

    name: str
    command: Callable[[str, str], list[str]]
    used: dict[int, list[Used]] = field(default_factory=dict)

    def median(self, events: int, what: str) -> float:
        """Return the median of an attribute of the runs."""
        return Figures(tuple(getattr(used, what) for used in self.used[events])).median


def ptt(name: str, *words: str) -> Reading:
    """Return a `ptt` command; TRACE, OUT and OTHER among its words stand for paths."""

    def command(trace: str, out: str) -> list[str]:
        other = str(Path(trace).with_name(OTHER))
        paths = {"TRACE": trace, "OUT": out, "OTHER": other}
        return [*PTT, *(paths.get(word, word) for word in words)]

    return Reading(name, command)


def readings() -> list[Reading]:
    """Return all commands that read a whole trace."""
    return [
        ptt("stat", "stat", "TRACE"),
        ptt("report", "report", "TRACE"),
        ptt("check", "check", "TRACE"),
        ptt("verify", "verify", "TRACE"),
        *(ptt(f"view, {form}", "view", "--format", form, "TRACE")
          for form in ("text", "raw", "jsonl", "csv")),
        ptt("view, of one object", "view", "--object", "0x404000", "TRACE"),
        ptt("cut", "cut", "-q", "--force", "--from", "1us", "-o", "OUT", "TRACE"),
        ptt("split", "split", "-q", "--force", "--by", "thread", "-o", "OUT", "TRACE"),
        ptt("merge", "merge", "-q", "--force", "-o", "OUT", "TRACE", "OTHER"),
        ptt("diff", "diff", "TRACE", "TRACE"),
        ptt("sql, events", "sql", "TRACE", EVENTS),
        ptt("sql, waits", "sql", "TRACE", WAITS),
        ptt("top", "top", "TRACE"),
        ptt("bundle", "bundle", "-q", "TRACE"),
        *(ptt(f"export, {form}", "export", "-q", "--to", form, "--force", "-o", "OUT", "TRACE")
          for form in ("perfetto", "chrome", "paje", "parquet")),
        # Written to files, the events alone would take 20 GB.
        ptt("export, csv", "export", "-q", "--to", "csv", "--table", "events", "-o", "/dev/null",
            "TRACE"),
    ]  # fmt: skip


def columns(events: dict[str, int]) -> Reading:
    """Return the reading of all columns from Python."""
    return Reading(
        "columns (Python)",
        lambda trace, _: [sys.executable, "-c", COLUMNS, trace, str(events[trace])],
    )


def remove(path: Path) -> None:
    """Remove the output of a command."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def measure(reading: Reading, traces: dict[int, Path], rounds: int, out: Path) -> None:
    """Run a command on all traces, one after the other, again and again."""
    for _ in range(rounds):
        for events, trace in traces.items():
            used = used_by(reading.command(str(trace), str(out)), environment())
            reading.used.setdefault(events, []).append(used)
            remove(out)


def bars(chosen: list[Reading], sizes: list[int]) -> list[Bar]:
    """Return whether time and memory grow as they may."""
    if len(sizes) < 2 or sizes[-1] != 10 * sizes[-2]:
        return []
    most, tenth = sizes[-1], sizes[-2]
    held = []
    for reading in chosen:
        time = reading.median(most, "cpu") / reading.median(tenth, "cpu")
        memory = reading.median(most, "own_mib") / reading.median(tenth, "own_mib")
        held += [
            Bar(5, f"{reading.name}: processor time for ten times the events", time, TIME),
            Bar(5, f"{reading.name}: own memory for ten times the events", memory, MEMORY),
        ]
    return held


def keep_all(chosen: list[Reading], sizes: list[int], threads: int, locks: int) -> list[Bar]:
    """Keep the figures measured so far; return their bars."""
    verdicts = bars(chosen, sizes)
    keep(
        "growth",
        {f"{reading.name}/{events}": Figures(tuple(used.seconds for used in runs))
         for reading in chosen for events, runs in reading.used.items()},
        bars=verdicts,
        cpu={f"{r.name}/{n}": r.median(n, "cpu") for r in chosen for n in sizes},
        own_mib={f"{r.name}/{n}": r.median(n, "own_mib") for r in chosen for n in sizes},
        peak_mib={f"{r.name}/{n}": r.median(n, "peak_mib") for r in chosen for n in sizes},
        sizes=sizes, threads=threads, locks=locks, rounds=len(next(iter(chosen[0].used.values()))),
    )  # fmt: skip
    return verdicts


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, action="append", help="default: 1, 10, 100 million")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=1000)
    parser.add_argument("-k", "--only", default="", help="commands with this in their name")
    parser.add_argument("--quick", action="store_true", help="one round, up to 10 million events")
    args = parser.parse_args()
    sizes = args.events or [10**6, 10**7, *([] if args.quick else [10**8])]
    rounds = 1 if args.quick else args.rounds
    work = scratch()
    try:
        traces = {events: work / f"trace-{events}" for events in sizes}
        for events, trace in traces.items():
            make_trace(trace, events, args.threads, args.locks)
        make_trace(work / OTHER, 1000, args.threads, args.locks)
        all_of_them = [columns({str(t): n for n, t in traces.items()}), *readings()]
        chosen = [reading for reading in all_of_them if args.only in reading.name]
        measured: list[Reading] = []
        verdicts: list[Bar] = []
        print("s (processor s) MiB of its own, by size; growth of processor time and of memory:")
        for reading in chosen:
            measure(reading, traces, rounds, work / "out")
            cells = [
                f"{reading.median(n, 'seconds'):8.2f} ({reading.median(n, 'cpu'):7.2f})"
                f"{reading.median(n, 'own_mib'):7.0f}"
                for n in sizes
            ]
            growth = [
                f"{reading.median(sizes[-1], what) / reading.median(sizes[-2], what):5.1f} ×"
                for what in ("cpu", "own_mib")
                if len(sizes) > 1
            ]
            print(f"{reading.name:<20}{'  '.join([*cells, *growth])}", flush=True)
            measured.append(reading)
            verdicts = keep_all(measured, sizes, args.threads, args.locks)
    finally:
        shutil.rmtree(work)
    for bar in verdicts:
        print(bar)
    return int(any(bar.held is False for bar in verdicts))


if __name__ == "__main__":
    sys.exit(main())
