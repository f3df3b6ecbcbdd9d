"""The places of the reports of `ptt guard`: directories that have no other files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from nptltrace._files.directories import Directory
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["check_file", "check_folder", "check_place", "make_place"]

_FILES = ("hang.json", "hang.txt", "stacks.txt", "tree.txt", "files.txt", "output.txt")
_CORE = re.compile(r"core\.[0-9]+")
# The search for a free name ends here.
_NAMES_MOST = 10_000


def check_folder(path: Path) -> None:
    """Refuse a directory in which no file can be made.

    Raises:
        UsageError: There is no such directory, or this user may not write into it.
    """
    if not path.is_dir():
        raise UsageError(f"there is no directory {path}; make it first")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write into the directory {path.absolute()}")


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written.

    Raises:
        UsageError: The file is a directory, or this user may not write it.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory")
    if not path.exists():
        check_folder(path.absolute().parent)
    elif not os.access(path, os.W_OK):
        raise UsageError(f"cannot write {path}")


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place where no report can be written.

    Raises:
        UsageError: The directory is not empty and `force` is false, or it has files that do not
            belong to a report, or it cannot be written or made.
    """
    if not path.exists() and not path.is_symlink():
        check_folder(path.absolute().parent)
        return
    try:
        with Directory.open(path) as directory:
            names = directory.names()
            is_ours = directory.is_ours()
    except OSError as error:
        raise UsageError(f"{path} is not a directory: {error.strerror}") from None
    if not is_ours:
        raise UsageError(f"{path} belongs to another user; name a directory of your own")
    if names and not force:
        raise UsageError(f"{path} is not empty; pass --force to replace the report in it")
    foreign = [name for name in names if not _is_own(name)]
    if foreign:
        raise UsageError(f"{path} contains files that do not belong to a report, such as "
                         f"{foreign[0]}")  # fmt: skip
    check_folder(path)


def make_place(path: Path, taken: Collection[Path], *, force: bool) -> Path:
    """Make the directory of a report, or clear it.

    If the directory is in use, the next free name is taken: DIR-2, DIR-3, and so on.

    Args:
        path: The wanted directory.
        taken: The directories of earlier reports of this guard.
        force: Replace reports of earlier guards.

    Returns:
        The directory, which is empty.

    Raises:
        PttError: No directory can be made.
    """
    base = path if path.name not in {"", ".."} else path.resolve()
    for number in range(1, _NAMES_MOST):
        place = path if number == 1 else base.with_name(f"{base.name}-{number}")
        try:
            if place not in taken and _is_made(place, force=force):
                return place
        except OSError as error:
            raise PttError(f"cannot make the directory {place}: {error.strerror}") from None
    raise PttError(f"there is no free name for a report beside {path}")


def _is_made(place: Path, *, force: bool) -> bool:
    """Make a directory, or clear a directory of reports; return False for other entries."""
    try:
        place.mkdir()
    except FileExistsError:
        pass
    else:
        return True
    try:
        with Directory.open(place) as directory:
            names = directory.names()
            is_free = (force or not names) and all(map(_is_own, names)) and directory.is_ours()
            for name in names if is_free else ():
                directory.unlink(name)
            return is_free
    except (NotADirectoryError, FileNotFoundError, PermissionError, UsageError):
        return False


def _is_own(name: str) -> bool:
    return name in _FILES or _CORE.fullmatch(name) is not None
