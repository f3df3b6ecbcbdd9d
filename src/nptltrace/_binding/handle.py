"""Owns the objects that a C library returns.

An object belongs to a `Handle`. The object is destroyed with the last reference to it:

- `close`, or the end of a `with` block, drops the reference of the handle. Other references belong
  to a call that runs in another thread, to an array over memory of the object, and to a handle that
  depends on the object. So the memory is valid for all of them, in whatever order they end.
- Nothing is destroyed when the interpreter exits: a thread may still be inside the library, and the
  kernel frees the memory.
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
    """Call `release(*what)` once, with the last reference to an object, but not at exit.

    Args:
        owner: The object. All users of the resource hold a reference to it.
        release: The function; must not refer to the owner.
        what: The arguments: the resource, and objects that must live as long as the resource.
    """
    weakref.finalize(owner, release, *what).atexit = False


class _Pointer:
    """A pointer as an argument. Users of the pointer hold this object; see `own`."""

    __slots__ = ("__weakref__", "_as_parameter_")

    def __init__(self, address: int) -> None:
        self._as_parameter_ = address


class Handle:
    """Base of the classes that own an object of a C library."""

    _pointer: _Pointer | None = None

    def _own(
        self, what: str, address: int | None, release: Callable[..., object], *needs: object
    ) -> None:
        """Own an object that a function returned.

        Args:
            what: The attempted action, such as "open a reader".
            address: Address of the object; NULL means that there was no memory.
            release: Destroys the object, called once with the address; must not refer to `self`.
            needs: Handles and other objects that must live as long as the object.

        Raises:
            NativeError: The address is NULL.
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
        """Drop the reference to the object. A second call does nothing."""
        self._pointer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(release: Callable[..., object], address: int, _held: list[object]) -> None:
    """Release an object. The finalizer holds the objects that it needs until now."""
    release(address)
