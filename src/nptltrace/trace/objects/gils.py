"""Finds the global interpreter locks (GILs) of CPython, and names their parts.

A GIL has two condition variables in `_PyRuntime`, each followed by its mutex. At the first
condition variable, threads wait for the GIL. At the second, a thread that has released the GIL
waits until another thread has taken it. A sub-interpreter may have its own GIL, on the heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nptltrace.trace.objects.conditions import Condition

__all__ = [
    "GIL",
    "GIL_PARTS",
    "HAND_OVER",
    "find_gils",
    "is_of_runtime",
    "name_of_part",
    "place_of_part",
]

_RUNTIME = "_PyRuntime"
GIL = "GIL"
# Bytes from the first condition variable to the second.
HAND_OVER = 88
# By distance in bytes from the first condition variable, as in glibc on x86-64.
GIL_PARTS = {
    0: GIL, 48: "GIL (mutex)", HAND_OVER: "GIL (hand-over)",
    HAND_OVER + 48: "GIL (mutex of the hand-over)",
}  # fmt: skip


def is_of_runtime(variable: str) -> bool:
    """Return whether a variable is a part of the interpreter's own state."""
    return variable.partition("+")[0] == _RUNTIME


def find_gils(
    conditions: Mapping[int, Condition], is_static: Callable[[int], bool]
) -> tuple[int, ...]:
    """Return the addresses of the GILs of a process: of their first condition variables.

    Args:
        conditions: The condition variables of the process, by address.
        is_static: Tells whether an address lies in a variable of the interpreter.

    Returns:
        First the GIL of the main interpreter, 0 if it has no event. Then the GILs of other
        interpreters, in the order of their first use. Empty if there are no GILs.
    """
    pairs = sorted(condition for condition in conditions if condition + HAND_OVER in conditions)
    main = next(filter(is_static, pairs), 0)
    others = [
        pair
        for pair in pairs
        if conditions[pair].own and conditions[pair + HAND_OVER].own and not is_static(pair)
    ]
    others.sort(key=lambda pair: conditions[pair].first_ns)
    return (main, *others) if main or others else ()


def name_of_part(gils: Sequence[int], address: int) -> str:
    """Return the name of the part of a GIL at an address, or the empty text."""
    for turn, gil in enumerate(gils, 1):
        name = GIL_PARTS.get(address - gil)
        if gil and name is not None:
            return name if turn == 1 else name.replace(GIL, f"{GIL} #{turn}", 1)
    return ""


def place_of_part(gils: Sequence[int], name: str) -> int | None:
    """Return the address of the part of a GIL with a name, or None."""
    places = (gil + part for gil in gils if gil for part in GIL_PARTS)
    return next((place for place in places if name_of_part(gils, place) == name), None)
