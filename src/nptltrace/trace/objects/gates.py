"""Where threads wait that have nothing to do, or sleep; it is listed in `gates.toml`."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from nptltrace.trace.passed_over import bare_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["gates_of", "is_gate", "is_sleep", "waits_for_turn"]


@cache
def _gates() -> tuple[dict[str, list[str]], ...]:
    text = files(__package__).joinpath("gates.toml").read_text()
    return tuple(tomllib.loads(text).values())


@cache
def _sleeps() -> dict[str, list[str]]:
    """Return patterns of functions by the file name of the module."""
    return {module: table["sleeps"] for table in _gates() for module in table.get("modules", ())}


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
        for lock in table.get("locks", ())
    ]


def is_gate(program: str, lock: str) -> bool:
    """Return whether a lock of a program is one at which it parks threads.

    Args:
        program: Path of its executable.
        lock: Name of the lock.
    """
    return lock.partition("+")[0] in gates_of(program)


def is_sleep(function: str, module: str) -> bool:
    """Return whether threads wait in a function for time to pass, and for nothing else.

    Args:
        function: Its name, demangled.
        module: File name of its module.
    """
    patterns = _sleeps().get(module)
    return patterns is not None and any(
        fnmatchcase(bare_name(function), pattern) for pattern in patterns
    )


def waits_for_turn(stack: Iterable[str]) -> bool:
    """Return whether a thread waits for its turn to wait for work, and nobody keeps it from work.

    Args:
        stack: The frames of the thread, as text.
    """
    patterns = [pattern for table in _gates() for pattern in table.get("waiters", ())]
    return any(fnmatchcase(frame, pattern) for frame in stack for pattern in patterns)
