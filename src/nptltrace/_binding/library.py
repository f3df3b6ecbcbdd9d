"""Loads a C library, and turns its errors into exceptions.

A function gets its declared arguments when it is first used, so that a program pays only for what
it calls. The functions return 0, a count, or a negated errno value; `check` is where that becomes
an exception, which says what could not be done and what to do next.
"""

from __future__ import annotations

import ctypes
import errno
import os

from nptltrace import _paths
from nptltrace.errors import NativeError, PttError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["Library", "check", "words_of"]

_NEXT_STEP = {
    errno.ENOMEM: "give it more memory, or less of the trace at a time",
    errno.ENOSPC: "make room on that file system",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


class Library:
    """A C library.

    Args:
        name: Its file, as in `libpttread.so`.
        functions: Result and arguments of its functions, by name.
        version: The function that returns its version, and the one that the declarations are of.
        keeps_errno: Whether `ctypes.get_errno` is to have what its functions leave in errno.

    Raises:
        NativeFilesMissing: There is no such file.
        PttError: It belongs to another version.
    """

    def __init__(
        self,
        name: str,
        functions: Mapping[str, tuple[Any, tuple[Any, ...]]],
        version: tuple[str, int] | None = None,
        *,
        keeps_errno: bool = False,
    ) -> None:
        self._path = _paths.library(name)
        self._functions = functions
        self._loaded = ctypes.CDLL(os.fspath(self._path), use_errno=keeps_errno)
        if version is not None and getattr(self, version[0])() != version[1]:
            raise self._foreign()

    def __getattr__(self, name: str) -> Any:
        """Return a function, which is declared from now on."""
        try:
            result, arguments = self._functions[name]
        except KeyError:
            raise AttributeError(f"{self._path.name} has no {name}") from None
        try:
            function = getattr(self._loaded, name)
        except AttributeError:
            raise self._foreign() from None
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)
        return function

    def _foreign(self) -> PttError:
        return PttError(f"{self._path} belongs to another version of nptltrace: install both again")


def check(what: str, status: int) -> int:
    """Return a status that is not negative.

    Args:
        what: What was to be done, as in "read events".
        status: What the function returned.

    Raises:
        NativeError: The status is negative.
    """
    if status < 0:
        raise NativeError(f"cannot {what}", status, _NEXT_STEP.get(-status, ""))
    return status


def words_of(header: ModuleType, prefix: str) -> tuple[str, ...]:
    """Return what the constants of an enumeration that begins with 0 are called, as words.

    Args:
        header: The module of the header.
        prefix: What their names begin with; the constant that only counts them is not among them.
    """
    names = {name: value for name, value in vars(header).items() if name.startswith(prefix)}
    names.pop(f"{prefix}KINDS", None)
    ordered = sorted(names, key=lambda name: int(names[name]))
    return tuple(name.removeprefix(prefix).lower().replace("_", "-") for name in ordered)
