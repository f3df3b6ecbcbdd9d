"""The socket between a program that has itself recorded and its recorder: a message at a time."""

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
    """One end of the socket.

    Args:
        end: A socket that keeps the bounds of messages.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls) -> tuple[MessageSocket, socket.socket]:
        """Return one end, and the socket of the other."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(here), there

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; that the other side is gone is for `receive` to say."""
        with suppress(OSError):
            self._end.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)

    def receive(self, *, wait: bool = True) -> dict[str, Any] | None:
        """Return the next message.

        Args:
            wait: Wait for one; without, return None where none has come.

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
