"""How much processor time a kind of looks may use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Allowance"]


class Allowance:
    """Processor time that grows with time and is used by looks, as the body of a `with`.

    Args:
        share: The share of a processor.
        most_s: The largest allowance in s, and the allowance at the begin.
    """

    def __init__(self, share: float, most_s: float) -> None:
        self._share, self._most_s, self._left_s = share, most_s, most_s
        self._grown_s = self._begin_s = 0.0

    @property
    def left(self) -> bool:
        """Whether a look is allowed."""
        return self._left_s > 0

    def grow(self, now_s: float) -> None:
        """Add the allowance for the time since the last call.

        Args:
            now_s: The time of `time.monotonic()`.
        """
        passed_s = now_s - self._grown_s if self._grown_s else 0.0
        self._left_s = min(self._left_s + passed_s * self._share, self._most_s)
        self._grown_s = now_s

    def __enter__(self) -> Self:
        """Begin a look."""
        self._begin_s = time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End a look."""
        self._left_s -= time.process_time() - self._begin_s
