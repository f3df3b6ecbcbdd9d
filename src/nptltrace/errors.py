"""Errors of PTT. All errors that a caller may want to catch are a `PttError`."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "ClosedError",
    "NativeError",
    "NativeFilesMissing",
    "PttError",
    "TraceFormatError",
    "UsageError",
    "error_name",
    "named",
    "near",
    "one_line",
]


class PttError(Exception):
    """Base of all errors that PTT raises; the command line prints the text without a traceback.

    Attributes:
        exit_status: Exit status of `ptt` if the error ends it.
    """

    exit_status: int = 2


class UsageError(PttError):
    """The caller asked for something impossible, or for something that does not exist."""


class ClosedError(PttError, ValueError):
    """The caller used something after its `close()`."""


class TraceFormatError(PttError):
    """A trace on disk breaks the format.

    Args:
        path: The broken file.
        offset: Place in the file, in bytes; None for the file as a whole.
        reason: The fault.
    """

    def __init__(self, path: str | os.PathLike[str], offset: int | None, reason: str) -> None:
        self.path = os.fspath(path)
        self.offset = offset
        self.reason = reason
        where = self.path if offset is None else f"{self.path}: byte {offset}"
        super().__init__(f"{where}: {reason}")


class NativeError(PttError):
    """A call of a C library of PTT, or of the system, failed.

    Args:
        what: The failed action, such as "cannot map segment".
        errno: The error number, positive or negated.
        next_step: Advice for the user, such as "make room on that file system".
    """

    def __init__(self, what: str, errno: int, next_step: str = "") -> None:
        self.what = what
        self.errno = abs(errno)
        text = f"{what}: {os.strerror(self.errno)}"
        super().__init__(f"{text}; {next_step}" if next_step else text)


class NativeFilesMissing(PttError):  # noqa: N818 -- the name is a sentence
    """A native file of the package was not found.

    Args:
        name: The missing file.
        looked_in: All places that were searched, in order.
    """

    def __init__(self, name: str, looked_in: Sequence[str]) -> None:
        self.name = name
        self.looked_in = tuple(looked_in)
        super().__init__(f"{name} not found; looked in {', '.join(self.looked_in) or 'no place'}")


def named(error: OSError, name: str) -> OSError:
    """Set the file name of a system error; errors of open files have none.

    Args:
        error: The error.
        name: The file name, used only if the error has none.

    Returns:
        The same error.
    """
    if error.filename is None:
        error.filename = name
    return error


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, with the file name of a system error."""
    text = str(error)
    if isinstance(error, OSError) and not isinstance(error, PttError) and error.strerror:
        # Arrow puts its own words before the words of the system.
        text = error.strerror.rpartition(f"[errno {error.errno}] ")[2]
        if error.filename is not None:
            text = f"{os.fsdecode(error.filename)}: {text}"
    return " ".join(text.split())


def error_name(number: int) -> str:
    """Return the POSIX name of an error number, such as `EBUSY`, or the number as text."""
    return "EDEADLK" if number == errno.EDEADLK else errno.errorcode.get(number, str(number))


def near(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: `; did you mean …?`, or nothing.

    Args:
        name: The unknown name.
        known: The names to suggest; at most three similar names are used.
    """
    from difflib import get_close_matches

    similar = get_close_matches(name, list(known), 3, 0.6)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""
