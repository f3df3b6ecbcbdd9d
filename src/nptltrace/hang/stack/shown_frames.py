"""Frames for display: guessed functions, functions named by their callers, and signal handlers."""

from __future__ import annotations

import signal

from nptltrace._dataclasses import dataclass
from nptltrace.trace.symbols.location import Location

__all__ = ["CalledLocation", "GuessedLocation", "SignalFrame", "signal_name"]


@dataclass(frozen=True, slots=True)
class GuessedLocation(Location):
    """A frame that was guessed from the contents of the stack, without an unwind table."""

    def __str__(self) -> str:
        """Return the text `worker+0x1c (pool.c:88) [guessed]`."""
        return f"{Location.__str__(self)} [guessed]"


@dataclass(frozen=True, slots=True)
class CalledLocation(Location):
    """A place in a function without a name. The name is from the function that was called."""

    def __str__(self) -> str:
        """Return the text `pthread_once (libc.so.6+0x8f1a1)`."""
        return f"{self.function} ({self.module}+{self.module_offset:#x})"


@dataclass(frozen=True, slots=True)
class SignalFrame:
    """The place between a signal handler and the function that it interrupted.

    Attributes:
        signal: The name of the signal; empty if it is not known.
        function: Always empty, as this is no function.
        module: Always empty.
    """

    signal: str
    function: str = ""
    module: str = ""

    def __str__(self) -> str:
        """Return the text `(signal handler) SIGCHLD`."""
        return f"(signal handler) {self.signal}".rstrip()


def signal_name(number: int) -> str:
    """Return the name of a signal, `SIGCHLD` or `signal 34`; empty if the signal is not known."""
    if number < 0:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
