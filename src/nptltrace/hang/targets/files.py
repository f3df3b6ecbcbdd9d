"""The open files of processes, the other processes that have them, and their locks, from /proc."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.targets.sockets import has_limit, sockets_of, stream_peer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nptltrace.hang.targets.sockets import Socket

__all__ = ["Files", "Held", "Holders", "OpenFile", "children_of", "holders_of"]

_PROC = Path("/proc")
_UNNAMED = re.compile(r"(pipe|socket):\[(\d+)\]|anon_inode:\[?([\w-]+)\]?")
_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)
_EVENT = re.compile(r"^eventfd-id:\s*(\d+)", re.MULTILINE)
# Descriptors that were sent to a socket and not received yet.
_SENT = re.compile(r"^scm_fds:\s*[1-9]", re.MULTILINE)
# A file that an epoll watches; newer kernels add the inode.
_WATCHED = re.compile(r"^tfd:\s*(\d+) .*? ino:([0-9a-f]+)", re.MULTILINE)
# An event loop with more watched files waits for more than its own threads.
_WATCHED_MAX = 16
# `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; a waiting lock has an arrow after its number.
_LOCK = re.compile(r"\d+: (FLOCK|POSIX|OFDLCK) +\w+ +\w+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) .*")
# The largest number of descriptors to read, of all processes together.
_MOST = 1 << 17
# The largest number of descendants that are looked at for inherited descriptors.
_DESCENDANTS = 256
# The process id of a lock of an open file description: all processes with the file have the lock.
_OF_FILE = -1


class OpenFile(NamedTuple):
    """An open file of a process.

    Attributes:
        number: The descriptor.
        kind: `pipe`, `FIFO`, `socket`, `eventfd`, another kind of the kernel, or `file`.
        key: A number that all descriptors of the file share; 0 if it is not known.
        path: The path, or the kind and addresses of a socket, or empty.
        reads: It is open for reading.
        writes: It is open for writing.
        peer: The key of the socket at the other end, or 0.
        sent: Descriptors were sent to the socket and not received yet.
    """

    number: int
    kind: str
    key: int
    path: str
    reads: bool
    writes: bool
    peer: int = 0
    sent: bool = False


class Holders(NamedTuple):
    """The processes that have a file open.

    Attributes:
        readers: The processes with a descriptor for reading.
        writers: The processes with a descriptor for writing.
    """

    readers: frozenset[int]
    writers: frozenset[int]


class Files:
    """The open files of a process. Locks and sockets are read once, on the first use.

    Args:
        pid: The process.
        entry: A thread that has not ended: the kernel shows no files of ended threads.
    """

    def __init__(self, pid: int, entry: int) -> None:
        self._pid, self._place = pid, _PROC / str(pid) / "task" / str(entry)

    def opened(self, number: int) -> OpenFile | None:
        """Return the file of a descriptor, None if it cannot be read."""
        file = _opened(self._place, number)
        if file is None or file.kind != "socket":
            return file
        socket = self._sockets.get(file.key)
        if socket is not None and not socket.is_local:
            return file._replace(path=socket.name, peer=socket.peer)
        path = socket.name if socket is not None else ""
        return file._replace(path=path, peer=stream_peer(self._pid, file.key))

    def has_limit(self, file: OpenFile, *, reads: bool) -> bool | None:
        """Return whether waits for a socket have a time limit; None if it is not known.

        Args:
            file: The socket.
            reads: The waits are for reading, not for writing.
        """
        return has_limit(self._pid, file.number, reads=reads)

    def watched(self, number: int) -> list[OpenFile] | None:
        """Return the files that an epoll watches; None if there are many or not all are known.

        Args:
            number: The descriptor of the epoll.
        """
        try:
            info = (self._place / f"fdinfo/{number}").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        count = info.count("tfd:")
        if not 0 < count <= _WATCHED_MAX:
            return None
        files = [
            file
            for match in _WATCHED.finditer(info)
            if (file := self.opened(int(match[1]))) is not None and file.key == int(match[2], 16)
        ]
        return files if len(files) == count else None

    def fifo(self, directory: int, path: str) -> str:
        """Return the path of a FIFO that is being opened; empty for another kind of file.

        Args:
            directory: The descriptor of the path's directory; negative for the current directory.
            path: The path.
        """
        begin = "cwd" if directory < 0 else f"fd/{directory}"
        root = self._place / "root"
        absolute = root / path.lstrip("/") if path.startswith("/") else self._place / begin / path
        try:
            return path if stat.S_ISFIFO(absolute.stat().st_mode) else ""
        except OSError:
            return ""

    def lockers(self, file: OpenFile, kinds: Collection[str]) -> frozenset[int]:
        """Return the processes that can release locks on a file; empty if not all are known.

        A descriptor that a child has inherited can release the lock of the parent.

        Args:
            file: The file.
            kinds: The kinds of locks, as in `/proc/locks`.
        """
        try:
            status = (self._place / f"fd/{file.number}").stat()
        except OSError:
            return frozenset()
        wanted = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
        pids = {
            int(match[2])
            for match in map(_LOCK.fullmatch, self._locks)
            if match
            and match[1] in kinds
            and (int(match[3], 16), int(match[4], 16), int(match[5])) == wanted
        }
        if _OF_FILE in pids:
            pids = (pids - {_OF_FILE}) | _with_lock(status)
        # The kernel shows a process of another PID namespace as 0.
        if any(pid <= 0 or not _has_open(pid, status) for pid in pids):
            return frozenset()
        children = islice((child for pid in pids for child in _descendants(pid)), _DESCENDANTS)
        return frozenset(pids | {pid for pid in children if _has_open(pid, status, locked=True)})

    @cached_property
    def _sockets(self) -> dict[int, Socket]:
        return sockets_of(self._pid)

    @cached_property
    def _locks(self) -> list[str]:
        try:
            return (_PROC / "locks").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return []


def children_of(pid: int) -> list[int]:
    """Return the children of a process."""
    pids: list[int] = []
    for path in (_PROC / str(pid)).glob("task/*/children"):
        try:
            pids += map(int, path.read_text(encoding="ascii").split())
        except OSError:
            continue
    return pids


def _descendants(pid: int) -> Iterator[int]:
    for child in children_of(pid):
        yield child
        yield from _descendants(child)


def _has_open(pid: int, file: os.stat_result, *, locked: bool = False) -> bool:
    """Return whether a process has a file open; if `locked`, by a descriptor with a lock."""
    place = _PROC / str(pid)
    try:
        numbers = [int(entry.name) for entry in (place / "fd").iterdir()]
    except OSError:
        return False
    return any(_is_open(place, number, file, locked=locked) for number in numbers)


def _is_open(place: Path, number: int, file: os.stat_result, *, locked: bool) -> bool:
    """Return whether a descriptor is of a file; if `locked`, whether it also has a lock."""
    try:
        if not os.path.samestat((place / f"fd/{number}").stat(), file):
            return False
        return not locked or b"\nlock:" in (place / f"fdinfo/{number}").read_bytes()
    except OSError:
        return False


def _with_lock(file: os.stat_result) -> set[int]:
    """Return the processes that have a descriptor with a lock on a file.

    The result is 0 alone if a process cannot be read, or if there are too many descriptors.
    """
    refused: list[int] = []
    pids: set[int] = set()
    left = _MOST
    for place, number in islice(_descriptors(refused), _MOST):
        left -= 1
        if _is_open(place, number, file, locked=True):
            pids.add(int(place.name))
    return pids if left and not refused else {0}


class Held(NamedTuple):
    """The processes that have certain files open.

    Attributes:
        by: The processes, by kind and key of the file.
        is_all: All processes could be read.
        is_sent: A process in a session of these processes has not received a sent descriptor yet.
    """

    by: dict[tuple[str, int], Holders]
    is_all: bool
    is_sent: bool


def holders_of(keys: Collection[tuple[str, int]]) -> Held:
    """Return the processes that have files open.

    This reads every descriptor of every process, up to a bound.

    Args:
        keys: Kinds and keys of the files.
    """
    readers: dict[tuple[str, int], set[int]] = {key: set() for key in keys}
    writers: dict[tuple[str, int], set[int]] = {key: set() for key in keys}
    refused: list[int] = []
    left = _MOST
    receivers: set[int] = set()
    for place, number in islice(_descriptors(refused), _MOST):
        left -= 1
        file = _opened(place, number, {kind for kind, _ in keys})
        key = (file.kind, file.key) if file is not None else ("", 0)
        pid = int(place.name)
        if file is not None and file.sent:
            receivers.add(pid)
        if file is not None and key in readers:
            readers[key] |= {pid} if file.reads else set()
            writers[key] |= {pid} if file.writes else set()
    known = {key: Holders(frozenset(readers[key]), frozenset(writers[key])) for key in keys}
    near = _sessions(set().union(*readers.values(), *writers.values()))
    return Held(known, bool(left) and not refused, bool(near & _sessions(receivers)))


def _sessions(pids: Collection[int]) -> set[int]:
    """Return the sessions of processes."""
    sessions: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            sessions.add(os.getsid(pid))
    return sessions


def _descriptors(refused: list[int]) -> Iterator[tuple[Path, int]]:
    """Yield the directory of each process with each of its descriptors.

    Args:
        refused: Receives the processes that cannot be read.
    """
    for name in os.listdir(_PROC):  # noqa: PTH208 -- names only
        if not name.isdigit():
            continue
        place = _PROC / name
        try:
            numbers = [int(entry) for entry in os.listdir(place / "fd")]  # noqa: PTH208
        except PermissionError:
            refused.append(int(name))
            continue
        except OSError:
            continue  # the process has ended
        yield from ((place, number) for number in numbers)


def _opened(place: Path, number: int, kinds: Collection[str] = ()) -> OpenFile | None:
    """Return the file of a descriptor; None if it is of another kind or cannot be read.

    Args:
        place: The directory of the process.
        number: The descriptor.
        kinds: The wanted kinds; all kinds if empty.
    """
    path = f"{place}/fd/{number}"
    try:
        link = os.readlink(path)  # noqa: PTH115 -- called thousands of times
        match = _UNNAMED.fullmatch(link)
        kind = (match[1] or match[3]) if match else "file"
        if kinds and kind not in kinds:
            return None
        info = Path(f"{place}/fdinfo/{number}").read_text(encoding="ascii", errors="replace")
        if not match and stat.S_ISFIFO(Path(path).stat().st_mode):
            kind = "FIFO"
    except OSError:
        return None
    flags = _FLAGS.search(info)
    access = int(flags[1], 8) & os.O_ACCMODE if flags else os.O_RDWR
    event = _EVENT.search(info)
    key = int(match[2] or 0) if match else 0
    return OpenFile(
        number, kind, int(event[1]) if event else key, "" if match else link,
        access != os.O_WRONLY, access != os.O_RDONLY, sent=bool(_SENT.search(info)),
    )  # fmt: skip
