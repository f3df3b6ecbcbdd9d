"""Measures how fast `ptt export` writes for viewers: seconds, peak memory, waits per second.

python benchmarks/export.py [--events 4000000] [--threads 16] [--locks 4]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess

from support.common import PTT, Figures, environment, keep, scratch, used_by
from support.made import make_trace

FORMATS = ("perfetto", "chrome", "paje")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=4, help="few: then every other event waits")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    directory = scratch()
    try:
        trace, out = directory / "big.ptt", directory / "out"
        make_trace(trace, args.events, args.threads, args.locks)
        said = subprocess.run(
            [*PTT, "export", "--to", "perfetto", "-o", str(out), str(trace)],
            env=environment(), stderr=subprocess.PIPE, encoding="utf-8", check=True,
        ).stderr  # fmt: skip
        waits, holds, wakeups = (
            int(n.replace(",", "")) for n in re.findall(r"[\d,]{2,}", said)[:3]
        )
        print(f"{waits:,} waits, {holds:,} holds, {wakeups:,} wake-ups")
        figures = {}
        for name in FORMATS:
            command = [*PTT, "export", "--to", name, "--force", "-o", str(out), str(trace)]
            runs = [used_by(command, environment()) for _ in range(args.rounds)]
            figures |= {
                f"{name}, s": Figures(tuple(used.seconds for used in runs)),
                f"{name}, processor s": Figures(tuple(used.cpu for used in runs)),
                f"{name}, MiB": Figures(tuple(used.peak_mib for used in runs)),
                f"{name}, thousand waits/s": Figures(
                    tuple(waits / used.seconds / 1e3 for used in runs)
                ),
                f"{name}, MB written": Figures((out.stat().st_size / 1e6,)),
            }
        for name, figure in figures.items():
            print(f"{name:<28}{figure}")
        keep("export", figures, events=args.events, threads=args.threads, locks=args.locks)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
