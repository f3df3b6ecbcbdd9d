"""Lets another thread cancel work that goes through events."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CancelledError", "ensure_wanted", "stoppable"]


class CancelledError(Exception):
    """The work was cancelled: nobody wants its result."""


class _Work(threading.local):
    """The event that cancels the work of this thread; None: nobody can cancel it."""

    unwanted: threading.Event | None = None


_work = _Work()


@contextmanager
def stoppable(unwanted: threading.Event) -> Iterator[None]:
    """Do the work of this block until another thread cancels it; see `ensure_wanted`.

    Args:
        unwanted: Another thread sets this event to cancel the work.
    """
    before, _work.unwanted = _work.unwanted, unwanted
    try:
        yield
    finally:
        _work.unwanted = before


def ensure_wanted() -> None:
    """Stop the work of this thread if another thread has cancelled it.

    Raises:
        CancelledError: The work was cancelled.
    """
    if _work.unwanted is not None and _work.unwanted.is_set():
        raise CancelledError("not wanted any more")
