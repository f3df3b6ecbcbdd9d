"""Measures the start of `ptt --help` and `ptt record -- true`, beside the same without PTT."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from support.common import PTT, environment, interleave, keep, scratch

BOUND = {"ptt --help": 0.1, "ptt record -- true": 0.3}


def timed(command: list[str], env: dict[str, str]) -> Callable[[], float]:
    """Return a function that runs a command and returns its seconds."""

    def run() -> float:
        began = time.perf_counter()
        subprocess.run(
            command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return time.perf_counter() - began

    return run


def main() -> int:
    """Measure in interleaved rounds; fail if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=21)
    parser.add_argument(
        "--imports", action="store_true", help="say what the imports of `ptt record` cost, and end"
    )
    args = parser.parse_args()
    env, work = environment(), scratch()
    record = [*PTT, "record", "--force", "-o", str(work / "trace"), "--", "true"]
    try:
        if args.imports:
            said = subprocess.run(
                [PTT[0], "-X", "importtime", *record[1:]],
                env=env,
                check=True,
                stderr=subprocess.PIPE,
            )
            lines = [
                line.split(b"|")
                for line in said.stderr.splitlines()
                if line.startswith(b"import time:")
            ][1:]
            for own, _, name in sorted(lines, key=lambda line: int(line[0].split(b":")[1]))[-25:]:
                print(f"{int(own.split(b':')[1]) / 1000:8.2f} ms {name.decode().strip()}")
            return 0
        figures = interleave(
            {
                "true": timed(["true"], dict(os.environ)),
                "python -c pass": timed([sys.executable, "-c", "pass"], dict(os.environ)),
                "ptt --help": timed([*PTT, "--help"], env),
                "ptt record -- true": timed(record, env),
            },
            args.rounds,
        )
    finally:
        shutil.rmtree(work)
    over = False
    for name, f in figures.items():
        bound = BOUND.get(name)
        verdict = (
            "" if bound is None else f"  bound {bound} s {'OVER' if f.median > bound else 'held'}"
        )
        over |= bound is not None and f.median > bound
        print(f"{name:<22}{f} s{verdict}")
    keep("startup", figures)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
