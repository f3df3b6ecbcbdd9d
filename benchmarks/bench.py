#!/usr/bin/env python3
"""`make bench`: measures every promise about the cost of PTT on this machine, beside other tools.

Each part prints its figures and keeps them in build/bench. At the end, a table shows the bars. The
parts run one after the other. Give the machine nothing else to do meanwhile. If other programs run
when a part begins, the output says so beside the name of the part.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

from peers import install
from support.common import HERE, KEPT, Bar, environment, machine

# Name, script, whether it has a short form.
PARTS = {
    "micro": ("micro.py", True),
    "programs": ("programs.py", True),
    "reading": ("reading.py", True),
    "growth": ("growth.py", True),
    "collector": ("collector.py", True),
    "size": ("size.py", False),
    "startup": ("startup.py", False),
    "nptl": ("nptl.py", True),
    "posix": ("posix.py", False),
    "instructions": ("instructions.py", False),
}
BUSY = 0.1
LOOK_S = 1.0


def busy_processors() -> float:
    """Return how many processors are busy now."""

    def ticks() -> tuple[int, int]:
        with open("/proc/stat", encoding="ascii") as stat:  # noqa: PTH123 -- not a file on disk
            fields = [int(word) for word in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    before = ticks()
    time.sleep(LOOK_S)
    after = ticks()
    idle = (after[1] - before[1]) / max(after[0] - before[0], 1)
    return (1 - idle) * (os.cpu_count() or 1)


def kept_bars() -> list[Bar]:
    """Return the bars of all kept figures."""
    bars = []
    for path in sorted(KEPT.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        bars += [Bar(**bar) for bar in kept.get("bars", ())]
    return sorted(bars, key=lambda bar: bar.number)


def main() -> int:
    """Run the parts and print the verdicts; fail if a bar is not held or a part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything: some minutes")
    parser.add_argument(
        "--install-peers", action="store_true", help="have apt install what Debian has; needs root"
    )
    parser.add_argument(
        "--verdicts", action="store_true", help="measure nothing, print the kept verdicts"
    )
    parser.add_argument("part", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    args = parser.parse_args()
    unknown = set(args.part) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if args.install_peers:
        install()
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    failed = []
    for name in () if args.verdicts else args.part or PARTS:
        script, short = PARTS[name]
        others = busy_processors()
        busy = f": {others:.1f} processors are busy with other things" if others > BUSY else ""
        print(f"\n=== {name}{busy}", flush=True)
        quick = ["--quick"] if args.quick and short else []
        if subprocess.run(
            [sys.executable, HERE / script, *quick], env=environment(), check=False
        ).returncode:
            failed.append(name)
    print("\nbar")
    bars = kept_bars()
    for bar in bars:
        print(bar)
    if failed:
        print(f"bounds exceeded, or not measured: {', '.join(failed)}")
    return int(bool(failed) or any(bar.held is False for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
