"""The steps of a search: a trace with very many locks must not keep it busy for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["Steps"]

_MOST = 1_000_000


class Steps:
    """Counts the steps of a search, and ends it when there are too many.

    Args:
        what: What the search looks for, for the message to the user.
        say: Called once with this message, if the search ends early.
        most: The number of steps.
    """

    def __init__(self, what: str, say: Callable[[str], None], most: int = _MOST) -> None:
        self._what, self._say, self._left = what, say, most

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, each as a step, while there are steps left."""
        for item in items:
            if self._left <= 0:
                if self._left == 0:
                    self._left = -1
                    self._say(f"too many {self._what}: not all of them are searched")
                return
            self._left -= 1
            yield item
