"""Confirms planted bugs that need bad luck, and does not confirm look-alikes.

    python benchmarks/confirming.py [-k NAME] [--runs 20] [--ordinary N] [--again N [--busy]]
    python benchmarks/confirming.py --explore 50 [-k NAME]

Each program of `support/latent_programs.py` is recorded once, and `ptt confirm` runs it up to 20
times for each warning. A planted bug counts as confirmed if a warning is. No look-alike may be
confirmed. The exit status is 0 if each planted bug is confirmed and no look-alike, and no ordinary
run hung. With `--explore`, it is 0 if no ordinary run hung.

`--ordinary N` also runs each program N times without PTT: no run may hang. `--again N` writes a
file with `ptt reproduce` for each planted bug, and counts how many of N runs with the file hang.
With `--busy`, twice as many processes as processors spin meanwhile. `--explore N` counts the runs
to the first error of `ptt explore`, at most N, in place of all this.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.common import PTT, busy, environment, scratch_directory
from support.latent_programs import LATENT, SAFE, Latent

LIMIT_S = 20.0
# The share of runs in which a file must show its bug.
SURE = 0.95


@dataclass
class Row:
    """What became of a program."""

    latent: Latent
    planted: bool
    hung: int = 0
    outcomes: list[str] = field(default_factory=list)
    runs: int = 0
    again: int = 0
    found: str = ""

    @property
    def confirmed(self) -> bool:
        """Whether a warning was confirmed."""
        return "confirmed" in self.outcomes

    def __str__(self) -> str:
        outcome = ", ".join(f"{n} {word}" for word, n in Counter(self.outcomes).items())
        kind = "planted" if self.planted else "safe"
        return (
            f"{self.latent.name:34} {kind:8} {outcome or 'no warnings':34} {self.runs:4} "
            f"{self.again:4} {self.hung:4} {self.found}"
        )


def build(latent: Latent, folder: Path) -> list[str]:
    """Write and compile a program, and return its command."""
    source = folder / f"program{latent.suffix}"
    source.write_text(latent.source(), encoding="utf-8")
    if latent.way == "python":
        return [sys.executable, str(source)]
    compiler = "c++" if latent.suffix == ".cc" else "cc"
    program = folder / "program"
    flags = ["-O1", "-g", "-Wl,--build-id", "-pthread"]
    subprocess.run([compiler, *flags, "-o", program, source], check=True)
    return [str(program)]


def ptt(*words: str, folder: Path) -> tuple[int, str]:
    """Run `ptt`, and return its exit status and standard output."""
    done = subprocess.run(
        [*PTT, *words], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"ptt {' '.join(words)}: {done.stderr}")
    return done.returncode, done.stdout


def hangs(command: list[str]) -> bool:
    """Run a program without PTT."""
    try:
        subprocess.run(command, timeout=LIMIT_S, check=True, stdout=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return True
    return False


def judge(row: Row, options: argparse.Namespace) -> Row:
    """Run a program in all ways that the options want."""
    latent = row.latent
    with scratch_directory() as name:
        folder = Path(name)
        command = build(latent, folder)
        row.hung = sum(hangs(command) for _ in range(options.ordinary))
        if options.explore:
            explore(row, command, folder, options.explore)
            return row
        stacks = ["--stacks", "all"] if latent.way == "python" else []
        ptt("record", "-q", *stacks, "-o", "run.ptt", "--", *command, folder=folder)
        kind = ["--kind", latent.kind] if latent.kind else []
        words = ["--format", "json", "--runs", str(options.runs), *kind, "run.ptt", "--", *command]
        results: list[dict[str, Any]] = json.loads(
            ptt("confirm", *words, folder=folder)[1]
        )["candidates"]  # fmt: skip
        row.outcomes = [result["outcome"] for result in results]
        row.runs = max((result["runs"] for result in results), default=0)
        if row.confirmed and options.again:
            words = ["-q", *kind, "run.ptt", "--", *command]
            ptt("reproduce", *words, folder=folder)
            for _ in range(options.again):
                status, _ = ptt(
                    "confirm", "--runs", "1", "--file", "repro.json", "--", *command, folder=folder
                )
                row.again += status
    return row


def explore(row: Row, command: list[str], folder: Path, most: int) -> None:
    """Count the runs until `ptt explore` has shown an error."""
    for number in range(most):
        words = ["--runs", "1", "--seed", str(number), "--format", "json", "--", *command]
        document = json.loads(ptt("explore", *words, folder=folder)[1])
        errors = [each for each in document["findings"] if each["severity"] == "error"]
        if errors or document["hung"] or document["failed"]:
            row.found = f"run {number + 1}: {errors[0]['kind'] if errors else 'hung or failed'}"
            return
        shutil.rmtree(folder / "ptt-explore", ignore_errors=True)
    row.found = f"nothing in {most} runs"


def main() -> int:
    """Judge the programs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add(
        "-k",
        metavar="NAME",
        default="",
        help="only programs whose name matches this regular expression",
    )
    add("--runs", metavar="N", type=int, default=20, help="runs of ptt confirm (default: 20)")
    add("--ordinary", metavar="N", type=int, default=0, help="runs without PTT (default: 0)")
    add("--again", metavar="N", type=int, default=0, help="runs of each file (default: 0)")
    add("--explore", metavar="N", type=int, default=0, help="runs of ptt explore (default: 0)")
    add("--busy", action="store_true", help="keep all processors busy meanwhile")
    add("--only", choices=("planted", "safe"), help="only these programs")
    add("--at-once", metavar="N", type=int, default=2, help="programs at a time (default: 2)")
    options = parser.parse_args()
    rows = [Row(latent, planted=True) for latent in LATENT if options.only != "safe"]
    rows += [Row(latent, planted=False) for latent in SAFE if options.only != "planted"]
    rows = [row for row in rows if re.search(options.k, row.latent.name)]
    print(f"{'program':34} {'kind':8} {'outcome of the warnings':34} runs again hung")
    spinning = 2 * (os.cpu_count() or 1) if options.busy else 0
    with busy(spinning), ThreadPoolExecutor(options.at_once) as pool:
        for row in pool.map(lambda row: judge(row, options), rows):
            print(row, flush=True)
    planted = [row for row in rows if row.planted]
    safe = [row for row in rows if not row.planted]
    print(
        f"planted: {sum(row.confirmed for row in planted)} of {len(planted)} confirmed; "
        f"safe: {sum(row.confirmed for row in safe)} of {len(safe)} confirmed; "
        f"ordinary runs that hung: {sum(row.hung for row in rows)}"
    )
    if options.again:
        sure = sum(row.again >= SURE * options.again for row in planted if row.confirmed)
        print(f"files that hang in 19 of 20 runs: {sure} of {sum(r.confirmed for r in planted)}")
    wrong = [row for row in rows if row.confirmed != row.planted and not options.explore]
    return int(bool(wrong) or any(row.hung for row in rows))


if __name__ == "__main__":
    sys.exit(main())
