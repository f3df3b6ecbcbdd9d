"""Locks at which programs park threads that have nothing to do; they are listed in `gates.toml`."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

__all__ = ["gates_of", "is_gate"]


@cache
def _gates() -> tuple[tuple[list[str], list[str]], ...]:
    text = files(__package__).joinpath("gates.toml").read_text()
    return tuple((table["programs"], table["locks"]) for table in tomllib.loads(text).values())


def gates_of(program: str) -> list[str]:
    """Return the names of the variables in which a program has such locks.

    Args:
        program: Path of its executable.
    """
    name = program.rpartition("/")[2]
    return [
        lock
        for programs, locks in _gates()
        if any(fnmatchcase(name, one) for one in programs)
        for lock in locks
    ]


def is_gate(program: str, lock: str) -> bool:
    """Return whether a lock of a program is one at which it parks threads.

    Args:
        program: Path of its executable.
        lock: Name of the lock.
    """
    return lock.partition("+")[0] in gates_of(program)
