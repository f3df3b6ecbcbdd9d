"""What all benchmarks share: interleaved rounds, medians with spread, a table, figures as JSON."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PTT = [sys.executable, "-m", "nptltrace"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One quantity over all rounds."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:10.3f}  ({min(self.values):.3f} … {max(self.values):.3f})"


def interleave(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Figures]:
    """Run every case once a round, so that all meet the same weather; the first only warms up."""
    seen: dict[str, list[float]] = {name: [] for name in cases}
    for n in range(rounds + 1):
        for name, run in cases.items():
            value = run()
            if n:
                seen[name].append(value)
            print(f"\r{n}/{rounds} {name:<40.40}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return {name: Figures(tuple(values)) for name, values in seen.items()}


def environment() -> dict[str, str]:
    """Environment in which `python -m nptltrace` finds this checkout and its native files."""
    stage = os.environ.get("NPTLTRACE_NATIVE_DIR", str(ROOT / "build/dev/stage"))
    ours = {"NPTLTRACE_NATIVE_DIR": stage, "PYTHONPATH": str(ROOT / "src")}
    # What is installed is compiled; a checkout whose sources are compiled at every start is slower.
    return {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"} | ours


def compile_c(source: Path, out: Path, *flags: str) -> Path:
    """Compile one C file the way a user would."""
    subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(out), *flags], check=True)
    return out


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = ""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    libc = " ".join(platform.libc_ver())
    return {
        "cpu": cpu,
        "processors": str(os.cpu_count()),
        "kernel": platform.release(),
        "libc": libc,
    }


def keep(name: str, figures: Mapping[str, Figures], **more: object) -> None:
    """Store the figures as JSON under build/bench."""
    out = ROOT / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    document = {
        "benchmark": name,
        "machine": machine(),
        "figures": {
            k: {"median": f.median, "min": min(f.values), "max": max(f.values), "values": f.values}
            for k, f in figures.items()
        },
        **more,
    }
    (out / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def scratch() -> Path:
    """Return a fresh directory on disk for traces."""
    return Path(tempfile.mkdtemp(prefix="ptt-bench-", dir=os.environ.get("PTT_BENCH_DIR")))


def have(*programs: str) -> bool:
    """Say whether all the programs are installed."""
    return all(shutil.which(p) for p in programs)
