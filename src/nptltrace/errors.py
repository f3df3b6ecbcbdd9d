"""Errors of PTT: everything a caller may want to catch is a `PttError`."""

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
    """Base of all errors raised on purpose; the command line shows its text and no traceback.

    Attributes:
        exit_status: What `ptt` exits with when the error reaches it.
    """

    exit_status: int = 2


class UsageError(PttError):
    """The caller asked for something that makes no sense or does not exist."""


class ClosedError(PttError, ValueError):
    """The caller used something after its `close()`."""


class TraceFormatError(PttError):
    """A trace on disk is not what the format says.

    Args:
        path: The file that is broken.
        offset: Where in it, in bytes, or None when the file as a whole is meant.
        reason: What was expected or found there.
    """

    def __init__(self, path: str | os.PathLike[str], offset: int | None, reason: str) -> None:
        self.path = os.fspath(path)
        self.offset = offset
        self.reason = reason
        where = self.path if offset is None else f"{self.path}: byte {offset}"
        super().__init__(f"{where}: {reason}")


class NativeError(PttError):
    """A call into one of the C libraries, or into the system, failed.

    Args:
        what: What was being done, as in "cannot map segment".
        errno: The error number, positive or negated.
        next_step: What the user can do about it, as in "make room on that file system".
    """

    def __init__(self, what: str, errno: int, next_step: str = "") -> None:
        self.what = what
        self.errno = abs(errno)
        text = f"{what}: {os.strerror(self.errno)}"
        super().__init__(f"{text}; {next_step}" if next_step else text)


class NativeFilesMissing(PttError):  # noqa: N818 -- reads as the sentence it reports
    """The libraries that belong to the package were not found.

    Args:
        name: The file that was looked for.
        looked_in: Every place where it was looked for, in order.
    """

    def __init__(self, name: str, looked_in: Sequence[str]) -> None:
        self.name = name
        self.looked_in = tuple(looked_in)
        super().__init__(f"{name} not found; looked in {', '.join(self.looked_in) or 'no place'}")


def named(error: OSError, name: str) -> OSError:
    """Return an error of the system's that says what it is about, as those of open files do not.

    Args:
        error: The error.
        name: What it is about, unless it says so itself.
    """
    if error.filename is None:
        error.filename = name
    return error


def one_line(error: BaseException) -> str:
    """Return what an error says to the user: words, and what they are about."""
    text = str(error)
    if isinstance(error, OSError) and not isinstance(error, PttError) and error.strerror:
        # Arrow puts what it did before what the system said.
        text = error.strerror.rpartition(f"[errno {error.errno}] ")[2]
        if error.filename is not None:
            text = f"{os.fsdecode(error.filename)}: {text}"
    return " ".join(text.split())


def error_name(number: int) -> str:
    """Return the name that POSIX has for an error number, or the number itself."""
    return "EDEADLK" if number == errno.EDEADLK else errno.errorcode.get(number, str(number))


def near(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: which known ones are like it."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), 3, 0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""
