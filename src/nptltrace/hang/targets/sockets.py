"""The sockets of a process's network: their addresses, and which socket is at the other end."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Socket", "sockets_of"]

_PROC = Path("/proc")
_KINDS = {"tcp": "TCP", "tcp6": "TCP", "udp": "UDP", "udp6": "UDP"}
# Columns of the files of internet sockets, and of local ones, which have a path at most.
_LOCAL, _REMOTE, _INODE, _COLUMNS = 1, 2, 9, 10
_UNIX_INODE, _UNIX_PATH = 6, 7
# So much of such a file is read.
_MOST = 1 << 24


class Socket(NamedTuple):
    """A socket.

    Attributes:
        name: Its kind and addresses, as `TCP socket 127.0.0.1:8080`.
        peer: The inode of the socket at the other end, 0 where that is not of here.
    """

    name: str
    peer: int = 0


def sockets_of(pid: int) -> dict[int, Socket]:
    """Return the sockets of the network that a process has, by their inodes.

    Args:
        pid: The process.
    """
    place = _PROC / str(pid) / "net"
    found: dict[int, Socket] = {}
    for file, kind in _KINDS.items():
        rows = [row for row in _rows(place / file) if len(row) >= _COLUMNS]
        by_ends = {(row[_LOCAL], row[_REMOTE]): int(row[_INODE]) for row in rows}
        for row in rows:
            local, remote = row[_LOCAL], row[_REMOTE]
            to = "" if remote.endswith(":0000") else f" to {_address(remote)}"
            peer = by_ends.get((remote, local), 0) if to else 0
            found[int(row[_INODE])] = Socket(f"{kind} socket {_address(local)}{to}", peer)
    for row in _rows(place / "unix"):
        if len(row) > _UNIX_PATH:
            found[int(row[_UNIX_INODE])] = Socket(f"local socket {row[_UNIX_PATH]}")
    return found


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the columns of each line of a file, without its head."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            lines = file.read(_MOST).splitlines()[1:]
    except OSError:
        return
    yield from (line.split() for line in lines)


def _address(words: str) -> str:
    """Return an address, the kernel's words of which are in hexadecimal, and its port."""
    host, _, port = words.partition(":")
    data = b"".join(
        int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8)
    )
    address = ipaddress.ip_address(data)
    return f"[{address}]:{int(port, 16)}" if address.version == 6 else f"{address}:{int(port, 16)}"  # noqa: PLR2004
