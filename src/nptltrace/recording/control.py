"""Levels of running processes: finds their level control pages and writes to them."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from ctypes import sizeof
from pathlib import Path

from nptltrace._binding.headers.ptt_abi import Control
from nptltrace._dataclasses import dataclass
from nptltrace._files.directories import Directory
from nptltrace.catalog import DOMAINS
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.files.session import (
    LEVELS_CHANGED,
    session_of_recorder,
    trace_of_session,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.recording.settings.levels import Levels

__all__ = ["ControlPage", "control_pages", "group_of", "session_of", "trace_of"]

_MAGIC = b"PTTCTRL1"
_SIZE = sizeof(Control)
_MAJOR = 1


@dataclass(frozen=True)
class ControlPage:
    """The level control page of a process.

    Attributes:
        pid: The process.
        path: The file of the page, which the process maps.
    """

    pid: int
    path: Path

    @classmethod
    def of(cls, pid: int) -> ControlPage:
        """Find the page of a process.

        Raises:
            UsageError: There is no such process, or it is not being recorded.
        """
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            raise UsageError(f"no process {pid}") from None
        except OSError as error:
            raise UsageError(f"process {pid}: {error.strerror}") from None
        inner = str(inner_pid(pid))
        for line in maps.splitlines():
            path = line.partition("/")[2]
            # A child that the tracer does not follow maps its parent's page, with another pid.
            kind, _, owner = path.rpartition("/")[2].partition("-")
            if kind != "control" or owner.removesuffix(" (deleted)").rpartition("-")[2] != inner:
                continue
            if owner.endswith(" (deleted)"):
                raise UsageError(f"process {pid} is not recorded any more")
            return cls(pid, Path("/" + path))
        raise UsageError(f"process {pid} is not being recorded: ptt attach {pid} records it")

    def read(self) -> dict[str, int]:
        """Return the level of each domain."""
        page = self._open()
        return {name: page.level[number] for name, number in DOMAINS.items()}

    def write(self, levels: Levels) -> None:
        """Change levels, from the next event of the process on.

        Raises:
            PttError: The page or its directory is not writable.
        """
        try:
            # The process may be another user's, and so may the directory.
            with Directory.open(self.path.parent) as directory:
                os.close(directory.append(LEVELS_CHANGED))
        except OSError as error:
            raise PttError(f"{self.path.parent}: {error.strerror}") from None
        page = self._open()
        for name, number in DOMAINS.items():
            level = levels.of(name)
            if level is not None:
                # An aligned word, stored at once: the hot path of the tracer reads this word.
                page.level[number] = level
        # A trace-enabled thread library reads this word before it calls the tracer.
        page.level[0] = max(page.level[number] for number in DOMAINS.values())
        page.changes += 1

    def _open(self) -> Control:
        """Return the page; it stays mapped as long as the returned object lives."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise PttError(f"{self.path}: {error.strerror}") from None
        try:
            if os.fstat(fd).st_size < _SIZE:
                raise PttError(f"{self.path} is no level control page")
            page = Control.from_buffer(mmap.mmap(fd, _SIZE))
        finally:
            os.close(fd)
        head, ours = page.abi, str(page.pid) == self.path.name.rpartition("-")[2]
        if head.magic != _MAGIC or head.major != _MAJOR or head.struct_size < _SIZE or not ours:
            raise PttError(f"{self.path} is no level control page of process {self.pid}")
        return page


def control_pages(session: Path) -> Iterator[tuple[tuple[str, int], ControlPage]]:
    """Yield the control pages of a session, each with the name and inode of its file.

    A session that is gone has none.

    Args:
        session: The directory of the session.
    """
    with suppress(OSError), os.scandir(session) as entries:
        for entry in entries:
            kind, _, pid = entry.name.rpartition("-")
            if kind.startswith("control-") and pid.isdigit():
                yield (entry.name, entry.inode()), ControlPage(int(pid), Path(entry.path))


def session_of(pid: int) -> Path:
    """Return the session directory of a running recording.

    Args:
        pid: A recorded process, or the recorder.

    Raises:
        UsageError: There is no such process, or it is not being recorded.
    """
    return session_of_recorder(pid) or ControlPage.of(pid).path.parent


def trace_of(pid: int) -> Path:
    """Return the trace directory of a running recording.

    Args:
        pid: A recorded process, or the recorder.

    Raises:
        UsageError: There is no such process, or it is not being recorded.
    """
    trace = trace_of_session(session_of(pid))
    if trace is None:
        raise UsageError(f"process {pid} is being recorded, but its trace directory is not known")
    return trace


def inner_pid(pid: int) -> int:
    """Return the pid of a process in its own PID namespace; see NSpid in proc(5)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return pid
    ids = status.partition("\nNSpid:")[2].partition("\n")[0].split()
    return int(ids[-1]) if ids else pid


def group_of(pid: int) -> list[int]:
    """Return the processes in the process group of `pid`.

    Raises:
        UsageError: There is no such process.
    """
    try:
        group = os.getpgid(pid)
    except ProcessLookupError:
        raise UsageError(f"no process {pid}") from None
    pids: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.getpgid(int(entry.name)) == group:
                    pids.append(int(entry.name))
            except ProcessLookupError:
                continue
    return sorted(pids)
