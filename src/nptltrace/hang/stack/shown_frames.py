"""Frames for display: guessed functions, named by their callers, signal handlers, and Java."""

from __future__ import annotations

import signal

from nptltrace._dataclasses import dataclass
from nptltrace.trace.symbols.location import Location

__all__ = ["CalledLocation", "GuessedLocation", "JavaFrame", "SignalFrame", "signal_name"]


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


@dataclass(frozen=True, slots=True)
class JavaFrame:
    """A function of Java on the stack of a thread.

    Attributes:
        function: The function with its class.
        file: The source file, empty if it is not known.
        line: The current line; 0 if it is not known, as in compiled code.
        module: Always empty, as the function is in no module of the process.
    """

    function: str
    file: str
    line: int
    module: str = ""

    def __str__(self) -> str:
        """Return the text `Bank.pay (Bank.java:12)`."""
        line = f":{self.line}" if self.line else ""
        return f"{self.function} ({self.file}{line})" if self.file else self.function


def signal_name(number: int) -> str:
    """Return the name of a signal, `SIGCHLD` or `signal 34`; empty if the signal is not known."""
    if number < 0:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
