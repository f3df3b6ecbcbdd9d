"""The addresses in a recorded call stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["stack_sites"]


def stack_sites(stacks: Mapping[int, tuple[int, int]], number: int) -> list[int]:
    """Return the addresses in a stack, the innermost first.

    Args:
        stacks: The stacks of a process: that of the caller, and an address.
        number: Of the stack.
    """
    found: list[int] = []
    while number in stacks and len(found) < len(stacks):
        number, address = stacks[number]
        found.append(address)
    return found
