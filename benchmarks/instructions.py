#!/usr/bin/env python3
"""Counts the instructions per event with callgrind: the same on a fast and on a slow machine.

The agreed figures stand in `instructions.json`. A figure above the agreed figure and its tolerance
fails. The script reports cheaper figures, so that you can update the file (`--agree`). Each figure
is the difference of two runs of different length, divided by the difference of their events.
Valgrind has no rseq, and a program reads the clock in another way under it. So compare the figures
only with each other.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.common import HERE, PTT, ROOT, compile_c, environment, have, scratch

AGREED = HERE / "instructions.json"
TOLERANCE = 0.03
SHORT, LONG = 20_000, 120_000
BOX_EVENTS = 255
_SAVED = re.compile(r"^ptt: saved (\d+) event", re.MULTILINE)
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


class Counter:
    """Counts the instructions of commands.

    Args:
        work: A directory for temporary files.
    """

    def __init__(self, work: Path) -> None:
        self.work = work
        self.env = environment()
        self.stage = Path(self.env["NPTLTRACE_NATIVE_DIR"])

    def run(
        self,
        command: list[str],
        before: list[str] | None = None,
        function: str | None = None,
        *,
        counts: bool = True,
    ) -> int:
        """Return the instructions of a command.

        Args:
            command: The program and its arguments.
            before: A command that starts the program.
            function: Count only in calls of this function and in the functions it calls; None
                counts all instructions of the process.
            counts: Whether `before` says how many events were lost.
        """
        out = self.work / "callgrind"
        # Addresses are hashed: if they differ from run to run, the collisions differ too.
        still = ["setarch", os.uname().machine, "--addr-no-randomize"]
        grind = [*still, "valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
        if function:
            grind.append(f"--toggle-collect={function}")
        done = subprocess.run(
            [*(before or []), *grind, *command],
            env=self.env, check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(command)} under callgrind: {done.stderr.strip()}")
        if before and counts and " (0 lost" not in done.stderr:
            sys.exit(f"events were lost: {done.stderr}")
        totals = _TOTAL.findall(out.read_text(encoding="utf-8"))
        return max(map(int, totals))

    def pairs(self, level: str | None, kind: str = "mutex", stacks: str = "16") -> float:
        """Return the instructions of a lock and its unlock: traced at a level, or untraced."""
        program = str(self.work / "pairs")
        trace = str(self.work / "trace")
        # All buffers exist from the start, and no buffer is used again. Otherwise the search for
        # the next buffer depends on the pace of the recorder.
        large = ["--buffer-size", "1M", "--stream-full-policy", "until-full", "-l", str(level)]
        record = [*PTT, "record", "--force", *large, "--stacks", stacks, "-o", trace, "--"]
        # Two threads that meet a module at once may both read its symbols. This takes 280,000
        # instructions, and is over when the warm program calls counted().
        totals = [
            self.run([program, kind, "1", str(n)], record if level is not None else None, "counted")
            for n in (SHORT, LONG)
        ]
        return (totals[1] - totals[0]) / (LONG - SHORT)

    def box(self, kind: str = "mutex") -> float:
        """Return the instructions of a lock and its unlock in a program with a black box."""
        program, before = str(self.work / "pairs"), [*PTT, "record", "--black-box", "--"]
        self._see_events(program, before)
        totals = [
            self.run([program, kind, "1", str(n)], before, "counted", counts=False)
            for n in (SHORT, LONG)
        ]
        return (totals[1] - totals[0]) / (LONG - SHORT)

    def _see_events(self, program: str, before: list[str]) -> None:
        """Exit unless a program has events in its black box: a program without a box is cheap."""
        endless = [*before, program, "mutex", "1", str(sys.maxsize)]
        save = [*PTT, "hang", "--force", "--save", str(self.work / "box"), "--"]
        end = time.monotonic() + 60
        with subprocess.Popen(endless, env=self.env, stdout=subprocess.DEVNULL) as process:
            try:
                while True:
                    # A thread that goes on writes over its events faster than they can be read.
                    process.send_signal(signal.SIGSTOP)
                    done = subprocess.run(
                        [*save, str(process.pid)],
                        env=self.env, check=False, capture_output=True, text=True,
                    )  # fmt: skip
                    saved = _SAVED.search(done.stderr)
                    if saved and int(saved[1]) >= BOX_EVENTS:
                        return
                    if time.monotonic() > end:
                        sys.exit(f"the black box has no events: {done.stderr.strip()}")
                    process.send_signal(signal.SIGCONT)
            finally:
                process.kill()

    def stack(self, kind: str) -> float:
        """Return the instructions of finding and numbering a known stack."""
        # a lock and its unlock have one stack each
        return (self.pairs("2", kind, "all") - self.pairs("2", kind, "0")) / 2

    def reading(self, how: str) -> float:
        """Return the instructions of reading an event."""
        totals, events = [], []
        pairs = str(self.work / "pairs")
        for n in (SHORT, LONG):
            trace = self.work / f"read-{n}"
            subprocess.run(
                # one thread: events of two threads mix differently in each run
                [*PTT, "record", "-q", "--force", "-o", trace, "--", pairs, "mutex", "1", str(n)],
                env=self.env, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            walk = [str(self.work / "walk"), how, *map(str, sorted(trace.glob("stream-*")))]
            said = subprocess.run(walk, check=True, capture_output=True, text=True, env=self.env)
            events.append(int(said.stdout))
            totals.append(self.run(walk))
        return (totals[1] - totals[0]) / (events[1] - events[0])


def measure(work: Path) -> dict[str, float]:
    """Return all figures."""
    counter = Counter(work)
    compile_c(HERE / "hotpath/cases.c", work / "pairs")
    library = counter.stage / "lib"
    flags = [f"-I{ROOT}/native/reader", f"-L{library}", "-lpttread", f"-Wl,-rpath,{library}"]
    compile_c(HERE / "reading/walk.c", work / "walk", *flags)
    bare = counter.pairs(None)
    others = {
        f"{kind}, level 2": counter.pairs("2", kind) - counter.pairs(None, kind)
        for kind in ("rdlock", "wrlock", "sem")
    }
    deep = counter.stack("deep-16")
    return {
        "pair, idle": counter.pairs("0") - bare,
        "pair, level 1": counter.pairs("1") - bare,
        "pair, level 2": counter.pairs("2") - bare,
        "pair, level 3": counter.pairs("3") - bare,
        "pair, black box": counter.box() - bare,
        **others,
        "stack, 16 frames": deep,
        "stack, a frame": (deep - counter.stack("deep-8")) / 8,
        "event, in order": counter.reading("merge"),
        "event, counted": counter.reading("count"),
    }


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--agree", action="store_true", help="write the figures down as the agreed figures"
    )
    args = parser.parse_args()
    if not have("valgrind"):
        sys.exit("valgrind is not installed")
    work = scratch()
    try:
        figures = measure(work)
    finally:
        shutil.rmtree(work)
    if args.agree:
        text = json.dumps({name: round(f, 2) for name, f in figures.items()}, indent=1)
        AGREED.write_text(text + "\n", encoding="utf-8")
    agreed = json.loads(AGREED.read_text(encoding="utf-8"))
    bad = False
    for name, figure in figures.items():
        ratio = figure / agreed[name]
        over = ratio > 1 + TOLERANCE
        bad |= over
        hint = (
            "OVER" if over else "less: --agree writes it down" if ratio < 1 - TOLERANCE else "held"
        )
        print(
            f"{name:<18}{figure:9.2f} instructions  "
            f"agreed {agreed[name]:9.2f}  × {ratio:.3f} {hint}"
        )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
