"""The open files of processes, who else has them, and who has locks on them: as /proc says."""

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
# Descriptors that were sent to a socket, and are still to be received.
_SENT = re.compile(r"^scm_fds:\s*[1-9]", re.MULTILINE)
# A file that an epoll watches; newer kernels add the inode.
_WATCHED = re.compile(r"^tfd:\s*(\d+) .*? ino:([0-9a-f]+)", re.MULTILINE)
# So many files an event loop watches that waits for its own threads alone, at most.
_WATCHED_MAX = 16
# `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; a waiting lock has an arrow after its number.
_LOCK = re.compile(r"\d+: (FLOCK|POSIX|OFDLCK) +\w+ +\w+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) .*")
# So many descriptors are looked at, of all processes together.
_MOST = 1 << 17
# So many descendants may share a lock.
_HEIRS = 256
# The lock of an open file belongs to no process, and to all that have the file.
_OF_FILE = -1


class OpenFile(NamedTuple):
    """A file that a process has open.

    Attributes:
        number: The descriptor.
        kind: `pipe`, `FIFO`, `socket`, `eventfd`, another kind of the kernel, or `file`.
        key: The same for all descriptors of the file; 0 where that is not known.
        path: Its path, or the kind and addresses of a socket, or empty.
        reads: It is open for reading.
        writes: It is open for writing.
        peer: The key of the socket at the other end, or 0.
        sent: Descriptors were sent to the socket, and are still to be received.
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
    """The processes that have an end of a pipe, or the other descriptors of a file.

    Attributes:
        readers: The processes that have it open for reading.
        writers: The processes that have it open for writing.
    """

    readers: frozenset[int]
    writers: frozenset[int]


class Files:
    """The open files of a process; locks and sockets are as they were when first asked for.

    Args:
        pid: The process.
        entry: A thread of it that has not ended: the kernel shows nothing of others.
    """

    def __init__(self, pid: int, entry: int) -> None:
        self._pid, self._place = pid, _PROC / str(pid) / "task" / str(entry)

    def opened(self, number: int) -> OpenFile | None:
        """Return what a descriptor is, None if that may not be known."""
        file = _opened(self._place, number)
        if file is None or file.kind != "socket":
            return file
        socket = self._sockets.get(file.key)
        if socket is not None and not socket.is_local:
            return file._replace(path=socket.name, peer=socket.peer)
        path = socket.name if socket is not None else ""
        return file._replace(path=path, peer=stream_peer(self._pid, file.key))

    def has_limit(self, file: OpenFile, *, reads: bool) -> bool | None:
        """Return whether waits for a socket have a time limit; None if that is not known.

        Args:
            file: The socket.
            reads: To read from it, and not to write.
        """
        return has_limit(self._pid, file.number, reads=reads)

    def watched(self, number: int) -> list[OpenFile] | None:
        """Return the files that an epoll watches, None if they are many or not all are known.

        Args:
            number: The descriptor of the epoll.
        """
        try:
            said = (self._place / f"fdinfo/{number}").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        count = said.count("tfd:")
        if not 0 < count <= _WATCHED_MAX:
            return None
        files = [
            file
            for match in _WATCHED.finditer(said)
            if (file := self.opened(int(match[1]))) is not None and file.key == int(match[2], 16)
        ]
        return files if len(files) == count else None

    def fifo(self, directory: int, path: str) -> str:
        """Return the path of a FIFO that is being opened, empty where it is none.

        Args:
            directory: Where the path begins, a descriptor; negative for the current directory.
            path: The path.
        """
        begin = "cwd" if directory < 0 else f"fd/{directory}"
        root = self._place / "root"
        place = root / path.lstrip("/") if path.startswith("/") else self._place / begin / path
        try:
            return path if stat.S_ISFIFO(place.stat().st_mode) else ""
        except OSError:
            return ""

    def lockers(self, file: OpenFile, kinds: Collection[str]) -> frozenset[int]:
        """Return the processes that can give back locks on a file; none where not all are known.

        A descriptor that a child has inherited gives back its parent's lock.

        Args:
            file: The file.
            kinds: Kinds of locks, as `/proc/locks` has them.
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
        # A process of another namespace is 0.
        if any(pid <= 0 or not _has_open(pid, status) for pid in pids):
            return frozenset()
        heirs = islice((heir for pid in pids for heir in _offspring(pid)), _HEIRS)
        return frozenset(pids | {heir for heir in heirs if _has_open(heir, status, locked=True)})

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


def _offspring(pid: int) -> Iterator[int]:
    for child in children_of(pid):
        yield child
        yield from _offspring(child)


def _has_open(pid: int, file: os.stat_result, *, locked: bool = False) -> bool:
    """Return whether a process has a file open, or by a descriptor that has a lock on it."""
    place = _PROC / str(pid)
    try:
        numbers = [int(entry.name) for entry in (place / "fd").iterdir()]
    except OSError:
        return False
    return any(_is_open(place, number, file, locked=locked) for number in numbers)


def _is_open(place: Path, number: int, file: os.stat_result, *, locked: bool) -> bool:
    """Return whether a descriptor is of a file, and has a lock on it where that is wanted."""
    try:
        if not os.path.samestat((place / f"fd/{number}").stat(), file):
            return False
        return not locked or b"\nlock:" in (place / f"fdinfo/{number}").read_bytes()
    except OSError:
        return False


def _with_lock(file: os.stat_result) -> set[int]:
    """Return the processes that have a descriptor with a lock on a file.

    Where one may not be looked into, or there are too many descriptors, 0 is among them.
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
    """Which processes have files.

    Attributes:
        by: The processes, by kinds and keys of the files.
        is_all: All processes could be looked at.
        is_sent: A process in one of their sessions is still to receive a descriptor.
    """

    by: dict[tuple[str, int], Holders]
    is_all: bool
    is_sent: bool


def holders_of(keys: Collection[tuple[str, int]]) -> Held:
    """Return which processes have files.

    Every descriptor of every process is looked at once, up to a bound.

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
    """Yield each process's place with each of its descriptors."""
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
            continue  # it has ended
        yield from ((place, number) for number in numbers)


def _opened(place: Path, number: int, kinds: Collection[str] = ()) -> OpenFile | None:
    """Return what a descriptor is.

    Args:
        place: The process.
        number: The descriptor.
        kinds: Kinds that are wanted; all of them where there are none.
    """
    path = f"{place}/fd/{number}"
    try:
        link = os.readlink(path)  # noqa: PTH115 -- thousands of times
        match = _UNNAMED.fullmatch(link)
        kind = (match[1] or match[3]) if match else "file"
        if kinds and kind not in kinds:
            return None
        said = Path(f"{place}/fdinfo/{number}").read_text(encoding="ascii", errors="replace")
        if not match and stat.S_ISFIFO(Path(path).stat().st_mode):
            kind = "FIFO"
    except OSError:
        return None
    flags = _FLAGS.search(said)
    access = int(flags[1], 8) & os.O_ACCMODE if flags else os.O_RDWR
    event = _EVENT.search(said)
    key = int(match[2] or 0) if match else 0
    return OpenFile(
        number, kind, int(event[1]) if event else key, "" if match else link,
        access != os.O_WRONLY, access != os.O_RDONLY, sent=bool(_SENT.search(said)),
    )  # fmt: skip
