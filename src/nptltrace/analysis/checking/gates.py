"""Locks at which programs park threads that have nothing to do; they are listed in `gates.toml`."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

__all__ = ["is_gate"]


@cache
def _gates() -> tuple[tuple[list[str], list[str]], ...]:
    text = files(__package__).joinpath("gates.toml").read_text()
    return tuple((table["programs"], table["locks"]) for table in tomllib.loads(text).values())


def is_gate(program: str, lock: str) -> bool:
    """Return whether a lock of a program is one at which it parks threads.

    Args:
        program: Path of its executable.
        lock: Name of the lock.
    """
    name = program.rpartition("/")[2]
    return any(
        any(fnmatchcase(name, one) for one in programs)
        and any(fnmatchcase(lock, one) for one in locks)
        for programs, locks in _gates()
    )
