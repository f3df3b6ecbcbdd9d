"""Where the global interpreter lock of CPython lies, and what its parts are called.

The interpreter has two conditions for it, each with its mutex behind it, one after the other in
`_PyRuntime`: on the first one threads wait that want the lock, on the second one a thread that has
given it up waits until another one has it. A sub-interpreter may have a lock of its own, which lies
on the heap.
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
# From the first condition to the second.
HAND_OVER = 88
# By distance in bytes from the first condition, as in glibc on x86-64.
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
    """Return the addresses of the first conditions of a process's GILs.

    Args:
        conditions: The conditions of the process, by address.
        is_static: Says whether an address lies in a variable of the interpreter.

    Returns:
        The address for the main interpreter first, 0 if no event is about it; then the addresses
        for other interpreters, in the order of their first use. Nothing if there are none.
    """
    pairs = sorted(condition for condition in conditions if condition + HAND_OVER in conditions)
    main = next(filter(is_static, pairs), 0)
    others = [
        pair
        for pair in pairs
        if conditions[pair].own and conditions[pair + HAND_OVER].own and not is_static(pair)
    ]
    others.sort(key=lambda one: conditions[one].first_ns)
    return (main, *others) if main or others else ()


def name_of_part(gils: Sequence[int], address: int) -> str:
    """Return the name of an address as a part of a GIL of the process, or the empty text."""
    for turn, gil in enumerate(gils, 1):
        name = GIL_PARTS.get(address - gil)
        if gil and name is not None:
            return name if turn == 1 else name.replace(GIL, f"{GIL} #{turn}", 1)
    return ""


def place_of_part(gils: Sequence[int], name: str) -> int | None:
    """Return the address of the part of a process's GILs that has a name; None for none."""
    places = (gil + part for gil in gils if gil for part in GIL_PARTS)
    return next((place for place in places if name_of_part(gils, place) == name), None)
