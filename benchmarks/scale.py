#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how processor time and memory of commands grow with what a trace has much of.

Traces of n and of 2n processes, threads, locks held at once and so on are made by hand, and read
by `ptt stat`, `report`, `check` and `sql`. What is linear takes twice as much.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.analysis.story import MAIN, A, Story  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 2.2
COMMANDS: dict[str, list[str]] = {
    "stat": ["stat"],
    "report": ["report"],
    "check": ["check"],
    "sql": ["sql", "select count(*) from waits"],
}
_HEAP = 0x7F0000000000


def processes(n: int) -> Story:
    """Forked processes, all of the first one."""
    story: Any = Story()
    for number in range(1, n):
        pid = MAIN + number
        story.processes[pid] = {"index": number, "ppid": MAIN, "parent": 0}
        story.do(pid, "PROCESS_START", pid, pid=pid, site=1, ppid=MAIN)
        story.do(pid, "MUTEX_TAKEN", A, pid=pid, site=2).do(pid, "MUTEX_FREE", A, pid=pid, site=3)
    return story


def threads(n: int) -> Story:
    """Threads that the first one creates."""
    story = Story()
    for tid in range(1000, 1000 + n):
        story.create(tid).lock(tid, A, site=2).do(tid, "MUTEX_FREE", A, site=3)
    return story


def chain(n: int) -> Story:
    """Threads that each create the next one."""
    story, creator = Story(), MAIN
    for tid in range(1000, 1000 + n):
        story.create(tid, by=creator)
        creator = tid
    return story


def held(n: int) -> Story:
    """Locks that one thread holds at once."""
    story = Story()
    for number in range(n):
        story.lock(MAIN, _HEAP + 64 * number, site=2)
    for number in range(n):
        story.do(MAIN, "MUTEX_FREE", _HEAP + 64 * number, site=3)
    return story


def objects(n: int) -> Story:
    """Locks, one after the other."""
    story = Story()
    for number in range(n):
        lock = _HEAP + 64 * number
        story.lock(MAIN, lock, site=2).do(MAIN, "MUTEX_FREE", lock, site=3)
    return story


def sites(n: int) -> Story:
    """Call sites, each of which takes the same lock."""
    story = Story()
    for number in range(n):
        story.lock(MAIN, A, site=1 + number).do(MAIN, "MUTEX_FREE", A, site=1 + number)
    return story


SUBJECTS: dict[str, Callable[[int], Story]] = {
    "processes": processes,
    "threads": threads,
    "chain of creators": chain,
    "locks held at once": held,
    "objects": objects,
    "call sites": sites,
}


def measure(arguments: list[str], trace: Path) -> tuple[float, int]:
    """Return the processor time in seconds and the memory in kB that a command takes."""
    command = [sys.executable, "-m", "nptltrace", arguments[0], str(trace), *arguments[1:]]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def main() -> int:
    """Print a table; return 1 where something grows by more than the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("-k", default="", metavar="NAME", help="only subjects with NAME in them")
    options = parser.parse_args()
    worst = 0.0
    print(f"{'':<20}{'command':<9}{'time':>9}{'of 2n':>9}{'':>7}{'memory':>11}{'of 2n':>11}")
    with tempfile.TemporaryDirectory() as directory:
        for subject, make in SUBJECTS.items():
            if options.k not in subject:
                continue
            traces = [
                make(n).exit().write_to(Path(directory) / f"{n}.ptt")
                for n in (options.n, 2 * options.n)
            ]
            for name, words in COMMANDS.items():
                (time, memory), (time2, memory2) = (measure(words, trace) for trace in traces)
                grown, more = time2 / time, memory2 / memory
                worst = max(worst, grown, more)
                print(
                    f"{subject:<20}{name:<9}{time:>8.2f}s{time2:>8.2f}s{grown:>6.2f}x"
                    f"{memory / 1024:>8.0f} MB{memory2 / 1024:>8.0f} MB{more:>6.2f}x",
                    flush=True,
                )
    print(f"at most {worst:.2f} x from n to 2n; linear is 2, up to {LIMIT} is allowed")
    return int(worst > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
