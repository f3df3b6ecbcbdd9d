"""Directories by descriptor, in which no link is followed.

Another user may write into a directory beside us, or may have sent it. So a file is made new or not
at all, only what is a plain file is read or written, and what is removed is the name in this very
directory.
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
        path: What to call it in messages; its name may lead elsewhere by now.
        fd: The descriptor, which `close` closes.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> Directory:
        """Open a directory. A link is followed if it is this user's own.

        Raises:
            UsageError: It is a symbolic link of another user.
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
        """Close it, which gives its lock back. May be called twice."""
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

    # ---- what it is ----------------------------------------------------------------------------

    def is_ours(self) -> bool:
        """Return whether it is this user's: what is made in it has the same owner as itself."""
        owner = os.fstat(self.fd).st_uid
        if owner == os.geteuid():
            return True
        # Some file systems have one owner for everything.
        name = f".{os.getpid()}.new"
        try:
            os.mkdir(name, dir_fd=self.fd)
        except OSError:
            return False
        made = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_uid
        os.rmdir(name, dir_fd=self.fd)
        return made == owner

    def lock(self) -> bool:
        """Take the lock that shows all others that somebody is at work in it, until it is closed.

        It holds across namespaces, and ends with the process.

        Returns:
            Whether nobody else had it.

        Raises:
            OSError: The file system has no such locks.
        """
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def names(self) -> list[str]:
        """Return what is in it."""
        return os.listdir(self.fd)  # noqa: PTH208 -- a descriptor

    def has_folder(self, name: str) -> bool:
        """Return whether there is a directory of that name, and no link to one."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode)

    def inside(self, name: str) -> Directory:
        """Open a directory in it."""
        return Directory(self.path / name, os.open(name, _FOLDER, dir_fd=self.fd))

    def make(self, name: str) -> Directory:
        """Make a directory in it."""
        os.mkdir(name, dir_fd=self.fd)
        return self.inside(name)

    # ---- files ---------------------------------------------------------------------------------

    def create(self, name: str, mode: int = 0o666) -> int:
        """Return a descriptor of a new file.

        Raises:
            FileExistsError: The name is taken, by a link as well.
        """
        return os.open(name, os.O_WRONLY | _NEW, mode, dir_fd=self.fd)

    def append(self, name: str) -> int:
        """Return a descriptor that writes at the end of a file, made if there is none."""
        with suppress(FileExistsError):
            return os.open(name, os.O_WRONLY | os.O_APPEND | _NEW, 0o666, dir_fd=self.fd)
        return self._present(name, os.O_WRONLY | os.O_APPEND)

    def read(self, name: str) -> bytes:
        """Return what is in a file.

        Raises:
            OSError: There is no such file, it is no plain one, or too large.
        """
        return read_descriptor(self._present(name, os.O_RDONLY), name)

    def replace(self, name: str, text: str) -> None:
        """Replace a file so that no reader ever sees half of it.

        On a full disk it is written over where it lies, if it has become no longer. Bytes that are
        no UTF-8 become what JSON has for them.
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
        """Remove a file, or a link itself; it may be gone."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def _overwrite(self, name: str, data: bytes) -> bool:
        """Write into the room that a file has already. Return whether it was enough."""
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
        """Open a file that is there: a plain one, which has no other name if it is written to."""
        fd = os.open(name, flags | _PRESENT, dir_fd=self.fd)
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and (flags == os.O_RDONLY or status.st_nlink <= 1):
            return fd
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", os.fspath(self.path / name))
