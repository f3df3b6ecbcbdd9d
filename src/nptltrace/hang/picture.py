"""All threads of a process at one moment: what each waits for, who has it, who called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nptltrace.hang.stacks import Stacks
from nptltrace.hang.waits import routine_kind, wait_of

if TYPE_CHECKING:
    from nptltrace.hang.names import Names
    from nptltrace.hang.process import Process, Thread
    from nptltrace.hang.waits import Wait
    from nptltrace.trace.symbols.lookup import Location

__all__ = ["Picture", "State", "ThreadPicture", "look"]

State = Literal["runnable", "asleep", "waiting"]
# Functions of the C library in front of a call, of which nobody needs to read.
_LIBRARY = ("libc.so", "libc-", "libpthread", "ld-linux", "[vdso]")


@dataclass(frozen=True, slots=True)
class ThreadPicture:
    """A thread and what it waits for.

    Attributes:
        thread: The thread.
        wait: What it waits for; None when it runs or is ready to run.
        object_name: The global variable that it waits for, or empty.
        frames: Its stack, the innermost first.
    """

    thread: Thread
    wait: Wait | None
    object_name: str
    frames: tuple[Location, ...]

    @property
    def state(self) -> State:
        """Whether it runs or could run, sleeps in a system call, or waits for a thread."""
        if self.wait is None:
            return "runnable" if self.thread.state == "R" else "asleep"
        return "asleep" if self.wait.kind == "call" else "waiting"

    @property
    def site(self) -> str:
        """The call in the program that led here."""
        # In a program that is linked statically the routine has no library of its own.
        routines = [n for n, frame in enumerate(self.frames) if routine_kind(frame.function)]
        behind = self.frames[routines[-1] + 1 :] if routines else self.frames
        own = (str(frame) for frame in behind if not frame.module.startswith(_LIBRARY))
        return next(own, str(self.frames[0]) if self.frames else "")


@dataclass(frozen=True, slots=True)
class Picture:
    """The threads of a process, one after the other: they went on meanwhile, if they could.

    Attributes:
        pid: The process.
        name: Its name.
        handles_signals: A signal handler of its own may wake its threads.
        threads: Its threads by id.
    """

    pid: int
    name: str
    handles_signals: bool
    threads: tuple[ThreadPicture, ...]


def look(process: Process, names: Names) -> Picture:
    """Look at all threads of a process once.

    Args:
        process: The process.
        names: Names for what lies in it.
    """
    stacks = Stacks(process)
    threads = process.threads()
    tids = frozenset(thread.inner_tid for thread in threads)
    found: list[ThreadPicture] = []
    for thread in threads:
        frames = tuple(
            names.location(frame, innermost=not number)
            for number, frame in enumerate(stacks.of(thread))
        )
        functions = (f for at in frames for f in (*(i.function for i in at.inlined), at.function))
        wait = wait_of(process, thread, tids, functions)
        name = names.object(wait.object) if wait is not None and wait.object else ""
        found.append(ThreadPicture(thread, wait, name, frames))
    return Picture(process.pid, process.name, process.handles_signals, tuple(found))
