"""Tells systemd that the program is well, for `WatchdogSec=`; see sd_notify(3)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["Watchdog"]


class Watchdog:
    """The watchdog of the service, if systemd started this process with one."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        limit, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
        is_ours = pid in {"", str(os.getpid())} and limit.isascii() and limit.isdigit()
        # sd_watchdog_enabled(3): a message after half of the time.
        self._every_s = int(limit) / 2e6 if self._address and is_ours else 0.0
        self._due_s = 0.0

    def is_well(self, now_s: float) -> None:
        """Tell systemd that the program is well, if it is time.

        Args:
            now_s: The time of `time.monotonic()`.
        """
        if self._every_s and now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            self._send("WATCHDOG=1")

    def hangs(self, cause: str) -> None:
        """Tell systemd why no more messages come.

        Args:
            cause: The cause on one line.
        """
        if self._every_s:
            self._send(f"STATUS={cause}")
            self._every_s = 0.0

    def _send(self, text: str) -> None:
        # `@` stands for the zero byte of an abstract address.
        address = "\0" + self._address[1:] if self._address[:1] == "@" else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            notices.sendto(text.encode("utf-8", "backslashreplace"), address)
