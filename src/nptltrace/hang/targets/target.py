"""The base of processes and core files, and their threads."""

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

__all__ = ["TID_AT", "Call", "Target", "Thread"]

# The usual offset of a thread's id in the memory at its `pthread_t`, in the C library of x86-64.
TID_AT = 720
_NONE: Mapping[int, int] = MappingProxyType({})


class Call(NamedTuple):
    """The system call of a thread.

    Attributes:
        number: The number of the call on this architecture.
        arguments: The six registers of the arguments.
    """

    number: int
    arguments: tuple[int, ...]


class Thread(NamedTuple):
    """A thread at one moment.

    Attributes:
        tid: The id in our PID namespace.
        inner_tid: The id in the PID namespace of the process, as in the locks of the process.
        name: The name; empty if it is not known.
        state: The letter of the kernel: R runs or is ready, S is in a system call, T is stopped by
            a signal, t by a debugger, Z has ended.
        call: The system call in which the thread sleeps, or None.
        sp: The stack pointer; 0 for a running thread.
        pc: The address of the next instruction; 0 for a running thread.
        turns: How often the thread got a processor. If the number is the same later, the thread did
            not run in between.
        saved: The callee-saved registers by their DWARF numbers; empty unless we stopped the
            thread or it is from a core file.
        argument: The register of a function's first argument; 0 if `saved` is empty.
        tracer: The process that stopped the thread as a debugger, or 0.
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
        """Whether this is a main thread that ended before the other threads."""
        return self.state in {"Z", "X"}

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped the thread."""
        return self.state in {"T", "t"}

    def __str__(self) -> str:
        """Return the text `thread 4711 (worker)`."""
        return f"thread {self.tid} ({self.name})" if self.name else f"thread {self.tid}"


class Target(ABC):
    """A process with its threads, memory and modules.

    The defaults of methods and attributes are for a core file: nothing changes, and much is not
    known.

    Attributes:
        pid: The process id.
        name: The name of the process.
        machine: The architecture, as from `uname -m`.
        remarks: Sentences about missing data.
        caught: The signals with handlers that may wake a thread; None if they are not known.
        start_unix_ns: A file without a build-id is used only if it is older than this time; None
            for a running process, whose files are current.
        codes: Empty: functions of Python are read from the memory.
        tid_at: The offset of a thread's id in the memory at its `pthread_t`.
    """

    pid: int
    name: str
    machine: str
    remarks: list[str]
    caught: frozenset[int] | None = None
    start_unix_ns: int | None = None
    codes: Mapping[int, PythonCode] = MappingProxyType({})
    tid_at: int = TID_AT

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the target in reports."""

    @property
    def files(self) -> Files | None:
        """The open files of the process; None if they are not known."""
        return None

    @cached_property
    def has_own_time(self) -> bool:
        """Whether the process runs now and has the same clocks as we do."""
        return False

    @cached_property
    @abstractmethod
    def modules(self) -> list[Module]:
        """The mapped files with code."""

    @cached_property
    def map(self) -> ModuleMap:
        """The modules by address."""
        return ModuleMap(self.modules)

    @abstractmethod
    def threads(self) -> list[Thread]:
        """Return the threads in the order of their ids, each read at a different moment."""

    @abstractmethod
    def thread(self, tid: int) -> Thread | None:
        """Return the current state of a thread, None if the thread is gone."""

    @abstractmethod
    def blocked_signals(self, tid: int) -> int:
        """Return the blocked signals of a thread as a bit mask; 0 if they are not known."""

    @abstractmethod
    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of memory: the bytes before the first unreadable byte."""

    def word(self, address: int) -> int:
        """Return the 8-byte word at an address, 0 if it cannot be read."""
        return int.from_bytes(data, "little") if len(data := self.read(address, 8)) == 8 else 0  # noqa: PLR2004 -- bytes

    def words(self, address: int, size: int) -> tuple[int, ...]:
        """Return the 8-byte words in a part of memory, fewer if not all bytes can be read.

        Args:
            address: An address in the first word.
            size: The number of bytes.
        """
        data = self.read(address & ~7, size)
        return struct.unpack(f"<{len(data) // 8}Q", data[: len(data) & ~7])

    def parent_with(self, inner_tid: int) -> int:
        """Return the parent process if it has a certain thread; 0 if not, or if it is not known.

        Args:
            inner_tid: The id of the thread in the process's PID namespace.
        """
        del inner_tid
        return 0

    def forked_from(self) -> tuple[int, int]:
        """Return the parent process and its number of threads if the process was only forked.

        Zeros if the process has executed a program since the fork, or if it is not known.
        """
        return 0, 0

    def process_of(self, tid: int) -> Target | None:
        """Return the other process of a thread; None if there is none or it cannot be read.

        Args:
            tid: The id of the thread in the process's PID namespace.
        """
        del tid
        return None

    @abstractmethod
    def sharers(self, address: int) -> frozenset[int] | None:
        """Return the other processes that have mapped this memory; None if not all are known."""

    def threads_ahead(self, meanwhile: Callable[[], None]) -> list[Thread]:
        """Return the threads, and keep the memory that is usually read next until `forget`.

        Args:
            meanwhile: Called while the threads are read.
        """
        meanwhile()
        return self.threads()

    def forget(self) -> None:
        """Drop the memory that `threads_ahead` has read: `read` returns current memory again."""
        return

    def has_run(self, threads: Sequence[Thread]) -> bool:
        """Return whether any of the threads has run or has ended since it was read."""
        del threads
        return False

    def has_others(self, threads: Sequence[Thread]) -> bool:
        """Return whether the process now has threads that are not among the given threads."""
        del threads
        return False

    @abstractmethod
    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not among the threads of the process may be alive.

        Args:
            inner_tid: The id of the thread in the process's PID namespace.
            private: The thread can belong to this process only.
        """
