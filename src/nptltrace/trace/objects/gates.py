"""Locks at which programs park threads that have nothing to do; they are listed in `gates.toml`."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["gates_of", "is_gate", "waits_for_turn"]


@cache
def _gates() -> tuple[dict[str, list[str]], ...]:
    text = files(__package__).joinpath("gates.toml").read_text()
    return tuple(tomllib.loads(text).values())


def gates_of(program: str) -> list[str]:
    """Return the names of the variables in which a program has such locks.

    Args:
        program: Path of its executable.
    """
    name = program.rpartition("/")[2]
    return [
        lock
        for table in _gates()
        if any(fnmatchcase(name, one) for one in table.get("programs", ()))
        for lock in table["locks"]
    ]


def is_gate(program: str, lock: str) -> bool:
    """Return whether a lock of a program is one at which it parks threads.

    Args:
        program: Path of its executable.
        lock: Name of the lock.
    """
    return lock.partition("+")[0] in gates_of(program)


def waits_for_turn(stack: Iterable[str]) -> bool:
    """Return whether a thread waits for its turn to wait for work, and nobody keeps it from work.

    Args:
        stack: The frames of the thread, as text.
    """
    patterns = [pattern for table in _gates() for pattern in table.get("waiters", ())]
    return any(fnmatchcase(frame, pattern) for frame in stack for pattern in patterns)
