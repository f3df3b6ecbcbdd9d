"""Checks that a gate of a CI job fails because of the program, and not because of a busy machine.

The benchmark records one program again and again, alone and beside busy processes. Then `ptt diff
--fail-on` compares four runs alone with four runs beside busy processes. The gate must pass if both
programs are the same. At the end, the program beside busy processes keeps its locks twice as long:
then the gate must fail.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from blame import busy
from support.common import PTT, ROOT, Figures, compile_c, environment, keep, scratch_directory

GATE = "used>50%"
RUNS = 4


def record(program: Path, trace: Path, factor: int) -> Path:
    """Record the program once."""
    command = [*PTT, "record", "-q", "-o", str(trace), "--", str(program), str(factor)]
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
    return trace


def fails(gate: str, before: list[Path], after: list[Path]) -> bool:
    """Return whether the gate fails.

    Raises:
        RuntimeError: There was an error.
    """
    command = [*PTT, "diff", "--fail-on", gate, *map(str, before), "--against", *map(str, after)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    for line in done.stderr.splitlines() if done.returncode else ():
        print(f"    {line}")
    return done.returncode == 1


def main() -> int:
    """Measure; fail if a gate fails that must pass, or passes that must fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=20, help="how often the gate decides")
    parser.add_argument("-b", "--beside", type=int, default=8, help="busy processes")
    parser.add_argument("--gate", default=GATE, help="the condition of --fail-on")
    args = parser.parse_args()
    wrong = missed = 0
    with scratch_directory() as name:
        work = Path(name)
        program = compile_c(ROOT / "tests" / "programs" / "steady.c", work / "steady", "-pthread")
        for number in range(args.rounds):
            at, last = work / str(number), number == args.rounds - 1
            quiet = [record(program, at / f"quiet-{n}", 1) for n in range(RUNS)]
            with busy(args.beside):
                same = [record(program, at / f"same-{n}", 1) for n in range(RUNS)]
                longer = [record(program, at / f"longer-{n}", 2) for n in range(RUNS * last)]
            wrong += fails(args.gate, quiet, same)
            missed += last and not fails(args.gate, quiet, longer)
            print(f"{number + 1}: {wrong} failed that must not, {missed} passed that must not")
    keep("gate", {"failed wrongly": Figures((wrong,)), "passed wrongly": Figures((missed,))})
    print(f"bounds: {'NOT HELD' if wrong or missed else 'held'}")
    return int(bool(wrong or missed))


if __name__ == "__main__":
    sys.exit(main())
