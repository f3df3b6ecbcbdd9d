"""Lets another thread stop work that goes through events."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CancelledError", "ensure_wanted", "stoppable"]


class CancelledError(Exception):
    """Work was stopped because nobody wants its result."""


class _Work(threading.local):
    """What this thread works for; at first work that nobody can stop."""

    unwanted: threading.Event | None = None


_work = _Work()


@contextmanager
def stoppable(unwanted: threading.Event) -> Iterator[None]:
    """Do the work of this block for as long as it is wanted; see `ensure_wanted`.

    Args:
        unwanted: Is set by another thread when the result is not wanted any more.
    """
    before, _work.unwanted = _work.unwanted, unwanted
    try:
        yield
    finally:
        _work.unwanted = before


def ensure_wanted() -> None:
    """Raise an error if the work of this thread is not wanted any more.

    Raises:
        CancelledError: It was stopped.
    """
    if _work.unwanted is not None and _work.unwanted.is_set():
        raise CancelledError("not wanted any more")
