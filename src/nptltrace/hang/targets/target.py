"""A process that runs, or was written to a core file, and its threads."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.trace.code.modules import ModuleMap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nptltrace.hang.targets.files import Files
    from nptltrace.trace.code.modules import Module
    from nptltrace.trace.code.python_code import PythonCode

__all__ = ["Call", "Target", "Thread"]

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


class Target(ABC):
    """A process, by its threads, its memory and its modules.

    A method or attribute that a target does not define says what holds of a core file: nothing
    moves any more, and what the file does not say is not known.

    Attributes:
        pid: The process.
        name: Its name.
        machine: The architecture, as `uname -m` has it.
        remarks: What is missing, a sentence each.
        caught: Signals with handlers that may wake a thread; None where that is not known.
        start_unix_ns: Files without a build-id must not be younger; None where files are taken by
            build-id, and are as they are now.
        codes: None: functions of Python are read from the memory.
    """

    pid: int
    name: str
    machine: str
    remarks: list[str]
    caught: frozenset[int] | None = None
    start_unix_ns: int | None = None
    codes: Mapping[int, PythonCode] = MappingProxyType({})

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the target in reports."""

    @property
    def files(self) -> Files | None:
        """Its open files, as they are now; None where they are not known."""
        return None

    @cached_property
    def has_own_time(self) -> bool:
        """Whether it runs now, by the clocks of here."""
        return False

    @cached_property
    @abstractmethod
    def modules(self) -> list[Module]:
        """The files that its code comes from."""

    @cached_property
    def map(self) -> ModuleMap:
        """Which module lies at an address."""
        return ModuleMap(self.modules)

    @abstractmethod
    def threads(self) -> list[Thread]:
        """Return its threads by id, each at a moment of its own."""

    @abstractmethod
    def thread(self, tid: int) -> Thread | None:
        """Return one of its threads as it is now, None when it is gone."""

    @abstractmethod
    def blocked_signals(self, tid: int) -> int:
        """Return the signals that a thread blocks, a bit each; 0 where that is not known."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Return memory of it, less of it where not all can be read."""

    def word(self, address: int) -> int:
        """Return the word at an address, 0 where it cannot be read."""
        return int.from_bytes(data, "little") if len(data := self.read(address, 8)) == 8 else 0  # noqa: PLR2004 -- bytes

    def words(self, address: int, size: int) -> tuple[int, ...]:
        """Return the words in so many bytes of memory, fewer where not all can be read.

        Args:
            address: Where to begin, or in the first word.
            size: The bytes.
        """
        data = self.read(address & ~7, size)
        return struct.unpack(f"<{len(data) // 8}Q", data[: len(data) & ~7])

    def parent_with(self, inner_tid: int) -> int:
        """Return the parent process if a thread belongs to it, 0 if not, or not known.

        Args:
            inner_tid: The thread, by the id that the process has for it.
        """
        del inner_tid
        return 0

    def forked_from(self) -> tuple[int, int]:
        """Return the parent process, and its threads, if it has run no other program since.

        Zeros where that is not so, or not known.
        """
        return 0, 0

    def process_of(self, tid: int) -> Target | None:
        """Return the other process that a thread belongs to, None if it cannot be looked into.

        Args:
            tid: The thread, by the id that the process has for it.
        """
        del tid
        return None

    @abstractmethod
    def sharers(self, address: int) -> frozenset[int] | None:
        """Return the other processes that have a piece of its memory, None if more may have it."""

    def threads_ahead(self, meanwhile: Callable[[], None]) -> list[Thread]:
        """Return its threads, with what `read` is asked of each at hand until `forget`.

        Args:
            meanwhile: Work for the time while they are read.
        """
        meanwhile()
        return self.threads()

    def forget(self) -> None:
        """Have nothing at hand any more: from now on `read` returns the memory as it is then."""
        return

    def has_run(self, threads: Sequence[Thread]) -> bool:
        """Return whether any of some threads has run, or has ended, since it was seen."""
        del threads
        return False

    def has_others(self, threads: Sequence[Thread]) -> bool:
        """Return whether it has threads besides some: others that have come since."""
        del threads
        return False

    @abstractmethod
    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not among its threads may live.

        Args:
            inner_tid: The thread, by the id that the process has for it.
            private: It must be one of the process itself.
        """
