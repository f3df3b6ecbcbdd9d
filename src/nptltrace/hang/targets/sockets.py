"""The sockets in a process's network namespace: addresses, time limits, and peers."""

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
# Columns of the files for internet sockets, and of the file for local sockets.
_LOCAL, _REMOTE, _INODE, _COLUMNS = 1, 2, 9, 10
_UNIX_INODE, _UNIX_PATH = 6, 7
# The largest part of a file or answer that is read, in bytes.
_MOST = 1 << 24
# Constants of sock_diag(7): NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY (the type of the request and of
# the answer), UDIAG_SHOW_PEER, UNIX_DIAG_PEER.
_SOCK_DIAG, _BY_FAMILY, _SHOW_PEER, _PEER = 4, 20, 4, 2
_REQUEST = struct.Struct("<IHHIIBBHIIIII")
_HEAD, _ANSWER = struct.Struct("<IHHII"), struct.Struct("<BBBxIII")
_ATTRIBUTE = struct.Struct("<HH")
_IS_REQUEST, _ANY = 1, 0xFFFF_FFFF
# A time limit in case that the kernel does not answer; usually it answers at once.
_ANSWERS_S = 1.0
# The types of local sockets that receive data from their peer only.
_CONNECTED = frozenset({socket.SOCK_STREAM, socket.SOCK_SEQPACKET})
# SO_RCVTIMEO, SO_SNDTIMEO, and the size of a `struct timeval`.
_RECEIVE_LIMIT, _SEND_LIMIT, _TIMEVAL = 20, 21, 16


class Socket(NamedTuple):
    """A socket.

    Attributes:
        name: The kind and addresses, as `TCP socket 127.0.0.1:8080`.
        peer: The inode of the socket at the other end; 0 if it is not in this network namespace.
        is_local: It is a local socket, unix(7).
    """

    name: str
    peer: int = 0
    is_local: bool = False


def sockets_of(pid: int) -> dict[int, Socket]:
    """Return the sockets in the network namespace of a process, by their inodes."""
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
    """Ask the kernel for the inode of the peer of a local socket.

    Args:
        pid: The process with the socket.
        inode: The inode of the socket.

    Returns:
        0 if the peer is not known, or if the socket also takes messages from other sockets.
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
    """Return the peer of a socket from the kernel's answer; 0 if it has none."""
    size, kind, *_ = _HEAD.unpack_from(answer)
    if kind != _BY_FAMILY or size > len(answer):
        return 0
    _, type_, _, answered, _, _ = _ANSWER.unpack_from(answer, _HEAD.size)
    at = _HEAD.size + _ANSWER.size
    while type_ in _CONNECTED and answered == inode and at + _ATTRIBUTE.size <= size:
        length, name = _ATTRIBUTE.unpack_from(answer, at)
        if name == _PEER:
            return int.from_bytes(answer[at + _ATTRIBUTE.size : at + length], "little")
        at += max(length + 3 & ~3, _ATTRIBUTE.size)
    return 0


def has_limit(pid: int, number: int, *, reads: bool) -> bool | None:
    """Return whether waits for a socket have a time limit: SO_RCVTIMEO or SO_SNDTIMEO, socket(7).

    Args:
        pid: The process.
        number: The descriptor of the socket in the process.
        reads: The waits are for reading, not for writing.

    Returns:
        None if it is not known.
    """
    descriptor = duplicate(pid, number)
    if descriptor < 0:
        return None
    option = _RECEIVE_LIMIT if reads else _SEND_LIMIT
    try:
        copy = socket.socket(fileno=descriptor)
    except OSError:  # The process has closed the socket and opened another file.
        os.close(descriptor)
        return None
    with copy:
        return any(copy.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL))


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the columns of each line of a file, without the head line."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            lines = file.read(_MOST).splitlines()[1:]
    except OSError:
        return
    yield from (line.split() for line in lines)


def _address(words: str) -> str:
    """Return an address and port as text. The kernel writes an address as hexadecimal words."""
    host, _, port = words.partition(":")
    data = b"".join(
        int(host[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(host), 8)
    )
    address = ipaddress.ip_address(data)
    return f"[{address}]:{int(port, 16)}" if address.version == 6 else f"{address}:{int(port, 16)}"  # noqa: PLR2004
