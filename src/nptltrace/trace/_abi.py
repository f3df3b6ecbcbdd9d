"""Loads a library of the analyses, and owns what it returns."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

from nptltrace.errors import NativeError, PttError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


def load(
    path: Path, prototypes: Mapping[str, tuple[Any, Sequence[Any]]], says: str, version: int
) -> ctypes.CDLL:
    """Load one of the native libraries.

    Args:
        path: Its file.
        prototypes: Result and arguments of its functions, by name.
        says: The function that returns its version.
        version: The one that fits.

    Raises:
        PttError: It belongs to another version.
    """
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    if getattr(lib, says)() != version:
        raise PttError(f"{path} belongs to another version of nptltrace: install both again")
    return lib


def check(what: str, status: int) -> int:
    """Return a status that is not negative; raise for one that is."""
    if status < 0:
        raise NativeError(f"cannot {what}", status)
    return status


def own(owner: object, release: Callable[..., object], *what: Any) -> weakref.finalize[..., Any]:
    """Release something when nobody refers to its owner any more; each handle is owned so.

    Nothing is released at the interpreter's exit: a thread may still be in it, and the system takes
    everything back.

    Args:
        owner: Whoever uses it keeps a reference to this.
        release: Is called with `what`, once; must not refer to the owner.
        what: What is released, and what must outlive it.
    """
    ending = weakref.finalize(owner, release, *what)
    ending.atexit = False
    return ending


def made(what: str, pointer: int | None) -> int:
    """Return a handle; raise for NULL, which always means that memory is out."""
    if not pointer:
        import errno

        raise NativeError(f"cannot {what}", errno.ENOMEM)
    return pointer
