"""Whether all threads of a Python program only wait for work, until a signal ends the program."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython import PythonFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.thread_picture import ShownFrame, ThreadPicture

__all__ = ["wait_for_work"]

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
# So many functions of the library there are before that of the program, and of multiprocessing.
_INNERMOST, _READING = 2, 4


def wait_for_work(processes: Sequence[Sequence[ThreadPicture]]) -> bool:
    """Return whether threads of Python wait for work in queues, or for each other's end.

    A process that multiprocessing did not start waits for results in a queue of processes.

    Args:
        processes: All threads of each process that waits for the others.
    """
    stacks = [[stack for seen in one if (stack := _calls(seen.frames))] for one in processes]
    results = any(_reads(stack) and not _is_started(stack) for one in stacks for stack in one)
    return not results and any(_is_idle(one) for one in stacks)


def _is_idle(stacks: Sequence[Sequence[Call]]) -> bool:
    work = [_waits_for_work(stack) for stack in stacks]
    return any(work) and all(
        one or _has(stack[:_INNERMOST], _JOIN) or _waits_for_event(stack)
        for one, stack in zip(work, stacks, strict=True)
    )


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


def _is(call: Call, function: Call) -> bool:
    return call[0] == function[0] and call[1].endswith(function[1])
