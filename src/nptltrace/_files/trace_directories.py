"""Makes, locks and removes trace directories. Files that PTT did not make stay untouched."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path

from nptltrace._files.directories import Directory
from nptltrace.errors import PttError, UsageError

__all__ = [
    "beside", "candidate_of", "check", "free_name", "make", "open_own", "remove",
    "remove_candidate",
]  # fmt: skip

# Names that PTT makes in a trace directory, and in the directories inside. The mark `.claimed` of
# the handler `file` stays if its process was killed before the first packet.
_TRACE = r"stream-.*|metadata|\.untraced|\.claimed|\..*\.new"
_INFO = r"session\.json|processes\.jsonl|\.?symbols\.jsonl.*|\..*\.new"
_VIEW = r"\.?[a-z]+-[0-9a-f]{12}(-\d+)?"
_FOLDERS: dict[str, dict[str, str]] = {
    _TRACE: {"info": _INFO, ".ptt-view": _VIEW},
    _INFO: {"before": _TRACE},
    _VIEW: {},
}


def make(path: Path, *, force: bool) -> tuple[Directory, bool]:
    """Make a trace directory, or take an existing directory.

    Args:
        path: The directory. Its parent must exist.
        force: Whether to remove the trace in an existing directory. Otherwise it must be empty.

    Returns:
        The directory, locked, with an empty `info` in it, and whether it is new.

    Raises:
        UsageError: The directory is not empty and `force` is false, or it has files that do not
            belong to a trace, it belongs to another user, or a recording writes into it.
        PttError: The directory cannot be made.
    """
    try:
        return _made(path, force=force)
    except OSError as error:
        why = error.strerror
        absent = error.errno in {errno.ENOENT, errno.ENOTDIR}
        if absent and not os.path.isdir(path.parent):  # noqa: PTH112 -- raises nothing
            why = f"there is no directory {path.absolute().parent}; make it first"
        raise PttError(f"cannot make the trace directory {path}: {why}") from None


def free_name(name: str, *, force: bool) -> Path:
    """Return a free path for a trace directory that the user has not named.

    Args:
        name: The path, if it is free; otherwise a number is added.
        force: Whether a directory of this user counts as free.
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
    """Open a directory to write to the trace in it, and lock the directory.

    Raises:
        UsageError: The path is not a directory, it belongs to another user, or a recording writes
            into it.
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


def beside(trace: Path, begin: str, end: str) -> Path:
    """Return a path beside a trace directory, with a name that begins and ends as told.

    Between both stands the name of the trace, even if the path ends with `.` or `..`.
    """
    named = trace if trace.name not in {"", ".."} else trace.resolve()
    return named.with_name(f"{begin}{named.name}{end}")


def candidate_of(trace: Path) -> Path:
    """Return the path of the snapshot that a flight recorder has made and may still remove."""
    return beside(trace, ".", ".candidate")


def remove_candidate(trace: Path) -> None:
    """Remove that snapshot, if there is one."""
    with suppress(PttError, OSError):
        remove(open_own(candidate_of(trace)), whole=True)


def check(directory: Directory) -> None:
    """Refuse a directory with files that PTT does not make there.

    Raises:
        UsageError: There is such a file.
    """
    foreign = _foreign(directory, _TRACE)
    if foreign:
        raise UsageError(
            f"{directory.path} contains files that do not belong to a trace, such as {foreign}"
        )


def remove(directory: Directory, *, whole: bool) -> None:
    """Remove a trace that could not be completed, and close its directory.

    Args:
        directory: The directory.
        whole: Whether to remove the directory too, if it is empty then.
    """
    with suppress(OSError):
        _empty(directory, _TRACE)
    directory.close()
    if whole:
        with suppress(OSError):
            directory.path.rmdir()


def _made(path: Path, *, force: bool) -> tuple[Directory, bool]:
    try:
        path.mkdir()
    except FileExistsError:
        directory, new = _emptied(path, force=force), False
    else:
        directory, new = Directory.open(path), True
    try:
        if new:
            _lock(directory)
        directory.make("info").close()
    except BaseException:
        directory.close()
        if new:
            with suppress(OSError):
                path.rmdir()
        raise
    return directory, new


def _emptied(path: Path, *, force: bool) -> Directory:
    """Open an existing directory, and remove the trace in it if `force` allows that."""
    directory = open_own(path)
    try:
        _make_room(directory, force=force)
    except BaseException:
        directory.close()
        raise
    return directory


def _make_room(directory: Directory, *, force: bool) -> None:
    if not force and directory.names():
        raise UsageError(f"{directory.path} is not empty; pass --force to replace its contents")
    check(directory)
    _empty(directory, _TRACE)


def _refuse_others(directory: Directory) -> None:
    """Refuse a directory of another user, or a directory that a recording writes into."""
    if not directory.is_ours():
        raise UsageError(f"{directory.path} belongs to another user; name a directory of your own")
    _lock(directory)


def _lock(directory: Directory) -> None:
    # Without locks in the file system, nobody can tell whether a recording goes on.
    with suppress(OSError):
        if not directory.lock():
            raise UsageError(
                f"a recording writes into {directory.path} now; name another directory"
            )


def _foreign(directory: Directory, known: str) -> str:
    """Return the first path in a directory that PTT does not make there, or the empty text."""
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
    """Remove all entries that PTT makes in a directory."""
    folders = _FOLDERS[known]
    for name in directory.names():
        if name in folders and directory.has_folder(name):
            with directory.inside(name) as inner:
                _empty(inner, folders[name])
            os.rmdir(name, dir_fd=directory.fd)
        elif name in folders or re.fullmatch(known, name):
            directory.unlink(name)
