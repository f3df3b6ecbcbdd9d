"""Owns the objects that a C library returns.

An object belongs to a `Handle`, and ends when nothing refers to it any more:

- `close`, or the end of a `with` block, gives up the owner's reference. A call that is running in
  another thread, an array that shows memory of the object and a handle that depends on it each hold
  one as well, so none of them is left with memory that is gone, in whatever order they end.
- Nothing is released when the interpreter exits: a thread may still be inside the library, and the
  system takes everything back.
"""

from __future__ import annotations

import errno
import weakref
from typing import TYPE_CHECKING

from nptltrace._binding.library import check
from nptltrace.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["Handle", "own"]


def own(owner: object, release: Callable[..., object], *what: object) -> None:
    """Release something when nothing refers to its owner any more, but not at the exit.

    Args:
        owner: What uses it keeps a reference to this.
        release: Is called with `what`, once; must not refer to the owner.
        what: What is released, and what must outlive it.
    """
    weakref.finalize(owner, release, *what).atexit = False


class _Pointer:
    """A pointer as an argument. What uses it holds this, and it ends with the last of them."""

    __slots__ = ("__weakref__", "_as_parameter_")

    def __init__(self, address: int) -> None:
        self._as_parameter_ = address


class Handle:
    """Base of the classes that stand for an object of a C library."""

    _pointer: _Pointer | None = None

    def _own(
        self, what: str, address: int | None, release: Callable[..., object], *needs: object
    ) -> None:
        """Own what a function returned.

        Args:
            what: What was to be done, as in "open a reader".
            address: What it returned; NULL means that memory is out.
            release: Is called with the address, once; must not refer to this handle.
            needs: What must outlive it: handles, or anything else.
        """
        if not address:
            check(what, -errno.ENOMEM)
            return
        self._pointer = _Pointer(address)
        held = [need.handle if isinstance(need, Handle) else need for need in needs]
        own(self._pointer, _end, release, address, held)

    @property
    def handle(self) -> _Pointer:
        """The pointer, as an argument of the library's functions.

        Raises:
            ClosedError: The handle was closed.
        """
        if self._pointer is None:
            raise ClosedError(f"this {type(self).__name__} was closed")
        return self._pointer

    def close(self) -> None:
        """Give it up. It ends when nothing else uses it; may be called twice."""
        self._pointer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(release: Callable[..., object], address: int, _held: list[object]) -> None:
    """Release an object; what it needs is held until now."""
    release(address)
