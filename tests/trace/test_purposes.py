"""The functions that initialize semaphores of Python programs show the purpose."""

from __future__ import annotations

import pytest

from nptltrace._binding.headers import pttmodel as c
from nptltrace.trace.code.python_code import PythonCode
from nptltrace.trace.objects.purposes import Made

LIBRARY = "/usr/lib/python3.14/"
WORK = ("work", "app.py")


@pytest.mark.parametrize(
    ("stack", "inside", "units", "purpose"),
    [
        # A lock of the program; a thread that is parked at a lock.
        ([WORK], 0, True, c.PTT_FOR_LOCK),
        ([WORK], 0, False, c.PTT_FOR_HOLDER),
        ([("Condition.__enter__", "threading.py"), WORK], 1, False, c.PTT_FOR_HOLDER),
        ([("Queue.__init__", "queue.py"), WORK], 1, True, c.PTT_FOR_LOCK),
        # Waits for work.
        ([("Condition.wait", "threading.py"), ("Queue.get", "queue.py"), WORK], 2, True,
         c.PTT_FOR_WORK),
        ([("wait", "threading.py"), WORK], 1, False, c.PTT_FOR_WORK),
        ([("wait", "app/threading.py")], 0, True, c.PTT_FOR_LOCK),
        # Ends of threads.
        ([("Thread._set_tstate_lock", "threading.py")], 1, True, c.PTT_FOR_END),
        ([("Thread.join", "threading.py"), WORK], 1, False, c.PTT_FOR_END),
        ([("_shutdown", "threading.py")], 1, False, c.PTT_FOR_END),
        # Modules that are imported.
        ([("_ModuleLock.__init__", "<frozen importlib._bootstrap>"), WORK], 1, True,
         c.PTT_FOR_HOLDER),
        ([("_ModuleLock.acquire", "<frozen importlib._bootstrap>"), WORK], 1, False,
         c.PTT_FOR_HOLDER),
        # A lock that a module written in C makes during its import.
        ([("_call_with_frames_removed", "<frozen importlib._bootstrap>"), WORK], 1, True,
         c.PTT_FOR_ANYTHING),
        ([], 0, False, c.PTT_FOR_ANYTHING),
    ],
)  # fmt: skip
def test_the_stack_of_the_initialization_shows_the_purpose(
    stack: list[tuple[str, str]], inside: int, *, units: bool, purpose: int
) -> None:
    functions = [
        PythonCode(name, path if "<" in path else LIBRARY + path, 1, 14, b"")
        for name, path in stack
    ]
    assert Made(functions, inside, simple=False, units=units).purpose == purpose


def test_simple_queues_are_for_work() -> None:
    functions = [PythonCode("work", "app.py", 1, 14, b"")]
    for units in (False, True):
        assert Made(functions, 0, simple=True, units=units).purpose == c.PTT_FOR_WORK
