"""What is looked at: a process that runs, or what a core file holds of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nptltrace.hang.targets.files import Files
    from nptltrace.hang.targets.thread import Thread
    from nptltrace.trace.code.modules import Module, ModuleMap
    from nptltrace.trace.code.python_code import PythonCode

__all__ = ["Target"]


class Target(Protocol):
    """A process, by its threads, its memory and its modules."""

    @property
    def pid(self) -> int:
        """The process."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def title(self) -> str:
        """The name of the target in reports."""

    @property
    def machine(self) -> str:
        """The architecture, as `uname -m` has it."""

    @property
    def caught(self) -> frozenset[int] | None:
        """Signals with handlers that may wake a thread; None where that is not known."""

    @property
    def has_own_time(self) -> bool:
        """Whether it runs now, by the clocks of here."""

    @property
    def files(self) -> Files | None:
        """Its open files; None where they are not known."""

    @property
    def modules(self) -> list[Module]:
        """The files that its code comes from."""

    @property
    def map(self) -> ModuleMap:
        """Which module lies at an address."""

    @property
    def start_unix_ns(self) -> int | None:
        """Files without a build-id must not be younger."""

    @property
    def codes(self) -> Mapping[int, PythonCode]:
        """None: functions of Python are read from the memory."""

    def threads(self) -> list[Thread]:
        """Return its threads by id, each at a moment of its own."""

    def thread(self, tid: int) -> Thread | None:
        """Return one of its threads as it is now, None when it is gone."""

    def blocked_signals(self, tid: int) -> int:
        """Return the signals that a thread blocks, a bit each; 0 where that is not known."""

    def read(self, address: int, size: int) -> bytes:
        """Return memory of it, less of it where not all can be read."""

    def parent_with(self, inner_tid: int) -> int:
        """Return the parent process if a thread is one of its threads, 0 if not, or not known.

        Args:
            inner_tid: The thread, by the id that the process has for it.
        """

    def forked_from(self) -> tuple[int, int]:
        """Return the parent process, and its threads, if it has run no other program since.

        Zeros where that is not so, or not known.
        """

    def process_of(self, tid: int) -> Target | None:
        """Return the other process that a thread is one of, None if it cannot be looked into.

        Args:
            tid: The thread, by the id that the process has for it.
        """

    def sharers(self, address: int) -> frozenset[int] | None:
        """Return the other processes that have a piece of its memory, None if more may have it."""

    def threads_ahead(self, meanwhile: Callable[[], None]) -> list[Thread]:
        """Return its threads, with what `read` is asked of each at hand until `forget`.

        Args:
            meanwhile: What is to be done anyway, while they are read.
        """

    def forget(self) -> None:
        """Have nothing at hand any more: what is read from now on is as it is now."""

    def has_run(self, threads: Sequence[Thread]) -> bool:
        """Return whether one of some of its threads has run, or has ended, since that was seen."""

    def has_others(self, threads: Sequence[Thread]) -> bool:
        """Return whether it has threads besides some: others that have come since."""

    def may_live(self, inner_tid: int, *, private: bool) -> bool:
        """Return whether a thread that is not among its threads may live.

        Args:
            inner_tid: The thread, by the id that the process has for it.
            private: It must be one of the process itself.
        """
