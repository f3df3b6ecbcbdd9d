"""Where the global interpreter lock of CPython lies, and what its parts are called.

The interpreter has two conditions for it, each with its mutex behind it, one after the other in
`_PyRuntime`: on the first one threads wait that want the lock, on the second one a thread that has
given it up waits until another one has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["GIL", "GIL_PARTS", "HAND_OVER", "find_gil", "is_of_runtime"]

_RUNTIME = "_PyRuntime"
GIL = "GIL"
# From the first condition to the second.
HAND_OVER = 88
# By distance from the first condition; those of glibc on x86-64.
GIL_PARTS = {
    0: GIL, 48: "GIL (mutex)", HAND_OVER: "GIL (hand-over)",
    HAND_OVER + 48: "GIL (mutex of the hand-over)",
}  # fmt: skip


def is_of_runtime(variable: str) -> bool:
    """Return whether a variable is a part of the interpreter's own state."""
    return variable.partition("+")[0] == _RUNTIME


def find_gil(conditions: Collection[int], is_static: Callable[[int], bool]) -> int:
    """Return the address of the first condition of a process's GIL, 0 if there is none.

    Args:
        conditions: Addresses of conditions of the process.
        is_static: Says whether an address is one of a variable of the interpreter.
    """
    pairs = (one for one in sorted(conditions) if one + HAND_OVER in conditions)
    return next(filter(is_static, pairs), 0)
