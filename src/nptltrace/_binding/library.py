"""Loads C libraries, and turns their errors into exceptions.

A function gets its argument types on its first use, so that a program pays only for the functions
that it calls. The functions return 0, a count, or a negated errno value. `check` turns negative
values into exceptions that say what failed and what to do next.
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
        name: File name, such as `libpttread.so`.
        functions: Result and argument types of the functions, by name.
        version: The function that returns the version of the library, and the expected version.
        keeps_errno: Whether `ctypes.get_errno` returns the errno of the last call.

    Raises:
        NativeFilesMissing: There is no such file.
        PttError: The library belongs to another version of PTT.
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
        """Declare a function on its first use, and return it."""
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
    """Return a status, or raise an error if it is negative.

    Args:
        what: The attempted action, such as "read events".
        status: The return value of a C function.

    Raises:
        NativeError: The status is negative.
    """
    if status < 0:
        raise NativeError(f"cannot {what}", status, _NEXT_STEP.get(-status, ""))
    return status


def words_of(header: ModuleType, prefix: str) -> tuple[str, ...]:
    """Return the names of the constants of an enumeration, as words, in the order of their values.

    Args:
        header: The module of the header.
        prefix: The common prefix of the names. The constant `…KINDS`, a count, is left out.

    Returns:
        `PTT_FACT_LONG_HOLD` becomes `long-hold`.
    """
    names = {name: value for name, value in vars(header).items() if name.startswith(prefix)}
    names.pop(f"{prefix}KINDS", None)
    ordered = sorted(names, key=lambda name: int(names[name]))
    return tuple(name.removeprefix(prefix).lower().replace("_", "-") for name in ordered)
