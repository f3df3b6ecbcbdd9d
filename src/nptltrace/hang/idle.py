"""Whether all threads of a Python program only wait for work, until a signal ends the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython import PythonFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["wait_for_work"]

# Functions by which threads wait for work, and for the end of such threads.
_WORK = (("get", "/queue.py"), ("_worker", "/concurrent/futures/thread.py"))
_JOIN = ("join", "/threading.py")
# The function of a condition by which an event waits; the function of an event has the same name.
_WAIT = ("wait", "/threading.py")
# So many functions of the library there are before that of the program.
_INNERMOST = 3


def wait_for_work(threads: Sequence[ThreadPicture]) -> bool:
    """Return whether the threads of Python wait for work in queues, or for each other's end.

    Args:
        threads: All threads of a process.
    """
    stacks = [
        [
            (frame.function.rpartition(".")[2], frame.path)
            for frame in seen.frames
            if isinstance(frame, PythonFrame)
        ][:_INNERMOST]
        for seen in threads
    ]
    known = [stack for stack in stacks if stack]
    work = [any(_is(call, one) for call in stack for one in _WORK) for stack in known]
    return any(work) and all(
        one or any(_is(call, _JOIN) for call in stack) or _waits_for_event(stack)
        for one, stack in zip(work, known, strict=True)
    )


def _waits_for_event(stack: Sequence[tuple[str, str]]) -> bool:
    return [_is(call, _WAIT) for call in stack[:2]] == [True, True]


def _is(call: tuple[str, str], function: tuple[str, str]) -> bool:
    return call[0] == function[0] and call[1].endswith(function[1])
