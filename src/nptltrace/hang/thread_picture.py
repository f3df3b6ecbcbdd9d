"""A thread at one moment: what it waits for, and the calls that led there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from nptltrace.hang.stack.cpython import PythonFrame
    from nptltrace.hang.stack.shown_frames import SignalFrame
    from nptltrace.hang.targets.target import Thread
    from nptltrace.hang.waits import Wait
    from nptltrace.trace.symbols.location import Location

    ShownFrame = Location | PythonFrame | SignalFrame

__all__ = ["Limit", "Peers", "ShownFrame", "State", "ThreadPicture"]

State = Literal["runnable", "asleep", "waiting", "stopped"]


class Limit(NamedTuple):
    """The time limit of a wait.

    Attributes:
        ns: How long is left, negative once the limit is over; or how long the limit is.
        is_length: It is known how long the limit is, and not how long is left.
        as_realtime_ns: Of a time of CLOCK_MONOTONIC, how long would be left if the same number were
            a time of CLOCK_REALTIME.
    """

    ns: int
    is_length: bool = False
    as_realtime_ns: int | None = None


class Peers(NamedTuple):
    """The processes that can end a system call which a thread sleeps in.

    Attributes:
        said: The call and what it is about, as `read of pipe 4711 (fd 5)`.
        by: What the processes are to it, as `written by`; nothing of children.
        pids: The processes.
        is_all: Nobody else can end it, save for a signal.
        unless: Who may end it unseen, as a subject; empty if nobody is known who may.
        names: What the processes are called.
        same: Processes that have the same end of a socket, and can shut it down.
        ends: The keys of a socket and of that at the other end.
    """

    said: str
    by: str = ""
    pids: frozenset[int] = frozenset()
    is_all: bool = False
    unless: str = ""
    names: tuple[str, ...] = ()
    same: frozenset[int] = frozenset()
    ends: tuple[int, int] = (0, 0)


class ThreadPicture(NamedTuple):
    """A thread and what it waits for.

    Attributes:
        pid: Its process.
        thread: The thread.
        wait: What it waits for; None when it runs or is ready to run.
        object_name: The global variable that it waits for, or empty.
        frames: Its stack, the innermost first.
        site: The call in the program that led here.
        handler: The signal handler that it is in, and what that has interrupted; or empty.
        runs_once: Where the frames and registers lie in which Rust's library runs functions once.
        limit: The time limit of the wait, where it is known.
        peers: Of a system call, the processes that can end it, where that is known.
        leaves_jobs: It does a job of a pool of Python, in which other jobs wait for a worker.
        crossed: It waits for an item that only comes after an item that it would put itself.
    """

    pid: int
    thread: Thread
    wait: Wait | None
    object_name: str
    frames: tuple[ShownFrame, ...]
    site: str
    handler: str = ""
    runs_once: tuple[range, ...] = ()
    limit: Limit | None = None
    peers: Peers | None = None
    leaves_jobs: bool = False
    crossed: bool = False

    @property
    def state(self) -> State:
        """Whether it runs or could, sleeps in a system call, waits for a thread, or is stopped."""
        if self.thread.is_stopped:
            return "stopped"
        if self.wait is None:
            return "runnable" if self.thread.state == "R" else "asleep"
        return "asleep" if self.wait.kind == "call" else "waiting"
