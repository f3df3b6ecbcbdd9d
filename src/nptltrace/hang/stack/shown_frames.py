"""Frames of a stack as they are shown: guessed functions, and signal handlers between them."""

from __future__ import annotations

import signal

from nptltrace._dataclasses import dataclass
from nptltrace.trace.symbols.location import Location

__all__ = ["CalledLocation", "GuessedLocation", "SignalFrame", "signal_name"]


@dataclass(frozen=True, slots=True)
class GuessedLocation(Location):
    """A frame that was recognized on the stack by what it looks like: no table led to it."""

    def __str__(self) -> str:
        """Return it as `worker+0x1c (pool.c:88) [guessed]`."""
        return f"{Location.__str__(self)} [guessed]"


@dataclass(frozen=True, slots=True)
class CalledLocation(Location):
    """A place in a function without a name of its own, which was called by another's name."""

    def __str__(self) -> str:
        """Return it as `pthread_once (libc.so.6+0x8f1a1)`."""
        return f"{self.function} ({self.module}+{self.module_offset:#x})"


@dataclass(frozen=True, slots=True)
class SignalFrame:
    """The place between a signal handler and the function that it interrupted.

    Attributes:
        signal: Name of the signal; empty where it is not known.
        function: Nothing: it is no function of the program.
        module: Nothing, as well.
    """

    signal: str
    function: str = ""
    module: str = ""

    def __str__(self) -> str:
        """Return it as `(signal handler) SIGCHLD`."""
        return f"(signal handler) {self.signal}".rstrip()


def signal_name(number: int) -> str:
    """Return the name of a signal, `SIGCHLD` or `signal 34`; empty if the signal is not known."""
    if number < 0:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
