"""The sockets of a process's network: addresses, time limits, and the sockets at the other end."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.libc import duplicate

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Socket", "has_limit", "sockets_of", "stream_peer"]

_PROC = Path("/proc")
_KINDS = {"tcp": "TCP", "tcp6": "TCP", "udp": "UDP", "udp6": "UDP"}
# Columns of the files of internet sockets, and of local ones, which have a path at most.
_LOCAL, _REMOTE, _INODE, _COLUMNS = 1, 2, 9, 10
_UNIX_INODE, _UNIX_PATH = 6, 7
# So much of such a file is read.
_MOST = 1 << 24
# Of sock_diag(7): the protocol of the netlink socket, the request, and the answer, which has the
# same number; the flag that asks for the peer, and the attribute that has it.
_SOCK_DIAG, _BY_FAMILY, _SHOW_PEER, _PEER = 4, 20, 4, 2
_REQUEST = struct.Struct("<IHHIIBBHIIIII")
_HEAD, _ANSWER = struct.Struct("<IHHII"), struct.Struct("<BBBxIII")
_ATTRIBUTE = struct.Struct("<HH")
_IS_REQUEST, _ANY = 1, 0xFFFF_FFFF
# The kernel answers at once.
_ANSWERS_S = 1.0
# Kinds of sockets that only the socket at the other end writes to.
_CONNECTED = frozenset({socket.SOCK_STREAM, socket.SOCK_SEQPACKET})
# The options that have the limits, and the size of a `struct timeval`.
_RECEIVE_LIMIT, _SEND_LIMIT, _TIMEVAL = 20, 21, 16


class Socket(NamedTuple):
    """A socket.

    Attributes:
        name: Its kind and addresses, as `TCP socket 127.0.0.1:8080`.
        peer: The inode of the socket at the other end, 0 where that is not of here, or not known.
        is_local: It is no socket of the internet.
    """

    name: str
    peer: int = 0
    is_local: bool = False


def sockets_of(pid: int) -> dict[int, Socket]:
    """Return the sockets of the network that a process has, by their inodes.

    Args:
        pid: The process.
    """
    place = _PROC / str(pid) / "net"
    sockets: dict[int, Socket] = {}
    for file, kind in _KINDS.items():
        rows = [row for row in _rows(place / file) if len(row) >= _COLUMNS]
        by_ends = {(row[_LOCAL], row[_REMOTE]): int(row[_INODE]) for row in rows}
        for row in rows:
            local, remote = row[_LOCAL], row[_REMOTE]
            to = "" if remote.endswith(":0000") else f" to {_address(remote)}"
            peer = by_ends.get((remote, local), 0) if to else 0
            sockets[int(row[_INODE])] = Socket(f"{kind} socket {_address(local)}{to}", peer)
    for row in _rows(place / "unix"):
        if len(row) > _UNIX_PATH:
            local_socket = Socket(f"local socket {row[_UNIX_PATH]}", is_local=True)
            sockets[int(row[_UNIX_INODE])] = local_socket
    return sockets


def stream_peer(pid: int, inode: int) -> int:
    """Return the inode of the local socket that another one is connected to, as the kernel says.

    Args:
        pid: The process that has the socket.
        inode: The socket.

    Returns:
        0 if that is not known, or the socket takes messages of others as well.
    """
    try:
        if not (_PROC / "self/ns/net").samefile(_PROC / str(pid) / "ns/net"):
            return 0
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWERS_S)
            head = (_REQUEST.size, _BY_FAMILY, _IS_REQUEST, 1, 0)
            kernel.send(
                _REQUEST.pack(*head, socket.AF_UNIX, 0, 0, _ANY, inode, _SHOW_PEER, _ANY, _ANY)
            )
            return _peer_in(kernel.recv(_MOST), inode)
    except (OSError, struct.error):
        return 0


def _peer_in(answer: bytes, inode: int) -> int:
    """Return the peer that the kernel's answer names for a socket."""
    size, kind, *_ = _HEAD.unpack_from(answer)
    if kind != _BY_FAMILY or size > len(answer):
        return 0
    _, what, _, of, _, _ = _ANSWER.unpack_from(answer, _HEAD.size)
    at = _HEAD.size + _ANSWER.size
    while what in _CONNECTED and of == inode and at + _ATTRIBUTE.size <= size:
        length, name = _ATTRIBUTE.unpack_from(answer, at)
        if name == _PEER:
            return int.from_bytes(answer[at + _ATTRIBUTE.size : at + length], "little")
        at += max(length + 3 & ~3, _ATTRIBUTE.size)
    return 0


def has_limit(pid: int, number: int, *, reads: bool) -> bool | None:
    """Return whether waits for a socket have a time limit: SO_RCVTIMEO or SO_SNDTIMEO.

    Args:
        pid: The process.
        number: Its descriptor of the socket.
        reads: To read from it, and not to write.

    Returns:
        None if that is not known.
    """
    own = duplicate(pid, number)
    if own < 0:
        return None
    option = _RECEIVE_LIMIT if reads else _SEND_LIMIT
    try:
        same = socket.socket(fileno=own)
    except OSError:  # The process has closed the socket, and opened another file.
        os.close(own)
        return None
    with same:
        return any(same.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL))


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the columns of each line of a file, without its head."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            lines = file.read(_MOST).splitlines()[1:]
    except OSError:
        return
    yield from (line.split() for line in lines)


def _address(words: str) -> str:
    """Return an address, which the kernel writes as words in hexadecimal, and its port."""
    host, _, port = words.partition(":")
    data = b"".join(
        int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8)
    )
    address = ipaddress.ip_address(data)
    return f"[{address}]:{int(port, 16)}" if address.version == 6 else f"{address}:{int(port, 16)}"  # noqa: PLR2004
