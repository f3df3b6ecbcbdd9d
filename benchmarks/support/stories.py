# SPDX-License-Identifier: MIT
"""Made traces with many objects of one kind, for scale.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
# The builder of made traces belongs to the tests.
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.analysis.story import MAIN, A, Story  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAP = 0x7F0000000000


def processes(n: int) -> Story:
    """Processes that the first process forks."""
    story: Any = Story()
    for number in range(1, n):
        pid = MAIN + number
        story.processes[pid] = {"index": number, "ppid": MAIN, "parent": 0}
        story.do(pid, "PROCESS_START", pid, pid=pid, site=1, ppid=MAIN)
        story.do(pid, "MUTEX_TAKEN", A, pid=pid, site=2).do(pid, "MUTEX_FREE", A, pid=pid, site=3)
    return story


def threads(n: int) -> Story:
    """Threads that the first thread creates."""
    story = Story()
    for tid in range(1000, 1000 + n):
        story.create(tid).lock(tid, A, site=2).do(tid, "MUTEX_FREE", A, site=3)
    return story


def chain(n: int) -> Story:
    """Threads that each create the next thread."""
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
    """Call sites that all take the same lock."""
    story = Story()
    for number in range(n):
        story.lock(MAIN, A, site=1 + number).do(MAIN, "MUTEX_FREE", A, site=1 + number)
    return story


def modules(n: int) -> Story:
    """Libraries that a process has loaded and that all take the same lock."""
    story: Any = Story()
    story.modules = n
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
    "modules": modules,
}


if __name__ == "__main__":
    name, number, trace = sys.argv[1:]
    SUBJECTS[name](int(number)).exit().write_to(Path(trace))
