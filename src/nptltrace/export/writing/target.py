"""The target of an export: a file, a directory, or standard output.

A file or directory gets its final name when it is complete. If something fails, it is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nptltrace.errors import UsageError, named

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Target"]


class Target:
    """A place for output.

    Args:
        path: The path; None for standard output.
        force: Whether to replace an existing file or directory.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *, force: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._force = force

    def __str__(self) -> str:
        """Return the name for messages."""
        return "standard output" if self.path is None else str(self.path)

    def written(self) -> int:
        """Return the number of bytes that were written so far, before the final name exists."""
        if self.path is None:
            return 0
        with suppress(OSError):
            part = self._part()
            files = part.rglob("*") if part.is_dir() else [part]
            return sum(file.stat().st_size for file in files)
        return 0

    @contextmanager
    def file(self) -> Iterator[BinaryIO]:
        """Open a new file, or standard output.

        Raises:
            UsageError: The file exists, or it cannot be created.
        """
        try:
            yield from self._file()
        except OSError as error:
            raise self._named(error) from None

    def _file(self) -> Iterator[BinaryIO]:
        if self.path is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a directory")
        if self.path.exists() and not self.path.is_file():
            with self.path.open("wb") as file:  # a pipe, a device
                yield file
            return
        if self.path.exists() and not self._force:
            raise UsageError(f"{self.path} exists (--force replaces it)")
        part = self._part()
        try:
            with part.open("xb") as file:  # refuses a file of another user
                yield file
            part.replace(self.path)
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def directory(self, made: str) -> Iterator[Path]:
        """Create a new directory, and yield the temporary path to fill.

        Args:
            made: A pattern of the paths of such an export. A directory with other paths is not
                replaced.

        Raises:
            UsageError: The directory exists and is not empty, or it cannot be created.
        """
        if self.path is None:
            raise UsageError(
                "cannot write a directory to standard output: name a directory with -o"
            )
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is not a directory")
        full = self.path.is_dir() and any(self.path.iterdir())
        if full and not self._force:
            raise UsageError(f"{self.path} is not empty (--force replaces it)")
        foreign = _foreign(self.path, made) if full else None
        if foreign is not None:
            raise UsageError(
                f"{self.path} contains files that do not belong to an export, such as {foreign}"
            )
        part = self._part()
        try:
            part.mkdir()
            yield part
            if full:
                shutil.rmtree(self.path)
            part.replace(self.path)
        except OSError as error:
            raise self._named(error) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _part(self) -> Path:
        """Return a temporary path in the directory of the final path."""
        assert self.path is not None  # noqa: S101 -- the callers check this
        path = self.path.absolute()
        return path.with_name(f".{path.name}.{os.getpid()}.part")

    def _named(self, error: OSError) -> OSError:
        """Return the error with the final path in place of the temporary path."""
        if self.path is not None and error.filename in {self._part(), str(self._part())}:
            error.filename = None
        return named(error, str(self))


def _foreign(directory: Path, made: str) -> str | None:
    """Return the path of a file or link in a directory that no export creates, or None."""
    for place, folders, files in os.walk(directory):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in (*files, *links):
            path = Path(place, name).relative_to(directory).as_posix()
            if name in links or not re.fullmatch(made, path):
                return path
    return None
