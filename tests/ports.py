"""Ports for the servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

__all__ = ["free_port"]


def free_port() -> int:
    """Return a free port of the loopback, below the ports that the kernel hands out."""
    first = random.SystemRandom().randrange(12_000)
    for n in range(12_000):
        port = 20_000 + (first + n) % 12_000  # below the ports that the kernel hands out
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
