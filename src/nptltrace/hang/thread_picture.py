"""The picture of a thread at one moment: its wait and its stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from nptltrace.hang.stack.cpython import PythonFrame
    from nptltrace.hang.stack.shown_frames import JavaFrame, SignalFrame
    from nptltrace.hang.targets.target import Thread
    from nptltrace.hang.waits import Wait
    from nptltrace.trace.symbols.location import Location

    ShownFrame = Location | PythonFrame | SignalFrame | JavaFrame

__all__ = ["Did", "Held", "Limit", "Peers", "ShownFrame", "State", "ThreadPicture"]

State = Literal["runnable", "asleep", "waiting", "stopped"]


class Limit(NamedTuple):
    """The time limit of a wait.

    Attributes:
        ns: The time left in ns, negative after the limit; or the whole length of the limit.
        is_length: `ns` is the whole length, as the time left is not known.
        as_realtime_ns: For a limit by CLOCK_MONOTONIC, the time left if the same number were a time
            of CLOCK_REALTIME.
    """

    ns: int
    is_length: bool = False
    as_realtime_ns: int | None = None


class Peers(NamedTuple):
    """The processes that can end the system call of a sleeping thread.

    Attributes:
        text: The call and its object, as `read of pipe 4711 (fd 5)`.
        by: The relation to the processes, as `written by`; empty for children.
        pids: The processes.
        is_all: No other process can end the call, except by a signal.
        unless: A subject that may end the call without notice, such as `the kernel`; or empty.
        names: The processes in words.
        same: The processes with the same end of a socket, which can shut it down.
        ends: The keys of a socket and of its peer.
    """

    text: str
    by: str = ""
    pids: frozenset[int] = frozenset()
    is_all: bool = False
    unless: str = ""
    names: tuple[str, ...] = ()
    same: frozenset[int] = frozenset()
    ends: tuple[int, int] = (0, 0)


class Held(NamedTuple):
    """A lock that a thread holds, or a unit of a semaphore that it took, as the black box tells.

    Attributes:
        object: The address of the object.
        name: The name of the object, or empty.
        kind: The kind of the object, as in `ptt report`.
        since_ns_ago: How long before the look the thread took the object, in ns.
        site: The call site.
        stack: The stack of the acquisition, the innermost frame first; only the call site if the
            stack was not recorded.
        is_shared: The thread holds a rwlock for reading.
    """

    object: int
    name: str
    kind: str
    since_ns_ago: int
    site: str
    stack: tuple[str, ...]
    is_shared: bool = False


class Did(NamedTuple):
    """An event of a thread, from the black box.

    Attributes:
        ns_ago: How long before the look it happened, in ns.
        event: The name of the event.
        object: The address of the object, or 0.
        object_name: The name of the object, or empty.
        site: The call site, or empty.
    """

    ns_ago: int
    event: str
    object: int
    object_name: str
    site: str


class ThreadPicture(NamedTuple):
    """A thread and its wait.

    Attributes:
        pid: The process.
        thread: The thread.
        wait: The wait; None for a thread that runs or is ready to run.
        object_name: The name of the object that the thread waits for, or empty.
        frames: The stack, the innermost frame first.
        site: The call site in the program.
        handler: The current signal handler and the interrupted function in words, or empty.
        runs_once: The places of frames and registers that Rust uses to run functions once.
        limit: The time limit of the wait, if it is known.
        peers: The processes that can end the system call of the thread, if they are known.
        leaves_jobs: The thread does a job of a Python pool in which other jobs wait for a worker.
        crossed: The thread waits for an item that comes only after an item from this thread.
        held: The objects that the thread holds, from the black box, in the order of time.
        recent: The last events of the thread, from the black box, in the order of time.
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
    held: tuple[Held, ...] = ()
    recent: tuple[Did, ...] = ()

    @property
    def state(self) -> State:
        """The state for reports.

        A thread is *asleep* in a system call, *waiting* if its wait has an object, and *runnable*
        if it runs or is ready to run.
        """
        if self.thread.is_stopped:
            return "stopped"
        if self.wait is None:
            return "runnable" if self.thread.state == "R" else "asleep"
        return "asleep" if self.wait.kind == "call" else "waiting"
