"""Numbers for what a file names once and refers to by number: strings, functions, frames."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Numbers"]

Key = TypeVar("Key")


class Numbers(dict[Key, int]):
    """Numbers keys as they are asked for, one after the other.

    Args:
        first: The number of the first key.
    """

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: Key) -> int:
        """Number a key that was not asked for before."""
        number = self[key] = self._first + len(self)
        return number
