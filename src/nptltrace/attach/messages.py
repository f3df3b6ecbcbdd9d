"""The socket between a program that records itself and its recorder."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MessageSocket"]

_LARGEST = 1 << 16


class MessageSocket:
    """One end of the socket. A message is a JSON object.

    Args:
        end: A socket that keeps the bounds of messages (`SOCK_SEQPACKET`).
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls) -> tuple[MessageSocket, socket.socket]:
        """Return one end, and the socket of the other end."""
        end, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(end), other_end

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. If the other side is gone, `receive` raises the error."""
        with suppress(OSError):
            self._end.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)

    def receive(self, *, wait: bool = True) -> dict[str, Any] | None:
        """Return the next message.

        Args:
            wait: Wait for a message. False: return None if there is no message.

        Raises:
            EOFError: The other side is gone.
        """
        try:
            data = self._end.recv(_LARGEST, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        message: dict[str, Any] = json.loads(data)
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()
