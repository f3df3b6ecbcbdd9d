"""Compact traces from plain traces, and plain traces back: the same trace in another coding."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._files.signature import signed
from nptltrace.errors import TraceFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from nptltrace.export.writing.target import Target

__all__ = ["place", "recode"]

_FOLDERS = ("info",)
_INNER = ("before",)


@contextmanager
def place(out: Target) -> Iterator[Path]:
    """Yield an empty directory that becomes the output, maybe in place of another trace.

    Raises:
        UsageError: The output exists and may not be replaced: a recording writes into it, it
            belongs to another user, or it has files that do not belong to a trace.
    """
    with ExitStack() as stack:
        if out.path is not None and out.path.is_dir():
            directory = stack.enter_context(trace_directories.open_own(out.path))
            trace_directories.check(directory)
        yield stack.enter_context(out.directory(r"(?s).*"))


def recode(source: Path, output: Path, *, compact: bool) -> tuple[int, int]:
    """Write a trace again, in the other coding.

    Everything but the coding of the stream files stays as it is, bit for bit.

    Args:
        source: The trace directory.
        output: An empty directory.
        compact: Whether to write compact stream files; False: plain CTF.

    Returns:
        The bytes of the stream files before, and after.

    Raises:
        TraceFormatError: A packet is damaged.
    """
    before = after = 0
    with Directory.open(source) as old, Directory.open(output) as new:
        metadata = old.read("metadata").decode("utf-8", "surrogateescape")
        _put(new, "metadata", signed(metadata, compact=compact))
        for name in sorted(old.names()):
            if not name.startswith("stream-") or old.has_folder(name):
                continue
            with _opened(old, name) as stream, os.fdopen(new.create(name), "wb") as file:
                before += os.fstat(stream.fileno()).st_size
                written, at = libpttread.recode(stream.fileno(), file.fileno(), compact=compact)
                if written is None:
                    raise TraceFormatError(source / name, at, "this packet is damaged")
                after += written
        _copy_folders(old, new, _FOLDERS)
    return before, after


def _opened(directory: Directory, name: str) -> BinaryIO:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.fdopen(os.open(name, flags, dir_fd=directory.fd), "rb")


def _put(directory: Directory, name: str, text: str) -> None:
    with os.fdopen(directory.create(name), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def _copy_folders(old: Directory, new: Directory, names: tuple[str, ...]) -> None:
    """Copy folders with their files, and the folders of a trace inside."""
    for name in names:
        if not old.has_folder(name):
            continue
        with old.inside(name) as source, new.make(name) as target:
            for entry in source.names():
                if not source.has_folder(entry):
                    _copy(source, target, entry)
            if names is not _INNER:
                _copy_folders(source, target, _INNER)


def _copy(source: Directory, target: Directory, name: str) -> None:
    with _opened(source, name) as file, os.fdopen(target.create(name), "wb") as copy:
        shutil.copyfileobj(file, copy)
