"""Trace directories: made, locked while somebody writes them, and emptied of nothing else."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path

from nptltrace._files.directories import Directory
from nptltrace.errors import PttError, UsageError

__all__ = ["check", "free_name", "make", "open_own", "remove"]

# What PTT makes in a trace directory, and in the directories in it. The mark of the handler
# `file` stays where its process was killed before the first packet.
_TRACE = r"stream-.*|metadata|\.untraced|\.claimed|\..*\.new"
_INFO = r"session\.json|processes\.jsonl|\.?symbols\.jsonl.*|\..*\.new"
_VIEW = r"\.?[a-z]+-[0-9a-f]{12}(-\d+)?"
_FOLDERS: dict[str, dict[str, str]] = {
    _TRACE: {"info": _INFO, ".ptt-view": _VIEW},
    _INFO: {"before": _TRACE},
    _VIEW: {},
}


def make(path: Path, *, force: bool) -> tuple[Directory, bool]:
    """Make a trace directory, or take an empty one; with `force`, empty one that holds a trace.

    Returns:
        The directory, locked, with an empty `info` in it, and whether it is new.

    Raises:
        UsageError: It holds something, and `force` is not given, or it is no trace; it belongs to
            another user, or a recording writes into it.
        PttError: It cannot be made.
    """
    try:
        path.mkdir()
    except FileExistsError:
        directory, new = _taken(path, force=force), False
    except OSError as error:
        parent = path.absolute().parent
        why = (
            error.strerror if parent.is_dir() else f"there is no directory {parent}; make it first"
        )
        raise PttError(f"cannot make the trace directory {path}: {why}") from None
    else:
        directory, new = Directory.open(path), True
        _lock(directory)
    try:
        directory.make("info").close()
    except OSError as error:
        directory.close()
        raise PttError(f"cannot make the trace directory {path}: {error.strerror}") from None
    return directory, new


def free_name(name: str, *, force: bool) -> Path:
    """Return the path of a trace directory that the user has not named: one that is free.

    Args:
        name: What to call it, if that is free.
        force: Take the name all the same if this user's directory has it.
    """
    for number in count(1):
        path = Path(name if number == 1 else f"{name}-{number}")
        try:
            status = path.lstat()
        except OSError:
            return path
        if force and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            return path
    raise AssertionError


def open_own(path: Path) -> Directory:
    """Open a directory to write to a trace in it, and lock it.

    Raises:
        UsageError: It is none, it belongs to another user, or a recording writes into it.
    """
    try:
        directory = Directory.open(path)
    except OSError as error:
        raise UsageError(f"{path} is not a directory: {error.strerror}") from None
    try:
        _refuse_others(directory)
    except BaseException:
        directory.close()
        raise
    return directory


def check(directory: Directory) -> None:
    """Refuse a directory with anything in it that PTT does not make there.

    Raises:
        UsageError: There is such a thing.
    """
    foreign = _foreign(directory, _TRACE)
    if foreign:
        raise UsageError(
            f"{directory.path} contains files that do not belong to a trace, such as {foreign}"
        )


def remove(directory: Directory, *, whole: bool) -> None:
    """Remove a trace that did not come about, and close its directory.

    Args:
        directory: The directory.
        whole: Remove the directory too, if nothing else is in it.
    """
    with suppress(OSError):
        _empty(directory, _TRACE)
    directory.close()
    if whole:
        with suppress(OSError):
            directory.path.rmdir()


def _taken(path: Path, *, force: bool) -> Directory:
    """Return a directory that was there before, empty now."""
    directory = open_own(path)
    try:
        _make_room(directory, force=force)
    except BaseException:
        directory.close()
        raise
    return directory


def _make_room(directory: Directory, *, force: bool) -> None:
    """Remove the trace that a directory holds, if that is allowed."""
    path = directory.path
    if not force and directory.names():
        raise UsageError(f"{path} is not empty; pass --force to replace its contents")
    check(directory)
    _empty(directory, _TRACE)


def _refuse_others(directory: Directory) -> None:
    """Refuse a directory of another user, and one that a recording writes into."""
    if not directory.is_ours():
        raise UsageError(f"{directory.path} belongs to another user; name a directory of your own")
    _lock(directory)


def _lock(directory: Directory) -> None:
    # Where the file system has no locks, nobody can know.
    with suppress(OSError):
        if not directory.lock():
            raise UsageError(
                f"a recording writes into {directory.path} now; name another directory"
            )


def _foreign(directory: Directory, known: str) -> str:
    """Return what PTT has not made in a directory of a trace, empty if it has made everything."""
    folders = _FOLDERS[known]
    for name in sorted(directory.names()):
        is_folder = directory.has_folder(name)
        if is_folder and name in folders:
            with directory.inside(name) as inner:
                foreign = _foreign(inner, folders[name])
            if foreign:
                return f"{name}/{foreign}"
        elif is_folder or not (name in folders or re.fullmatch(known, name)):
            return name
    return ""


def _empty(directory: Directory, known: str) -> None:
    folders = _FOLDERS[known]
    for name in directory.names():
        if name in folders and directory.has_folder(name):
            with directory.inside(name) as inner:
                _empty(inner, folders[name])
            os.rmdir(name, dir_fd=directory.fd)
        elif name in folders or re.fullmatch(known, name):
            directory.unlink(name)
