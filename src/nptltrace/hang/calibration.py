"""Waits in a process with a C library of an unknown version: whether they are as in known versions.

The process is one of PTT's own, and has the library only if PTT itself runs with the same file. A
library of another process or container is never run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from nptltrace._files.elf import read_elf

__all__ = ["EXPECTED", "is_as_expected", "measured"]

_PROBE = Path(__file__).with_name("calibration_probe.py")
_SECONDS = 5
# The offsets in objects of the words on which threads sleep, in glibc 2.28 to 2.43. `next` is a
# writer that waits for another writer. For `owner` and `writer`, the offsets of the ids of the
# threads that hold a mutex and a rwlock.
EXPECTED = {
    "mutex": 0, "read": 8, "write": 8, "next": 12, "barrier": 4, "semaphore": 0, "once": 0,
    "owner": 8, "writer": 24,
}  # fmt: skip


def is_as_expected(build_id: str) -> bool:
    """Return whether waits in a library are as in known versions; False if it is not known.

    Args:
        build_id: The build-id of the library.
    """
    return bool(build_id) and build_id == _own_build_id() and measured() == EXPECTED


@cache
def _own_build_id() -> str:
    """Return the build-id of the C library of this process, or the empty string."""
    for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith(("libc.so", "libc-")):
            elf = read_elf(f"/{path}")
            return elf.build_id if elf is not None else ""
    return ""


@cache
def measured() -> dict[str, int]:
    """Return the offsets as in `EXPECTED`; offsets that were not found are missing."""
    command = [sys.executable, "-I", "-S", str(_PROBE)]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, check=True, stdin=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip
        return {str(kind): int(at) for kind, at in json.loads(done.stdout).items()}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
