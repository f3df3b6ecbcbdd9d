"""Directories by descriptor. Names inside them are opened without following links.

Another user may write into the same directory, or may have sent it. So PTT creates only new files,
reads and writes only plain files, and removes names in this very directory only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from nptltrace._files.whole import read_descriptor
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Directory"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not make us wait for its other end.
_PRESENT = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LINKS_MOST = 40


class Directory:
    """An open directory.

    Args:
        path: Path for messages. By now the path may lead elsewhere.
        fd: The descriptor, which `close` closes.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> Directory:
        """Open a directory. The path may be a symbolic link of this user.

        Raises:
            UsageError: The path is a symbolic link of another user.
            OSError: There is no such directory.
        """
        place = path
        for _ in range(_LINKS_MOST):
            try:
                return cls(path, os.open(place, _FOLDER))
            except OSError as error:
                if error.errno not in {errno.ELOOP, errno.ENOTDIR} or not place.is_symlink():
                    raise
            link = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(link).st_uid != os.geteuid():
                    raise UsageError(f"{place} is a symbolic link of another user")
                place = place.parent / os.readlink("", dir_fd=link)
            finally:
                os.close(link)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))

    def close(self) -> None:
        """Close the directory, which releases its lock. You can call this twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def by_descriptor(self) -> Path:
        """A path that leads to this directory whatever becomes of its name."""
        return Path(f"/proc/self/fd/{self.fd}")

    # ---- the directory -------------------------------------------------------------------------

    def is_ours(self) -> bool:
        """Return whether the directory belongs to this user."""
        owner = os.fstat(self.fd).st_uid
        if owner == os.geteuid():
            return True
        # Some file systems give all files one owner: compare with a new directory inside.
        name = f".{os.getpid()}.new"
        try:
            os.mkdir(name, dir_fd=self.fd)
        except OSError:
            return False
        made = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_uid
        os.rmdir(name, dir_fd=self.fd)
        return made == owner

    def lock(self) -> bool:
        """Lock the directory until `close`, so that others know that it is in use (flock(2)).

        The lock works across namespaces, and ends with the process. This call does not wait.

        Returns:
            False if another process has the lock.

        Raises:
            OSError: The file system has no such locks.
        """
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return os.listdir(self.fd)  # noqa: PTH208 -- a descriptor

    def has_folder(self, name: str) -> bool:
        """Return whether an entry is a directory; a link to a directory is none."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode)

    def inside(self, name: str) -> Directory:
        """Open a directory inside this directory."""
        return Directory(self.path / name, os.open(name, _FOLDER, dir_fd=self.fd))

    def make(self, name: str) -> Directory:
        """Make a directory inside this directory, and open it."""
        os.mkdir(name, dir_fd=self.fd)
        return self.inside(name)

    # ---- files ---------------------------------------------------------------------------------

    def create(self, name: str, mode: int = 0o666) -> int:
        """Create a file and return its descriptor, open for writing.

        Raises:
            FileExistsError: There is an entry of that name, maybe a link.
        """
        return os.open(name, os.O_WRONLY | _NEW, mode, dir_fd=self.fd)

    def append(self, name: str) -> int:
        """Return a descriptor that appends to a file. Create the file if there is none."""
        with suppress(FileExistsError):
            return os.open(name, os.O_WRONLY | os.O_APPEND | _NEW, 0o666, dir_fd=self.fd)
        return self._present(name, os.O_WRONLY | os.O_APPEND)

    def read(self, name: str) -> bytes:
        """Return the contents of a file.

        Raises:
            OSError: There is no such file, it is not a plain file, or it is too large.
        """
        return read_descriptor(self._present(name, os.O_RDONLY), name)

    def replace(self, name: str, text: str) -> None:
        """Replace a file in one step: no reader sees half of it.

        If the disk is full and the text is no longer than the file, overwrite the file in place.
        Surrogates become the escapes of JSON.
        """
        data = text.encode("utf-8", "backslashreplace")
        temporary = f".{name}.{os.getpid()}.new"
        try:
            self.unlink(temporary)
            with os.fdopen(self.create(temporary), "wb") as file:
                file.write(data)
            os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError as error:
            with suppress(OSError):
                self.unlink(temporary)
            if error.errno not in {errno.ENOSPC, errno.EDQUOT} or not self._overwrite(name, data):
                raise

    def unlink(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def _overwrite(self, name: str, data: bytes) -> bool:
        """Overwrite a file without more room on the disk. Return whether the data fits."""
        try:
            with os.fdopen(self._present(name, os.O_WRONLY), "wb") as file:
                room = os.fstat(file.fileno()).st_size
                if len(data) <= room:
                    file.write(data.ljust(room, b"\n"))
                    return True
        except OSError:
            pass
        return False

    def _present(self, name: str, flags: int) -> int:
        """Open an existing plain file. To write, the file must not have a second name."""
        fd = os.open(name, flags | _PRESENT, dir_fd=self.fd)
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and (flags == os.O_RDONLY or status.st_nlink <= 1):
            return fd
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", os.fspath(self.path / name))
