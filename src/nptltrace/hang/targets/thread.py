"""A thread as it was at one moment: what it sleeps in, its registers, how often it has run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Call", "Thread"]

_NONE: Mapping[int, int] = MappingProxyType({})


class Call(NamedTuple):
    """A system call that a thread is in.

    Attributes:
        number: As the architecture counts them.
        arguments: The six registers of its arguments.
    """

    number: int
    arguments: tuple[int, ...]


class Thread(NamedTuple):
    """A thread at one moment.

    Attributes:
        tid: As this process's PID namespace counts it.
        inner_tid: As the process itself knows it, and writes it into its locks.
        name: Its name; empty where it is not known.
        state: The letter of the kernel: R runs or is ready, Z has ended; S is in a system call, T
            is stopped by a signal, t by a debugger.
        call: What it sleeps in; None when it runs, or sleeps in no system call.
        sp: Its stack pointer; 0 when it runs.
        pc: Where it is; 0 when it runs.
        turns: How often it has had a processor: the same number again, and it did not run.
        saved: The registers that a function keeps for its caller, by their DWARF numbers; none of
            a thread that was not stopped.
        argument: The register of a function's first argument; 0 of a thread that was not stopped.
        tracer: The process that has stopped it as a debugger, or 0.
    """

    tid: int
    inner_tid: int
    name: str
    state: str
    call: Call | None = None
    sp: int = 0
    pc: int = 0
    turns: int = 0
    saved: Mapping[int, int] = _NONE
    argument: int = 0
    tracer: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether it is a first thread that has ended before the others."""
        return self.state in {"Z", "X"}

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger keeps it from going on."""
        return self.state in {"T", "t"}

    def __str__(self) -> str:
        """Return it as `thread 4711 (worker)`."""
        return f"thread {self.tid} ({self.name})" if self.name else f"thread {self.tid}"
