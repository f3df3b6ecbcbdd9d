"""Shared by all benchmarks: interleaved rounds, medians with spread, a table, figures as JSON."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
KEPT = Path(os.environ.get("PTT_BENCH_KEPT", ROOT / "build" / "bench"))
PTT = [sys.executable, "-m", "nptltrace"]
LOOK_S = 0.02


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


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound, and the measured figure.

    Attributes:
        number: The number of its bar in `make bench`.
        what: The name of the figure, with its unit.
        figure: The measured figure; None if the measurement was impossible.
        bound: The bound.
        least: Whether the figure must be at least the bound; otherwise it must be at most that.
        between: The bounds of the true figure with a confidence of 95 %, if known.
    """

    number: int
    what: str
    figure: float | None
    bound: float
    least: bool = False
    between: Sequence[float] = ()

    @property
    def held(self) -> bool | None:
        """Whether the figure is within the bound; None without a figure."""
        if self.figure is None:
            return None
        return self.figure >= self.bound if self.least else self.figure <= self.bound

    def __str__(self) -> str:
        figure = "–" if self.figure is None else f"{self.figure:.3g}"
        verdict = {True: "held", False: "NOT HELD", None: "not measured"}[self.held]
        bound = f"{'≥' if self.least else '≤'} {self.bound:g}"
        between = f"  (95 %: {self.between[0]:.3f} … {self.between[1]:.3f})" if self.between else ""
        return f"{self.number}  {self.what:<66} {figure:>8}  {bound:<8} {verdict}{between}"


def ratio_between(
    traced: Figures, bare: Figures, fixed: float = 0.0, resamples: int = 2000
) -> tuple[float, float]:
    """Return the bounds of the ratio of two medians, with a confidence of 95 %.

    The bootstrap draws whole rounds, because the runs of a round share the state of the machine.

    Args:
        traced: The dividend: a figure for each round.
        bare: The divisor: a figure for each of the same rounds.
        fixed: A fixed cost to subtract from the traced figures.
        resamples: How often the bootstrap draws rounds.
    """
    rounds = list(zip(traced.values, bare.values, strict=True))
    draw = random.Random(1)  # noqa: S311 -- the same rounds give the same answer
    ratios = []
    for _ in range(resamples):
        ours, theirs = zip(*draw.choices(rounds, k=len(rounds)), strict=True)
        ratios.append((statistics.median(ours) - fixed) / statistics.median(theirs))
    ends = statistics.quantiles(ratios, n=40)
    return ends[0], ends[-1]


def interleave(
    cases: Mapping[str, Callable[[], float | None]],
    rounds: int,
    seldom: Collection[str] = (),
    seldom_rounds: int = 3,
) -> dict[str, Figures]:
    """Run every case once per round, so that all cases share the state of the machine.

    The first round only warms up. Every other round goes backwards: on some machines, the first
    case is slower by a twentieth.

    Args:
        cases: The cases; each returns its figure, or None if it failed. The figures leave out a
            case that always fails.
        rounds: The number of rounds.
        seldom: Slow cases: they take part in a few rounds only, and need no warm-up.
        seldom_rounds: The number of rounds with slow cases.
    """
    seen: dict[str, list[float]] = {name: [] for name in cases}
    on_terminal = sys.stderr.isatty()
    for n in range(rounds + 1):
        for name, run in list(cases.items())[:: -1 if n % 2 else 1]:
            if name in seldom and not 0 < n <= seldom_rounds:
                continue
            if on_terminal:
                print(f"\r{n}/{rounds} {name:<40.40}", end="", file=sys.stderr, flush=True)
            value = run()
            if n and value is not None:
                seen[name].append(value)
    if on_terminal:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return {name: Figures(tuple(values)) for name, values in seen.items() if values}


def environment(tree: Path = ROOT) -> dict[str, str]:
    """Return an environment for `python -m nptltrace` of a checkout with its native files."""
    stage = str(tree / "build/dev/stage")
    if tree == ROOT:
        stage = os.environ.get("NPTLTRACE_NATIVE_DIR", stage)
    theirs = {"NPTLTRACE_NATIVE_DIR": stage, "PYTHONPATH": str(tree / "src")}
    # An installed package has compiled files. Compiling a checkout at every start is slower.
    return {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"} | theirs


def compile_c(source: Path, out: Path, *flags: str) -> Path:
    """Compile one C file the way a user would."""
    subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(out), *flags], check=True)
    return out


def machine() -> dict[str, str]:
    """Return the facts about this machine that belong to its figures."""
    cpu = ""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    libc = " ".join(platform.libc_ver())
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu,
        "processors": str(os.cpu_count()),
        "memory": f"{pages / 2**30:.0f} GiB",
        "kernel": platform.release(),
        "libc": libc,
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
    }


def now() -> str:
    """Return the present time, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime())


def keep(
    name: str, figures: Mapping[str, Figures], *, bars: Sequence[Bar] = (), **more: object
) -> None:
    """Store figures and bars as JSON, under build/bench unless PTT_BENCH_KEPT says otherwise."""
    KEPT.mkdir(parents=True, exist_ok=True)
    document = {
        "benchmark": name,
        "machine": machine(),
        "at": now(),
        "bars": [asdict(bar) for bar in bars],
        "figures": {
            k: {"median": f.median, "min": min(f.values), "max": max(f.values), "values": f.values}
            for k, f in figures.items()
        },
        **more,
    }
    (KEPT / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Used:
    """The cost of a command.

    Attributes:
        seconds: Wall time.
        cpu: Processor seconds, in user and in system mode.
        peak_mib: The peak of its memory, mapped files included.
        own_mib: The highest sample of its own memory, without mapped files.
        printed: Its standard output, if the caller wanted it.
    """

    seconds: float
    cpu: float
    peak_mib: float
    own_mib: float
    printed: str = ""


def own_mib(pid: int) -> float:
    """Return the MiB of a process without mapped files; 0 if the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    own = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(own[1]) / 1024 if own else 0.0


def used_by(
    command: Sequence[str], env: Mapping[str, str] | None = None, *, read: bool = False
) -> Used:
    """Run a command to its end, and return its cost.

    Args:
        command: Program and arguments.
        env: Its environment; None for our environment.
        read: Whether to return its output; otherwise it goes to /dev/null.
    """
    out = subprocess.PIPE if read else subprocess.DEVNULL
    began = time.perf_counter()
    child = subprocess.Popen(command, env=env, stdout=out, text=True)
    own = 0.0
    with os.fdopen(os.pidfd_open(child.pid)) as handle:
        while not select.select([handle], [], [], LOOK_S)[0]:
            own = max(own, own_mib(child.pid))
    seconds = time.perf_counter() - began
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in {0, 1}:  # 1: the command found something
        raise SystemExit(f"{' '.join(command)} failed: {child.returncode}")
    printed = child.stdout.read() if child.stdout else ""
    peak = used.ru_maxrss / 1024
    return Used(seconds, used.ru_utime + used.ru_stime, peak, own, printed)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Let `count` processes compute during a block."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def scratch() -> Path:
    """Return a fresh directory on disk for traces."""
    return Path(tempfile.mkdtemp(prefix="ptt-bench-", dir=os.environ.get("PTT_BENCH_DIR")))


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a fresh directory on disk that is removed at the end of a `with` statement."""
    return tempfile.TemporaryDirectory(prefix="ptt-bench-", dir=os.environ.get("PTT_BENCH_DIR"))


def have(*programs: str) -> bool:
    """Return whether all the programs are installed."""
    return all(shutil.which(p) for p in programs)
