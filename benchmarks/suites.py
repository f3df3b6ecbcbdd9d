"""Runs thread programs of other people, untraced and traced, and reports the differences.

    python benchmarks/suites.py posix DIRECTORY    # of the Open POSIX Test Suite, as LTP has it
    python benchmarks/suites.py sctbench DIRECTORY # of SCTBench

`posix` builds the programs of `pthread_*` and `sem_*`, and the functional programs of threads and
semaphores. It runs each program untraced and at levels 2 and 3. The exit status must be the same,
and `pthread_join/6-3` must lose no event. `sctbench` runs each of its CS programs until a run
hangs. It prints the findings of `ptt check`, for runs that hang and for other runs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PTT = [sys.executable, "-m", "nptltrace"]
POSIX = [
    "conformance/interfaces/pthread_*/*.c", "conformance/interfaces/sem_*/*.c",
    "functional/threads/**/*.c", "functional/semaphores/*.c",
]  # fmt: skip
WITHOUT_LOSS = "pthread_join/6-3"
# Runs of a program of SCTBench, unless a run hangs.
RUNS = 10


def run(command: list[str], limit_s: float, place: Path) -> int | str:
    """Return the exit status of a command, or `hangs`."""
    with subprocess.Popen(
        command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return "hangs"


def build(source: Path, suite: Path, place: Path, *flags: str) -> Path | None:
    """Return the program of a source, or None if the build fails."""
    program = place / str(source.relative_to(suite).with_suffix("")).replace("/", "-")
    command = ["gcc", "-w", "-O1", "-g", "-D_GNU_SOURCE", "-o", str(program), str(source), *flags]
    done = subprocess.run([*command, "-pthread", "-lrt", "-lm"], capture_output=True, check=False)
    return None if done.returncode else program


def of_level(program: Path, level: str, limit_s: float, place: Path) -> tuple[int | str, int]:
    """Return how a program ended, and its lost events."""
    trace = place / f"{program.name}-{level}.ptt"
    command = [*PTT, "record", "-q", "-l", level, "-o", str(trace), "--", str(program)]
    status = run(command, limit_s, place)
    stat = subprocess.run(
        [*PTT, "stat", "--format", "json", str(trace)], capture_output=True, check=False
    )
    lost = json.loads(stat.stdout)["lost"] if stat.returncode == 0 else 0
    subprocess.run(["rm", "-rf", str(trace)], check=False)
    return status, lost


def posix(suite: Path, only: str, jobs: int, place: Path) -> int:
    """Print the programs that end in another way if traced."""
    sources = sorted({path for pattern in POSIX for path in suite.glob(pattern)})
    sources = [path for path in sources if only in str(path)]

    def one(source: Path) -> tuple[str, list[str]]:
        name = str(source.relative_to(suite).with_suffix(""))
        program = build(source, suite, place, f"-I{suite / 'include'}", str(suite / "lib/common.c"))
        if program is None:
            return name, []
        plain, said = run([str(program)], 60, place), []
        for level in ("2", "3"):
            status, lost = of_level(program, level, 90, place)
            if status != plain:
                again = run([str(program)], 60, place), of_level(program, level, 90, place)[0]
                said.append(f"{name}: {plain} untraced, {status} at level {level}; again: {again}")
            if lost and WITHOUT_LOSS in name:
                said.append(f"{name}: {lost} events lost at level {level}")
        return name, said or ["same"]

    ran = different = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for _, said in pool.map(one, sources):
            ran += bool(said)
            different += bool(said) and said != ["same"]
            for line in said:
                if line != "same":
                    print(line, flush=True)
    print(f"{len(sources)} programs, {ran} of them built and run, {different} not as untraced")
    return different > 0


def sctbench(suite: Path, only: str, jobs: int, place: Path) -> int:
    """Print the findings in the CS programs; return 1 if a run that hangs has no error."""
    folder = suite / "benchmarks" / "concurrent-software-benchmarks"
    sources = sorted(path for path in folder.glob("*.c") if only in path.name)

    def findings(trace: Path) -> list[tuple[str, str]]:
        command = [*PTT, "check", "--format", "json", str(trace)]
        done = subprocess.run(command, capture_output=True, check=False)
        return [(one["severity"], one["kind"]) for one in json.loads(done.stdout)["findings"]]

    def one(source: Path) -> tuple[str, bool]:
        program = build(source, folder, place)
        if program is None:
            return f"{source.stem}: cannot be built", True
        trace, said, missed = place / f"{program.name}.ptt", {}, False
        for _ in range(RUNS):
            subprocess.run(["rm", "-rf", str(trace)], check=False)
            command = [*PTT, "record", "-q", "-o", str(trace), "--", str(program)]
            status = run(command, 5, place)
            found = findings(trace)
            missed |= status == "hangs" and "error" not in dict(found)
            said[str(status), str(sorted({kind for _, kind in found}))] = None
            if status == "hangs":
                break
        text = "; ".join(f"{status}: {kinds}" for status, kinds in said)
        return f"{source.stem}: {text}{' -- NOT NAMED' if missed else ''}", missed

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = [(print(text, flush=True), missed) for text, missed in pool.map(one, sources)]
    print(f"{len(results)} programs, {sum(m for _, m in results)} hangs not named")
    return any(missed for _, missed in results)


def main() -> int:
    """Run the suite of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", choices=["posix", "sctbench"])
    parser.add_argument("directory", type=Path, help="where it is")
    parser.add_argument("--only", default="", help="programs with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = posix if args.suite == "posix" else sctbench
        return int(work(args.directory.resolve(), args.only, args.jobs, Path(place)))


if __name__ == "__main__":
    sys.exit(main())
