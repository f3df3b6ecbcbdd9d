"""All threads of a process at one moment: what each waits for, its holder, the callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.calls import with_peers
from nptltrace.hang.free import with_free
from nptltrace.hang.gil import with_gils
from nptltrace.hang.monitors import with_monitors
from nptltrace.hang.once import with_runners
from nptltrace.hang.stack.cpython import PythonFrame, Pythons
from nptltrace.hang.stack.stacks import Stacks
from nptltrace.hang.thread_picture import ThreadPicture
from nptltrace.hang.waits import routine_kind, spin_of, wait_of
from nptltrace.trace.symbols.location import Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.stack.stacks import Frame
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.targets.thread import Thread

__all__ = ["Picture", "look"]

# Functions of the C library, and of the tracer, in front of a call, of which nobody needs to read.
_LIBRARY = ("libc.so", "libc-", "libpthread", "ld-linux", "[vdso]", "libnptltrace.so")

# So often a thread is looked at that runs.
_LOOKS = 4
# The frame of what called a library that makes a system call.
_CALLER = 2


class Picture(NamedTuple):
    """The threads of a process, one after the other: they went on meanwhile, if they could.

    Attributes:
        pid: The process.
        name: Its name.
        title: What a report calls it.
        threads: Its threads by id.
    """

    pid: int
    name: str
    title: str
    threads: tuple[ThreadPicture, ...]


def look(process: Target, names: Names) -> Picture:
    """Look at all threads of a process once.

    Args:
        process: The process.
        names: Names for what lies in it.
    """
    stacks = Stacks(process, names.files)
    threads = process.threads_ahead(names.prepare)
    tids = frozenset(thread.inner_tid for thread in threads)
    pythons = Pythons(process, names)
    if pythons.threads:
        threads = [_asleep_again(process, thread) for thread in threads]
    named: dict[int, str] = {0: ""}
    known: dict[int, tuple[Sequence[Frame], _Stack]] = {}
    found: list[ThreadPicture] = []
    for thread in threads:
        walked = stacks.of(thread)
        if id(walked) not in known:  # those of threads in the same place are the same
            known[id(walked)] = walked, _stack(walked, names, pythons, stacks)
        stack = known[id(walked)][1]
        if thread.call is None and stack.spins_at:
            wait = spin_of(process, thread, stack.spins_at)
        else:
            wait = wait_of(process, thread, tids, stack.routine)
        shown: tuple[Location | PythonFrame, ...] = stack.frames
        site = stack.site
        if stack.calls:
            shown = _with_python(stack, pythons, thread.inner_tid)
            site = _site(shown, names)
        address = wait.object if wait is not None else 0
        if address not in named:
            named[address] = names.object(address)
        found.append(ThreadPicture(process.pid, thread, wait, named[address], shown, site))
    process.forget()
    found = with_gils(process, pythons.threads, with_runners(process, found))
    found = with_peers(process, with_free(process, with_monitors(process, names, found)))
    return Picture(process.pid, process.name, process.title, tuple(found))


def _asleep_again(process: Target, thread: Thread) -> Thread:
    """Return a thread as it sleeps, if it does so at once.

    A thread that waits for the lock of CPython's interpreter runs now and then to ask for it.
    """
    found = thread
    for _ in range(_LOOKS):
        if found.call is not None or found.has_ended or found.saved:
            break
        found = process.thread(thread.tid) or found
    return found


class _Stack(NamedTuple):
    """What is known of all threads whose stacks are the same.

    Attributes:
        frames: With names.
        routine: The function that waits, where it is one of a library of threads; or empty.
        spins_at: How far it has come in a function that spins for a lock; 0 in no such one.
        calls: Numbers of the frames in which CPython's interpreter calls functions of Python.
        site: The call in the program that led here.
    """

    frames: tuple[Location, ...]
    routine: str
    spins_at: int
    calls: tuple[int, ...]
    site: str


def _stack(walked: Sequence[Frame], names: Names, pythons: Pythons, stacks: Stacks) -> _Stack:
    frames = tuple(names.location(frame, innermost=not n) for n, frame in enumerate(walked))
    functions = (f for at in frames for f in (*(i.function for i in at.inlined), at.function))
    routine = next((f for f in functions if routine_kind(f)), "")
    if not routine and len(walked) > _CALLER and not frames[_CALLER - 1].function:
        # A library without symbols of its own functions: its callers name what they call.
        routine = names.function(stacks.called_before(walked[_CALLER].address))
    calls = tuple(n for n, frame in enumerate(walked) if frame.address in pythons.evaluates)
    spins = routine_kind(frames[0].function) == "spin lock" if frames else False
    spins_at = frames[0].offset if spins else 0
    return _Stack(frames, routine, spins_at, calls, _site(frames, names))


def _with_python(
    stack: _Stack, pythons: Pythons, inner_tid: int
) -> tuple[Location | PythonFrame, ...]:
    """Return a stack with Python's functions in place of those of the interpreter.

    Without them where the interpreter has noted more or fewer calls of it than there are.
    """
    frames, calls = stack.frames, stack.calls
    noted = pythons.of(inner_tid)
    if len(noted) != len(calls):
        return frames
    mixed: list[Location | PythonFrame] = list(frames[: calls[0]])
    for number, frame in enumerate(frames[calls[0] :], calls[0]):
        if number in calls:
            mixed += noted[calls.index(number)]
        elif frame.module != pythons.module:
            mixed.append(frame)
    return tuple(mixed)


def _routines_end(frames: Sequence[Location | PythonFrame]) -> int:
    """Return the number of the frame that called the routine in which a thread waits."""
    end = 0
    for number, frame in enumerate(frames):
        kind = routine_kind(frame.function)
        if kind == "once" and 0 < end < number:
            break  # what waits is called by the function that this one runs
        if kind:
            end = number + 1
    return end


def _site(frames: Sequence[Location | PythonFrame], names: Names) -> str:
    """Return the first frame that is the program's own: of Python, or behind all wrappers."""
    if python := next((frame for frame in frames if isinstance(frame, PythonFrame)), None):
        return str(python)
    # In a program that is linked statically the routine has no library of its own.
    behind = [
        frame
        for frame in frames[_routines_end(frames) :]
        if isinstance(frame, Location) and not frame.module.startswith(_LIBRARY)
    ]
    sites = (name for frame in behind if (name := names.site(frame)))
    return next(sites, str((behind or frames)[0]) if frames else "")
