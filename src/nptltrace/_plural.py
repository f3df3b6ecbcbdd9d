"""The number of a noun, so that nobody reads of one events."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a noun as it goes with a number.

    Args:
        count: The number.
        noun: For one.
        many: For other numbers, if it does not just end in an s more.
    """
    return noun if count == 1 else many or f"{noun}s"
