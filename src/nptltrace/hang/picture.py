"""All threads of a process at one moment: the waits, the holders of the objects, the stacks."""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.catalog.runtimes import ownerless, runtime_of_file
from nptltrace.hang.c_library import c_library
from nptltrace.hang.calls import with_peers
from nptltrace.hang.owners.c_library import with_interrupted, with_stream
from nptltrace.hang.owners.free_locks import with_free
from nptltrace.hang.owners.monitors import with_monitors
from nptltrace.hang.owners.once import with_initializer, with_runners
from nptltrace.hang.owners.python_locks import with_gil, with_python_locks
from nptltrace.hang.owners.python_queues import with_python_queues
from nptltrace.hang.owners.rcu import with_grace
from nptltrace.hang.owners.ruby import with_ruby_mutexes
from nptltrace.hang.routines import (
    has_object,
    makes_calls,
    plain_name,
    routine_kind,
    routine_of,
    waits_for_library,
)
from nptltrace.hang.stack.cpython import PythonFrame, Pythons
from nptltrace.hang.stack.shown_frames import SignalFrame, signal_name
from nptltrace.hang.stack.stacks import DEPTH, Stacks
from nptltrace.hang.thread_picture import ThreadPicture
from nptltrace.hang.time_limits import with_limit
from nptltrace.hang.waits import Waits, is_call, spin_of, wait_of
from nptltrace.trace.symbols.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.hang.c_library import CLibrary
    from nptltrace.hang.stack.cpython import PythonRun
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.stack.stacks import Frame
    from nptltrace.hang.targets.target import Target, Thread
    from nptltrace.hang.thread_picture import ShownFrame

__all__ = ["Picture", "look"]

# How long to look again at running threads of Python, and the pause between looks. How often to
# look again at a thread that has run while it was read.
_PATIENCE_S, _PAUSE_S = 0.02, 0.001
_LOOKS = 3
# The largest number of functions between the C library's function and the system call.
_CALLED = 3
_LIBRARY = ("libc.so", "libc-", "libpthread", "ld-linux", "[vdso]", "libnptltrace.so")


class Picture(NamedTuple):
    """The threads of a process. They were read in sequence, and may have gone on meanwhile.

    Attributes:
        pid: The process.
        name: The name of the process.
        title: The name of the process in reports.
        threads: The threads in the order of their ids.
        uncovered: The modules with locks that name no owner, each with the reason.
        black_box: `read`, `damaged`, `unread` or `none`: whether the black box of the process was
            read.
    """

    pid: int
    name: str
    title: str
    threads: tuple[ThreadPicture, ...]
    uncovered: tuple[tuple[str, str], ...] = ()
    black_box: str = "none"


def look(process: Target, names: Names) -> Picture:
    """Read all threads of a process once.

    Args:
        process: The process.
        names: The names in the process.
    """
    threads = process.threads_ahead(names.prepare)
    library = c_library(process, names)
    process.tid_at = library.tid_at
    pythons = Pythons(process, names)
    if pythons.threads:
        until = time.monotonic() + _PATIENCE_S
        threads = [_asleep_again(process, thread, until) for thread in threads]
    reader = _Reader(process, names, pythons, library, threads)
    pictures = [reader.picture(thread) for thread in threads]
    process.forget()
    pictures = with_interrupted(process, with_runners(process, pictures))
    pictures = [with_initializer(seen, pictures) for seen in pictures]
    tids = reader.tids
    pictures = [with_stream(process, names, with_grace(process, tids, seen)) for seen in pictures]
    states = pythons.threads
    pictures = with_ruby_mutexes(process, [with_gil(process, states, seen) for seen in pictures])
    pictures = with_python_queues(process, pythons, with_python_locks(process, pythons, pictures))
    pictures, unknown_java = with_monitors(process, names, pictures)
    pictures = [with_free(process, _without_itself(process, seen)) for seen in pictures]
    limited = tuple(with_limit(process, seen) for seen in with_peers(process, pictures))
    uncovered = (
        *_unknown_c_library(library), *_unknown_python(pythons), *unknown_java,
        *_ownerless_locks(process),
    )  # fmt: skip
    return Picture(process.pid, process.name, process.title, limited, uncovered)


class _Reader:
    """Reads the waits and frames of threads.

    Args:
        process: The process.
        names: The names in the process.
        pythons: Its interpreters.
        library: Its C library.
        threads: Its threads.

    Attributes:
        tids: The ids of the threads in the PID namespace of the process.
    """

    def __init__(
        self, process: Target, names: Names, pythons: Pythons, library: CLibrary,
        threads: Sequence[Thread],
    ) -> None:  # fmt: skip
        self._process, self._names, self._pythons = process, names, pythons
        self._stacks, self._library = Stacks(process, names.files), library
        self.tids = frozenset(thread.inner_tid for thread in threads)
        # Threads in the same place share their frames.
        self._known: dict[int, tuple[Sequence[Frame], _Stack]] = {}

    def picture(self, thread: Thread) -> ThreadPicture:
        """Return the picture of a thread, without the owner of what it waits for.

        The frames of Python are read after the wait. If the thread has run in between, it is read
        again. If it has run in the last look, too, and went to another place before this look, it
        is shown as a thread that runs.

        Args:
            thread: The thread.
        """
        seen = self._picture(thread)
        if not self._pythons.threads:
            return seen
        for _ in range(_LOOKS):
            if not self._process.has_run([seen.thread]):
                return seen
            if (now := self._process.thread(thread.tid)) is None:
                return seen
            before, seen = seen, self._picture(now)
        stays = _place(before.thread) == _place(seen.thread)
        return seen if stays else _running(self._process, seen)

    def _picture(self, thread: Thread) -> ThreadPicture:
        process, names, pythons = self._process, self._names, self._pythons
        walked = self._stacks.of(thread)
        if id(walked) not in self._known:
            self._known[id(walked)] = walked, _stack(walked, names, pythons, self._stacks)
        stack = self._known[id(walked)][1]
        if thread.call is None and stack.spins_at:
            wait = spin_of(process, thread, stack.spins_at)
        else:
            wait = wait_of(process, thread, self.tids, stack.waits, self._library)
        shown: tuple[ShownFrame, ...] = stack.frames
        site = stack.site
        if pythons.threads:
            # In the kernel, the main thread has the name of the program.
            thread = thread._replace(name=pythons.thread_name(thread.inner_tid) or thread.name)
            shown = _with_python(stack, pythons, thread)
            site = _site(shown, names) if shown is not stack.frames else site
        address = wait.object if wait is not None else 0
        name = names.object(address) if address else ""
        once = tuple(range(thread.sp + r.start, thread.sp + r.stop) for r in stack.runs_once)
        return ThreadPicture(process.pid, thread, wait, name, shown, site, stack.handler, once)


def _place(thread: Thread) -> tuple[object, ...]:
    return thread.call, thread.sp, thread.pc


def _without_itself(process: Target, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread as a running thread if it took the lock after its wait was read."""
    is_owner = seen.wait is not None and seen.wait.owner == seen.thread.inner_tid
    return _running(process, seen) if is_owner else seen


def _running(process: Target, seen: ThreadPicture) -> ThreadPicture:
    """Return a thread as a running thread if it has run since its wait was read."""
    if seen.wait is None or not process.has_run([seen.thread]):
        return seen
    return seen._replace(wait=None, thread=seen.thread._replace(state="R"), object_name="")


def _unknown_c_library(library: CLibrary) -> Iterator[tuple[str, str]]:
    """Yield the C library and a reason if PTT does not know all offsets in its structures."""
    if not library.is_known:
        version = f"version {library.version}" if library.version else "this version"
        why = f"{version} of the C library is not known to this version of PTT"
        yield library.path, f"{why}: the owners of its rwlocks are unknown"


def _unknown_python(pythons: Pythons) -> Iterator[tuple[str, str]]:
    """Yield the interpreter and a reason if PTT does not know the structures of its version."""
    if pythons.unknown:
        why = (
            f"functions and locks of Python {pythons.unknown} are not known to this version of "
            "PTT: who holds its locks is unknown"
        )
        yield pythons.module, why


def _ownerless_locks(process: Target) -> tuple[tuple[str, str], ...]:
    """Return the modules of a process with locks that name no owner, each with the reason."""
    paths = list(dict.fromkeys(module.path for module in process.modules))
    program = next((path for path in paths if ".so" not in path.rpartition("/")[2]), "")
    # For a core file, read the program at its original path.
    file = f"/proc/{process.pid}/exe" if process.files is not None else program
    inside = {program: runtime_of_file(file)} if program else {}
    reasons = ((path, ownerless(path, inside.get(path, ""))) for path in paths)
    return tuple((path, f"the owners of {what} are unknown") for path, what in reasons if what)


def _asleep_again(process: Target, thread: Thread, until: float) -> Thread:
    """Return a running thread asleep, if it soon sleeps.

    A thread that waits for the GIL of CPython runs now and then to ask for the GIL.

    Args:
        process: The process.
        thread: The thread.
        until: The end of the search, as a time of `time.monotonic()`.
    """
    asleep = thread
    while asleep.call is None and not asleep.has_ended and not asleep.saved:
        asleep = process.thread(thread.tid) or asleep
        if time.monotonic() > until:
            break
        time.sleep(_PAUSE_S)
    return asleep


class _Stack(NamedTuple):
    """A stack that several threads may share.

    Attributes:
        frames: The frames with names.
        waits: The facts about the wait.
        spins_at: The offset in a function that spins for a lock; 0 if the stack does not spin.
        calls: The numbers of the interpreter's frames that run functions of Python.
        site: The call site in the program.
        handler: The current signal handler and the interrupted function in words, or empty.
        runs_once: The places of frames and registers that Rust's library uses to run functions
            once, relative as `Frame.stack`.
        pointers: The stack pointers of the frames, relative as `Frame.stack`.
    """

    frames: tuple[Location | SignalFrame, ...]
    waits: Waits
    spins_at: int
    calls: tuple[int, ...]
    site: str
    handler: str
    runs_once: tuple[range, ...]
    pointers: tuple[int, ...]


def _stack(walked: Sequence[Frame], names: Names, pythons: Pythons, stacks: Stacks) -> _Stack:
    signals = [*(frame.signal for frame in walked[1:]), 0]
    frames = tuple(
        SignalFrame(signal_name(signal)) if signal else _located(walked, n, names, stacks)
        for n, signal in enumerate(signals[: len(walked)])
    )
    functions = [call for frame in frames for call in _calls(frame)]
    routine = routine_of(functions, names.is_library)
    innermost_names = [name for name, _ in functions if name and not makes_calls(name)][:_CALLED]
    waits = Waits(
        routine,
        next(iter(innermost_names), ""),
        any(map(waits_for_library, innermost_names)),
    )
    calls = tuple(n for n, frame in enumerate(walked) if frame.address in pythons.evaluates)
    innermost = frames[0] if frames else None
    spins = isinstance(innermost, Location) and routine_kind(innermost.function) == "spin lock"
    spins_at = innermost.offset if spins and isinstance(innermost, Location) else 0
    site, handler = _site(frames, names), _handler(frames, names)
    runs_once = tuple(_runs_once(walked, frames, routine))
    pointers = tuple(frame.stack for frame in walked)
    return _Stack(frames, waits, spins_at, calls, site, handler, runs_once, pointers)


def _located(walked: Sequence[Frame], n: int, names: Names, stacks: Stacks) -> Location:
    location = names.location(walked[n], innermost=not n)
    if location.function or n + 1 == len(walked) or walked[n + 1].signal:
        return location
    # The library has no symbols of internal functions, but the call shows the exported function.
    return names.called(location, stacks.called_before(walked[n + 1].address))


def _runs_once(
    walked: Sequence[Frame], frames: Sequence[ShownFrame], routine: str
) -> Iterator[range]:
    """Yield the places of frames and registers that Rust's library uses to run a function once.

    Args:
        walked: The frames.
        frames: The same frames with names.
        routine: The library function that waits, or empty.
    """
    waits = routine_kind(routine) == "once"
    for n, frame in enumerate(frames[:-1]):
        if not any(routine_kind(f) == "once" and has_object(f) for f, _ in _calls(frame)):
            continue
        if not waits:
            yield range(walked[n].stack, walked[n + 1].stack)
            yield from (range(at, at + 8) for at in walked[n].kept)
        waits = False


def _calls(frame: ShownFrame) -> Iterator[tuple[str, str]]:
    """Yield function and module of each call in a frame, the innermost inlined call first."""
    if isinstance(frame, Location):
        yield from ((inner.function, frame.module) for inner in frame.inlined)
    yield frame.function, frame.module


def _with_python(stack: _Stack, pythons: Pythons, thread: Thread) -> tuple[ShownFrame, ...]:
    """Return a stack with Python's functions in place of the interpreter's functions.

    The stack stays unchanged if the interpreter's frames and its records do not match. Of a stack
    with more frames than were walked, the outer functions of Python are known nevertheless.
    """
    frames, all_runs = stack.frames, pythons.of(thread.inner_tid)
    runs = _walked(stack, all_runs, thread.sp)
    calls = _marked(stack, runs, thread.sp) or stack.calls
    if not runs or len(runs) != len(calls):
        return frames
    mixed: list[ShownFrame] = list(frames[: calls[0]])
    for number, frame in enumerate(frames[calls[0] :], calls[0]):
        if number in calls:
            mixed += runs[calls.index(number)].frames
        elif frame.module != pythons.module or not pythons.alone:
            mixed.append(frame)
    mixed += (frame for run in all_runs[len(runs) :] for frame in run.frames)
    return tuple(mixed)


def _walked(stack: _Stack, runs: Sequence[PythonRun], sp: int) -> Sequence[PythonRun]:
    """Return the interpreter's calls that are among the frames of a stack."""
    if len(stack.frames) < DEPTH:
        return runs
    if all(run.marker for run in runs):
        return [run for run in runs if run.marker - sp < stack.pointers[-1]]
    return runs[: len(stack.calls)]


def _marked(stack: _Stack, runs: Sequence[PythonRun], sp: int) -> tuple[int, ...]:
    """Return the numbers of the frames with the markers of the interpreter's calls.

    A compiler may have split the function of the interpreter into parts with other names.
    """
    if not all(run.marker for run in runs):
        return ()
    numbers = [bisect_right(stack.pointers, run.marker - sp) - 1 for run in runs]
    within = all(0 <= n < len(stack.frames) - 1 for n in numbers)
    return tuple(numbers) if within and numbers == sorted(set(numbers)) else ()


def _site(frames: Sequence[ShownFrame], names: Names) -> str:
    """Return the call site: the innermost frame of the program, preferably in Python."""
    if python := [frame for frame in frames if isinstance(frame, PythonFrame)]:
        program = (frame for frame in python if not names.is_library(frame.function, frame.path))
        return str(next(program, python[0]))
    natives = [frame for frame in frames if isinstance(frame, Location)]
    # In a static program, the function of the system call is in the module of the program.
    first = bool(natives) and is_call(natives[0].function)
    sites = (name for frame in natives[first:] if (name := names.site(frame)))
    outside = (str(frame) for frame in natives if not frame.module.startswith(_LIBRARY))
    return next(sites, next(outside, str(natives[0]) if natives else ""))


def _handler(frames: Sequence[ShownFrame], names: Names) -> str:
    """Return the current signal handler and the interrupted function in words, or empty."""
    signals = ((n, f.signal) for n, f in enumerate(frames) if isinstance(f, SignalFrame))
    at, signal = next(signals, (None, ""))
    if at is None:
        return ""
    text, inner = f"a handler of {signal}" if signal else "a signal handler", ""
    for function, module in (call for frame in frames[at + 1 :] for call in _calls(frame)):
        if function and not names.is_library(function, module):
            within = f"{_called(inner)} in " if inner else ""
            return f"{text} that interrupted {within}{_called(function)}"
        inner = plain_name(function) or inner
    return f"{text} that interrupted {_called(inner)}" if inner else text


def _called(function: str) -> str:
    """Return a function as in a sentence: `note()`."""
    return function if function.endswith(")") else f"{function}()"
