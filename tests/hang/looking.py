"""Shared by the tests of `ptt hang`: programs that hang, and looks at them."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Ptt

__all__ = ["CASES", "WAYS", "asleep", "running", "threads_of"]

WAYS = {"plain": ("-O0",), "optimized": ("-O2",), "static": ("-O2", "-static")}
# For each case of the program: kind of finding, kinds of its waits, names of objects.
CASES = {
    "mutexes": ("deadlock", {"mutex", "join"}, {"left", "right"}),
    "rwlock": ("deadlock", {"mutex", "rwlock", "join"}, {"left", "table"}),
    "joins": ("deadlock", {"join"}, set()),
    "self": ("self-deadlock", {"mutex", "join"}, {"left"}),
    "ended": ("exit-holding-lock", {"mutex", "join"}, {"left"}),
    "stuck": ("stuck", {"condition", "semaphore", "join"}, {"never", "empty"}),
    "shared": ("deadlock", {"mutex", "join"}, {"left", "right"}),
    "robust": ("deadlock", {"mutex", "join"}, {"left", "right"}),
    "inherits": ("deadlock", {"mutex", "join"}, {"left", "right"}),
}


def threads_of(case: str) -> int:
    """Return the program's final number of threads."""
    return 2 if case in {"self", "ended"} else 3


@contextmanager
def running(
    *command: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Iterator[str]:
    """Run a program until the caller has looked at it; yield its process id."""
    process = subprocess.Popen([str(word) for word in command], cwd=cwd, env=env)
    try:
        yield str(process.pid)
    finally:
        process.kill()
        process.wait()


def naps(thread: dict[str, Any]) -> bool:
    """Return whether a thread's sleep may be over soon."""
    return "nanosleep" in (thread["waits_for"] or {}).get("kind", "")


def asleep(ptt: Ptt, pid: str, threads: int, *, ended: int = 0) -> dict[str, Any]:
    """Return the answer of `ptt hang` when this many threads sleep at their last place.

    Args:
        ptt: Runner of `ptt`.
        pid: The process.
        threads: Number of sleeping threads.
        ended: Number of threads that have ended, but still exist.
    """
    until, watched = time.monotonic() + 60, "50ms"
    while True:
        done = ptt("hang", "--format", "json", "--watch", watched, pid, status=None)
        answer: dict[str, Any] = json.loads(done.stdout)
        # Programs sleep for a moment to let another thread be first.
        if watched == "50ms" and any(naps(thread) for thread in answer["threads"]):
            watched = "500ms"
            continue
        watched = "50ms"
        still = [t for t in answer["threads"] if t["waits_for"] and t["moved"] is False]
        if len(still) == threads == len(answer["threads"]) - ended or time.monotonic() > until:
            assert done.returncode == (1 if answer["findings"] else 0)
            return answer
