"""Whether all threads of a Python program only wait for work, until a signal ends the program."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython import PythonFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.thread_picture import ShownFrame, ThreadPicture

__all__ = ["wait_for_signal", "wait_for_work"]

# A function of Python, and the end of its file's path.
Call = tuple[str, str]

_GET: Call = ("get", "/queue.py")
# Functions by which threads wait for work, behind at most one other: the function of a condition.
_WORK: tuple[Call, ...] = (_GET, ("_feed", "/multiprocessing/queues.py"))
# A pool's worker waits for work by a function in C. Jobs have it behind their own functions.
_WORKER: Call = ("_worker", "/concurrent/futures/thread.py")
# The module of SimpleQueue, in which its threads only wait for work.
_SIMPLE_QUEUE = "_queue."
# Functions by which a process reads from a queue of processes, the innermost first and last.
_READ: Call = ("_recv", "/multiprocessing/connection.py")
_GET_OF_PROCESSES: Call = ("get", "/multiprocessing/queues.py")
# What a process that multiprocessing has started does from begin to end.
_STARTED: Call = ("_bootstrap", "/multiprocessing/process.py")
# Functions by which a thread waits for the end of another one.
_JOIN: Call = ("join", "/threading.py")
# The function of a condition by which an event waits; the function of an event has the same name.
_WAIT: Call = ("wait", "/threading.py")
_WAIT_FOR: Call = ("wait_for", "/threading.py")
_FUTURES = "/concurrent/futures/_base.py"
# Functions that wait on a condition for what another thread does, or has.
_RESULTS: tuple[Call, ...] = (
    ("result", _FUTURES), ("exception", _FUTURES), ("wait", _FUTURES), ("as_completed", _FUTURES),
    ("put", "/queue.py"), ("join", "/queue.py"), ("wait", "/multiprocessing/pool.py"),
    ("_wait", "/threading.py"), ("_enter", "/threading.py"),
)  # fmt: skip
# So many functions of the library there are before that of the program, and of multiprocessing.
_INNERMOST, _READING = 2, 4


def wait_for_work(processes: Sequence[Sequence[ThreadPicture]]) -> bool:
    """Return whether threads of Python wait for work in queues, or for each other's end.

    A process that multiprocessing did not start waits for results in a queue of processes.

    Args:
        processes: All threads of each process that waits for the others.
    """
    stacks = [[*_stacks(one).values()] for one in processes]
    results = any(_reads(stack) and not _is_started(stack) for one in stacks for stack in one)
    return not results and any(
        any(map(_waits_for_work, one)) and all(map(_is_idle, one)) for one in stacks
    )


def wait_for_signal(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether the first thread of Python may wait for a signal, and all others for work.

    The first thread waits for an event then, and others wait on conditions of the program.

    Args:
        threads: All threads of a process.
    """
    stacks = _stacks(threads)
    first = stacks.get(threads[0].pid, []) if threads else []
    return (
        _waits_for_event(first)
        and not any(_has(first[2:3], one) for one in _RESULTS)
        and all(_is_idle(stack) or _waits_on_condition(stack) for stack in stacks.values())
    )


def _stacks(threads: Sequence[ThreadPicture]) -> dict[int, list[Call]]:
    """Return the functions of the threads of Python, by the thread."""
    return {seen.thread.tid: stack for seen in threads if (stack := _calls(seen.frames))}


def _is_idle(stack: Sequence[Call]) -> bool:
    return _waits_for_work(stack) or _has(stack[:_INNERMOST], _JOIN) or _waits_for_event(stack)


def _calls(frames: Sequence[ShownFrame]) -> list[Call]:
    """Return the functions of Python that a thread is in, the innermost first.

    SimpleQueue is written in C: it has no function of Python.
    """
    found = [
        (frame.function.rpartition(".")[2], frame.path)
        for frame in frames
        if isinstance(frame, PythonFrame)
    ]
    inner = itertools.takewhile(lambda frame: not isinstance(frame, PythonFrame), frames)
    if found and any(frame.module.startswith(_SIMPLE_QUEUE) for frame in inner):
        found.insert(0, _GET)
    return found


def _waits_for_work(stack: Sequence[Call]) -> bool:
    in_library = any(_has(stack[:_INNERMOST], one) for one in _WORK)
    return in_library or _is(stack[0], _WORKER) or (_reads(stack) and _is_started(stack))


def _reads(stack: Sequence[Call]) -> bool:
    return _is(stack[0], _READ) and _has(stack[:_READING], _GET_OF_PROCESSES)


def _is_started(stack: Sequence[Call]) -> bool:
    return _has(stack, _STARTED)


def _has(stack: Sequence[Call], function: Call) -> bool:
    return any(_is(call, function) for call in stack)


def _waits_for_event(stack: Sequence[Call]) -> bool:
    return [_is(call, _WAIT) for call in stack[:2]] == [True, True]


def _waits_on_condition(stack: Sequence[Call]) -> bool:
    """Return whether a thread waits on a condition of the program, and not for a result."""
    caller = next((call for call in stack[1:3] if not _is(call, _WAIT_FOR)), ("", ""))
    return _is(stack[0], _WAIT) and not any(_is(caller, one) for one in _RESULTS)


def _is(call: Call, function: Call) -> bool:
    return call[0] == function[0] and call[1].endswith(function[1])
