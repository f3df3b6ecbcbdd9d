"""Measures bytes per event on disk: pairs of lock and unlock, with packet heads and metadata."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from support.common import HERE, PTT, Figures, compile_c, environment, keep, scratch

# A packet of up to 1 MiB has a head of 128 bytes: 0.002 bytes per event, more in small packets.
BOUND, HEADS = 16.0, 0.05


def disk_bytes(path: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def main() -> int:
    """Measure; fail if an event takes more than its 16 bytes and a share of the packet heads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--pairs", type=int, default=2_000_000)
    args = parser.parse_args()
    env, work = environment(), scratch()
    try:
        program = compile_c(HERE / "hotpath" / "cases.c", work / "pairs")
        trace = work / "trace"
        command = [
            *PTT,
            "record",
            "-l",
            "mutex=2",
            "-o",
            str(trace),
            "--",
            str(program),
            "mutex",
            "1",
            str(args.pairs),
        ]
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
        stat = subprocess.run(
            [*PTT, "stat", "--format", "json", str(trace)], env=env, check=True, capture_output=True
        )
        document = json.loads(stat.stdout)
        streams = sum(file.stat().st_size for file in trace.glob("stream-*"))
        everything = disk_bytes(trace)
    finally:
        shutil.rmtree(work)
    events, lost = document["events"], document["lost"]
    print(f"{events} events, {lost} lost")
    print(f"packets         {streams / events:8.4f} bytes an event")
    print(f"all of the trace{everything / events:8.4f} bytes an event")
    over = lost != 0 or streams / events > BOUND + HEADS
    print(f"bound {BOUND:.0f} bytes beside packet heads: {'OVER' if over else 'held'}")
    keep(
        "size",
        {"packets": Figures((streams / events,)), "trace": Figures((everything / events,))},
        events=events,
    )
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
