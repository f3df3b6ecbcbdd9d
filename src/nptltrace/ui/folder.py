"""The hidden directory of a trace. The viewer keeps results there that take long to compute.

The files may have come with the trace from somebody else. So the viewer follows no link there, and
checks everything that it reads.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from nptltrace._version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.trace.traceset import Traceset

__all__ = ["Folder", "identity_of"]

_NAME = ".ptt-view"
_UNFINISHED = re.compile(r"\.[a-z]+-[0-9a-f]{12}-(?P<pid>\d+)")
# Grows with each change of the kept files, or of the rules of the model.
_LAYOUT = 10


def identity_of(source: Traceset) -> bytes:
    """Return a digest of 32 bytes of the traces and of the version that makes the kept files."""
    return source.identity(f"{__version__} {_LAYOUT}")


class Folder:
    """Files by name in the hidden directory of a trace, or in a temporary directory.

    The temporary directory is used if the trace directory is not writable.

    Args:
        source: The opened traces. The directory is in the first trace.

    Attributes:
        place: Path of the directory.
    """

    def __init__(self, source: Traceset) -> None:
        from hashlib import sha256

        uuids = b"".join(trace.metadata.uuid.bytes for trace in source.traces)
        self._prefix = sha256(uuids).hexdigest()[:12]
        self._fd = _opened(source.traces[0].path)
        self.place = str(source.traces[0].path / _NAME)
        if self._fd is not None:
            _sweep(self._fd)
        else:
            self.leave()

    def read(self, name: str) -> int | None:
        """Return a descriptor of a file, or None if there is none."""
        if self._fd is None:
            return None
        with suppress(OSError):
            fd = os.open(
                f"{name}-{self._prefix}",
                os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                dir_fd=self._fd,
            )
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
        return None

    def create(self, name: str) -> int:
        """Return a descriptor of a new file. `keep` then gives the file its name."""
        if self._fd is not None:
            with suppress(OSError):
                temporary = self._temporary(name)
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=self._fd)
                return os.open(
                    temporary,
                    os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                    0o600,
                    dir_fd=self._fd,
                )
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())

    def keep(self, name: str) -> None:
        """Give a new file its name. A file with its name is complete."""
        if self._fd is not None:
            with suppress(OSError):
                os.rename(
                    self._temporary(name), f"{name}-{self._prefix}",
                    src_dir_fd=self._fd, dst_dir_fd=self._fd,
                )  # fmt: skip

    def drop(self, name: str) -> None:
        """Remove a new file. A process that has the file open can still use it."""
        if self._fd is not None:
            with suppress(OSError):
                os.unlink(self._temporary(name), dir_fd=self._fd)

    def leave(self) -> bool:
        """Move to a temporary directory, as the trace has no room; False if already in it."""
        there = self._fd is not None
        self.close()
        self.place = tempfile.gettempdir()
        return there

    def close(self) -> None:
        """Close the directory."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _temporary(self, name: str) -> str:
        return f".{name}-{self._prefix}-{os.getpid()}"


def _sweep(directory: int) -> None:
    """Remove unfinished files of viewers that were killed."""
    for name in os.listdir(directory):
        unfinished = _UNFINISHED.fullmatch(name)
        if unfinished is not None and not os.path.exists(f"/proc/{unfinished['pid']}"):  # noqa: PTH110
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)


def _opened(path: Path) -> int | None:
    """Return a descriptor of the hidden directory, made if needed; None if it is unusable."""
    try:
        trace = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with suppress(FileExistsError):
            os.mkdir(_NAME, 0o700, dir_fd=trace)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(_NAME, flags, dir_fd=trace)
    except OSError:
        return None
    finally:
        os.close(trace)
