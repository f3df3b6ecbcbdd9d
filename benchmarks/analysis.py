"""How fast `ptt report` and `ptt check` are on a big trace: seconds, peak memory, events a second.

python benchmarks/analysis.py [--events 100000000] [--threads 16] [--locks 1000]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

from common import HERE, PTT, ROOT, Figures, environment, keep, scratch

sys.path.insert(0, str(ROOT / "src"))


def make_trace(path: Path, events: int, threads: int, locks: int) -> None:
    """Write a trace of that many events."""
    from nptltrace.record.metadata import Calibration, metadata_text

    uuid = uuid4()
    path.mkdir(parents=True)
    generate = path.parent / "generate"
    ring = ROOT / "native" / "ring"
    subprocess.run(
        [
            "cc",
            "-O2",
            str(HERE / "analysis" / "generate.c"),
            str(ring / "crc32c.c"),
            "-o",
            str(generate),
        ],
        check=True,
    )
    arguments = [str(path), uuid.hex, str(events), str(threads), str(locks)]
    subprocess.run([str(generate), *arguments], check=True)
    text = metadata_text(
        uuid=str(uuid),
        clock_uuid=str(uuid4()),
        calibration=Calibration(2_700_000_000, 1_700_000_000 * 10**9, "tsc"),
        env={"hostname": "bench", "boot_id": "b", "clock": "tsc"},
        stream_class=0,
    )
    (path / "metadata").write_text(text)
    info = path / "info"
    info.mkdir()
    (info / "session.json").write_text(json.dumps({"state": "complete", "level": "2"}))
    lines = [
        {
            "process": {
                "index": 0,
                "pid": 100,
                "ppid": 1,
                "exe": "/bin/made-up",
                "cmdline": ["made-up"],
            }
        },
        {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + 16 * n) for n in range(1, 65)}}},
    ]
    (info / "processes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def run(*command: str) -> tuple[float, float, float]:
    """Run `ptt COMMAND`; return seconds, processor seconds and peak memory in MiB."""
    began = time.perf_counter()
    child = subprocess.Popen([*PTT, *command], env=environment(), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"ptt {command[0]} failed: {status}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--locks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    directory = scratch()
    try:
        trace = directory / "big.ptt"
        make_trace(trace, args.events, args.threads, args.locks)
        figures = {}
        for name in ("report", "check"):
            found = [run(name, str(trace)) for _ in range(args.rounds)]
            figures |= {
                f"{name}, s": Figures(tuple(seconds for seconds, _, _ in found)),
                f"{name}, processor s": Figures(tuple(cpu for _, cpu, _ in found)),
                f"{name}, MiB": Figures(tuple(memory for _, _, memory in found)),
                f"{name}, million events/s": Figures(
                    tuple(args.events / s / 1e6 for s, _, _ in found)
                ),
            }
        for name, figure in figures.items():
            print(f"{name:<28}{figure}")
        keep("analysis", figures, events=args.events, threads=args.threads, locks=args.locks)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
