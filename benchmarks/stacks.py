"""Compares whole stacks of waits with gdb's stacks at the same moments, in real programs.

    python benchmarks/stacks.py                     # all installed programs: a table
    python benchmarks/stacks.py rocksdb 'C++, -O2'  # some of them
    python benchmarks/stacks.py --command COMMAND ARG…
    python benchmarks/stacks.py --places            # no gdb: where waits come from, more programs

The script runs a program under `ptt record --stacks 64 --python off --no-java`, and gdb stops the
program again and again. At a stop, a thread may wait in a hook of the tracer. The tracer wrote the
stack of this thread to the trace before the wait began. gdb unwinds the frames behind the hook, and
both must have the same frames. If the trace says that its stack is whole, all frames count, and
otherwise the first 64. gdb reads the tables of the same files and any debug information with code
of its own.

A library preloaded behind the tracer makes threads keep a mutex a little longer now and then. So
threads meet more often.

The script also makes a recording without gdb and without this library. From it, the script prints
where the contended waits come from: by one frame, as without stacks, and by whole stacks without
wrappers. If no wait is contended, it takes the other waits.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
from support.common import HERE, PTT, compile_c
from support.site_programs import more_subjects
from support.stack_programs import Subject, subjects
from support.unwind_tables import is_covered
from support.workloads import wait_for_port

from nptltrace._binding.headers.ptt_abi import PTT_STACK_WHOLE
from nptltrace.analysis.model import model_tables
from nptltrace.api import Traceset
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.symbols.frames import chosen_sites, frames_at, recorded_site
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nptltrace.trace.info import Process

BOUND = 0.99
PATIENCE_S = 60
ALONE_S = 8
SHOWN = 3
PLACES = 3
DEPTH = 64
# The time stamps of waits and of gdb's stops come from different clocks.
SLACK_NS = 50_000
GUESSED = "cut at code without an unwind table"
UNKNOWN = ("in no wait, or in several", "no stack was recorded")


@dataclass(slots=True)
class Comparison:
    """The comparison of a program's stacks.

    Attributes:
        verdicts: The number of stacks by verdict: equal, or how they differ.
        contended: The same for the stacks of contended waits.
        lines: Some stacks that differ.
        before: Where contended waits come from, by the function of one frame.
        after: The same by the call site of the whole stack.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    contended: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""

    def add(self, verdict: str, *, contended: bool) -> None:
        """Count a stack."""
        self.verdicts[verdict] += 1
        self.contended[verdict] += contended


def compared(verdicts: Counter[str]) -> int:
    """Return the number of stacks that both have."""
    return sum(n for verdict, n in verdicts.items() if verdict not in UNKNOWN)


def equal(verdicts: Counter[str]) -> int:
    """Return the number of stacks that are the same, as far as unwind tables exist."""
    return verdicts["equal"] + verdicts[GUESSED]


@contextmanager
def recorded(subject: Subject, trace: Path, *options: str, preload: str = "") -> Iterator[int]:
    """Record a program during a block; yield its process with the most threads."""
    with (trace.parent / "output").open("w") as output:
        recorder = subprocess.Popen(
            [*PTT, "record", "-q", "--no-bundle", *options, "-o", trace, "--", *subject.command],
            env=os.environ | {"LD_PRELOAD": preload},
            stdout=output,
            stderr=output,
        )
    client, pids = None, []
    try:
        if subject.client:
            wait_for_port(subject.port, recorder)
            client = subprocess.Popen(subject.client, stdout=subprocess.DEVNULL)
        time.sleep(subject.settles_s)
        pids = busiest_first(trace)
        yield pids[0]
    finally:
        if client:
            client.kill()
            client.wait()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            recorder.wait(PATIENCE_S)
        recorder.terminate()
        recorder.wait(PATIENCE_S)


def busiest_first(trace: Path) -> list[int]:
    """Return the recorded processes, the process with the most threads first."""
    lines = (trace / "info" / "processes.jsonl").read_text().splitlines()
    pids = {json.loads(line).get("process", {}).get("pid") for line in lines}
    alive = [int(pid) for pid in pids if pid and Path(f"/proc/{pid}").exists()]
    if not alive:
        sys.exit(f"nothing is recorded: {(trace.parent / 'output').read_text()}")
    return sorted(alive, key=lambda pid: -len([*Path(f"/proc/{pid}/task").iterdir()]))


def stop_often(pid: int, stops: int, seen: Path) -> None:
    """Let gdb stop a process `stops` times and write its stacks to a file."""
    looked = subprocess.run(
        ["gdb", "-nx", "-batch", "-p", str(pid), "-x", HERE / "support" / "stacks_gdb.py"],
        env=os.environ | {"PTT_OUT": str(seen), "PTT_STOPS": str(stops)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not seen.exists():
        sys.exit(f"gdb cannot look into process {pid}:\n{looked.stderr}")


def compare(trace: Path, seen: Path) -> Comparison:
    """Compare the stacks of the trace with the stacks that gdb saw."""
    source = Traceset(trace)
    symbols = Symbols(source)
    processes = source.processes
    clock = source.traces[0].info.session
    shift = (
        source.start_unix_ns
        - (clock.number("clock", "start_unix_ns") or 0)
        + (clock.number("clock", "start_monotonic_ns") or 0)
    )
    table = model_tables(source).waits
    waits = {name: table[name].to_numpy() for name in ("process", "tid", "t_ns", "dur_ns", "stack")}
    waits["contended"] = pc.equal(table["class"].cast("string"), "contended").to_numpy()
    comparison, known = Comparison(), set()
    for line in seen.read_text().splitlines():
        now, tid, frames = json.loads(line)
        after = now - shift - waits["t_ns"]
        (during,) = np.nonzero(
            (waits["tid"] == tid) & (after > SLACK_NS) & (after < waits["dur_ns"] - SLACK_NS)
        )
        if len(during) != 1:
            comparison.add(UNKNOWN[0], contended=False)
            continue
        # a wait counts once, even if several stops see it
        if int(during[0]) in known:
            continue
        known.add(int(during[0]))
        process, stack = (int(waits[name][during[0]]) for name in ("process", "stack"))
        contended = bool(waits["contended"][during[0]])
        if not stack:
            comparison.add(UNKNOWN[1], contended=contended)
            continue
        verdict = differs(processes[process], stack, frames)
        comparison.add(verdict or "equal", contended=contended)
        if verdict and comparison.verdicts[verdict] <= SHOWN:
            walked = stack_sites(processes[process].stacks, stack)
            named = (
                " < ".join(frames_at(symbols, process, site)[-1].text for site in sites)
                for sites in (walked, frames)
            )
            comparison.lines.append("\n    ".join((f"  {verdict}:", *named)))
    return comparison


def places(trace: Path) -> tuple[str, str]:
    """Return where waits come from, by one frame and by the whole stack's call site."""
    source = Traceset(trace)
    symbols = Symbols(source)
    processes = source.processes
    chosen = [chosen_sites(symbols, *numbered) for numbered in enumerate(processes)]
    table = model_tables(source).waits
    contended = table.filter(pc.equal(table["class"].cast("string"), "contended"))
    table = contended if len(contended) else table
    sums = table.group_by(["process", "stack"]).aggregate([("dur_ns", "sum")])
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for row in sums.to_pylist():
        process, stack = row["process"], row["stack"]
        sites = stack_sites(processes[process].stacks, stack)
        site = recorded_site(processes[process], sites)
        for count, at in ((before, site), (after, chosen[process].get(stack, site))):
            count[frames_at(symbols, process, at)[0].name if site else "?"] += row["dur_ns_sum"]
    kind = "" if len(contended) else "idle: "
    return kind + longest(before), kind + longest(after)


def longest(comparison: Counter[str]) -> str:
    """Return the places with the longest waits as text."""
    whole = max(comparison.total(), 1)
    return ", ".join(f"`{name}` {ns / whole:.0%}" for name, ns in comparison.most_common(PLACES))


def differs(process: Process, stack: int, frames: list[int]) -> str:
    """Return how a stack differs from gdb's stack; empty if it is the same.

    If code has no unwind table, gdb analyses the code or guesses from the words on the stack. A
    trace says that the stack is cut there.
    """
    node = stack
    walked: list[int] = []
    while node in process.stacks and len(walked) < len(process.stacks):
        node, address = process.stacks[node]
        walked.append(address)
    if walked != frames[: len(walked)]:
        return "another frame"
    if node == PTT_STACK_WHOLE and len(frames) > len(walked):
        return "shorter, and called whole"
    if node == PTT_STACK_WHOLE or len(walked) >= min(len(frames), DEPTH):
        return ""
    module = process.map.at(walked[-1])
    if module and is_covered(module.path, walked[-1] - 1 - (module.bias or 0)):
        return "shorter, and called cut"
    return GUESSED


def look_at_places(prepare: Callable[[Path], Subject]) -> Comparison:
    """Record a program, and find the origins of its waits."""
    with tempfile.TemporaryDirectory(prefix="ptt-stacks-") as place:
        directory = Path(place)
        with recorded(prepare(directory), directory / "run"):
            time.sleep(ALONE_S)
        before, after = places(directory / "run")
        return Comparison(before=before, after=after)


def look_at(prepare: Callable[[Path], Subject], stops: int) -> Comparison:
    """Record a program while gdb stops it, and compare; then record it once more alone."""
    with tempfile.TemporaryDirectory(prefix="ptt-stacks-") as place:
        directory = Path(place)
        subject, seen = prepare(directory), directory / "gdb"
        linger = compile_c(HERE / "made" / "linger.c", directory / "linger.so", "-shared", "-fPIC")
        options = ("--python", "off", "--no-java", "--stacks", f"{DEPTH}")
        with recorded(subject, directory / "stopped", *options, preload=str(linger)) as pid:
            stop_often(pid, stops, seen)
        comparison = compare(directory / "stopped", seen)
        with recorded(subject, directory / "run"):
            time.sleep(ALONE_S)
        comparison.before, comparison.after = places(directory / "run")
        return comparison


def compared_row(name: str, comparison: Comparison) -> str:
    """Return the row of a program in the table of compared stacks."""
    cells = [
        f"{count(verdicts):,}"
        for verdicts in (comparison.verdicts, comparison.contended)
        for count in (compared, equal)
    ]
    return f"| {name} | {' | '.join(cells)} | {comparison.verdicts[GUESSED]:,} |"


def print_compared(comparisons: Mapping[str, Comparison]) -> None:
    """Print the table of compared stacks."""
    print("\n| program | waits | equal | contended waits | equal | cut where no table is |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, comparison in comparisons.items():
        print(compared_row(name, comparison))


def print_places(comparisons: Mapping[str, Comparison]) -> None:
    """Print a table of the origins of waits."""
    print("\n| program | by one frame | by whole stacks, without wrappers |")
    print("|---|---|---|")
    for name, comparison in comparisons.items():
        print(f"| {name} | {comparison.before} | {comparison.after} |")


def main() -> int:
    """Record, look, compare."""
    known = subjects() | more_subjects()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=100, help="how often each program is stopped")
    parser.add_argument("--places", action="store_true", help="do not compare with gdb")
    parser.add_argument("--command", action="store_true", help="the rest is a command to look at")
    parser.add_argument("programs", nargs="*", help=", ".join(known))
    args = parser.parse_args()
    default = known if args.places else subjects()
    chosen = {name: known[name] for name in args.programs or default if not args.command}
    if args.command:
        chosen = {args.programs[0]: lambda _: Subject(tuple(args.programs))}
    comparisons: dict[str, Comparison] = {}
    if args.places:
        for name, prepare in chosen.items():
            comparisons[name] = look_at_places(prepare)
            print(f"{name}: {comparisons[name].before} | {comparisons[name].after}", flush=True)
        print_places(comparisons)
        return 0
    for name, prepare in chosen.items():
        comparisons[name] = comparison = look_at(prepare, args.stops)
        origins = f"{comparison.before} | {comparison.after}"
        print(compared_row(name, comparison), origins, *comparison.lines, sep="\n")
        for verdict, n in comparison.verdicts.most_common():
            print(f"{n:8,}  {verdict}", flush=True)
    print_compared(comparisons)
    print_places(comparisons)
    held = True
    for what in ("verdicts", "contended"):
        counters = (getattr(comparison, what) for comparison in comparisons.values())
        verdicts: Counter[str] = sum(counters, Counter())
        same, whole = equal(verdicts), compared(verdicts)
        held &= bool(whole) and same >= BOUND * whole
        kind = "waits" if what == "verdicts" else "contended waits"
        print(f"\n{same:,} of {whole:,} stacks of {kind} are equal: {same / max(whole, 1):.2%}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
