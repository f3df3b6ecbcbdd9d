"""What semaphores of Python programs are for, by the functions that initialize them.

The interpreter's locks are semaphores up to CPython 3.13: most of them are locks of the program,
and their events say so. Others are parts of the library: threads wait there for work, for the end
of a thread, or for the one that imports a module. From 3.13 on, a thread that waits for a mutex of
the interpreter is parked at a semaphore of its own, which whoever has the mutex posts; from 3.14 on
all locks of Python are such mutexes.

Libraries initialize semaphores below functions of Python, too. The interpreter does not use these
semaphores, so the events alone say what they are for, as in programs without Python.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.headers import pttcheck
from nptltrace._binding.headers import pttmodel as c
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.code.modules import is_interpreter
from nptltrace.trace.code.python_code import code_and_offset, is_python
from nptltrace.trace.passed_over import PassedOver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace.trace.code.modules import Mapped
    from nptltrace.trace.code.python_code import PythonCode
    from nptltrace.trace.info import Process

__all__ = ["Made", "how_made", "made_with", "purpose_of", "purpose_of_wait"]

MODULE = "<module>"
_IMPORT = re.compile(r"<frozen importlib\..*>|.*/importlib/_bootstrap(_external)?\.py")
# What such locks are made, or waited for, in; all else in there calls what is imported.
_LOCKS_MODULE = ("__init__", "acquire")
# Queues that are written in C.
_SIMPLE_QUEUE = "_queue.cpython-"
# The semaphores of `multiprocessing`.
_OF_PROCESSES = "_multiprocessing.cpython-"
# A thread has a lock of its own until it ends; from 3.13 on, others are parked at its end.
_LOCK_OF_THREAD, _JOINS = "_set_tstate_lock", ("join", "_shutdown")
# All that waits for work has made a lock for that in here.
_WAITS = "wait"
_WAITS_FOR, _RUNS = "wait_for", "run"
# Functions in which a thread waits for work: of queues, of semaphores, and of queues of processes.
_TAKE_WORK = frozenset({"get", "acquire", "_feed"})
# A reader of a queue of processes has its lock while it waits for work.
_QUEUES, _GET = "/multiprocessing/queues.py", "get"
_THREADING = ("threading.py", "<frozen threading>")
# In these a lock of the library is taken; other functions of the library wait for other things.
_TAKE_LOCK = ("__enter__", "acquire")
# From this version of Python 3 on, threads are parked at semaphores, which begin without units.
_PARKS = 13


class Made(NamedTuple):
    """How a semaphore was initialized.

    Attributes:
        functions: The functions of Python in the stack, the innermost first; none if a library
            initialized the semaphore, and not the interpreter.
        inside: So many of the innermost are those of `threading`, `queue` and the like.
        simple: It is a part of a `SimpleQueue`.
        units: It began with units: it is a lock, and no thread is parked at it.
    """

    functions: Sequence[PythonCode]
    inside: int
    simple: bool
    units: bool

    @property
    def imports(self) -> bool:
        """Whether it is a part of the lock of a module that is imported."""
        inner = self.functions[:1] if self.inside else ()
        return any(
            _IMPORT.fullmatch(code.path) and code.function.rpartition(".")[2] in _LOCKS_MODULE
            for code in inner
        )

    @property
    def imported(self) -> bool:
        """Whether a module that is not of Python made it while it was imported."""
        inner = self.functions[:1] if self.inside else ()
        return not self.imports and any(_IMPORT.fullmatch(code.path) for code in inner)

    @property
    def reads(self) -> bool:
        """Whether a thread takes the lock of a queue of processes, to wait for work there."""
        return any(
            code.path.endswith(_QUEUES) and code.function.rpartition(".")[2] == _GET
            for code in self.functions[: self.inside]
        )

    @property
    def purpose(self) -> int:
        """What it is for, `pttmodel.PTT_FOR_…`."""
        inside = self.functions[: self.inside]
        names = [code.function.rpartition(".")[2] for code in inside]
        if self.imports:
            return c.PTT_FOR_HOLDER
        if self.simple:
            return c.PTT_FOR_WORK
        if _LOCK_OF_THREAD in names:
            return c.PTT_FOR_END
        if inside and PurePath(inside[0].path).name in _THREADING:
            if names[0] in _JOINS and not self.units:
                return c.PTT_FOR_END
            if names[0] == _WAITS:
                return c.PTT_FOR_WORK
        return self._of_program

    @property
    def _of_program(self) -> int:
        """What it is for if it is no part of the library."""
        if self.units:
            made = self.functions and not self.imported
            return c.PTT_FOR_LOCK if made else c.PTT_FOR_ANYTHING
        parks = any(code.minor >= _PARKS for code in self.functions[:1])
        return c.PTT_FOR_HOLDER if parks else c.PTT_FOR_ANYTHING

    @property
    def use(self) -> int:
        """What threads wait for there, `pttcheck.PTT_USED_…`."""
        if self.purpose == c.PTT_FOR_END:
            return pttcheck.PTT_USED_FOR_END
        # Whoever waits for a module has taken it; the thread that imports the module gives it back.
        if self.imports and self.units:
            return pttcheck.PTT_USED_FOR_RESULT
        if self.purpose != c.PTT_FOR_WORK:
            return pttcheck.PTT_USED_ANYHOW
        return pttcheck.PTT_USED_FOR_WORK if self.simple else self._use_of_wait

    @property
    def _use_of_wait(self) -> int:
        """What threads wait for where a function of the library has made a lock for that."""
        inside = (code.function.rpartition(".")[2] for code in self.functions[1 : self.inside])
        callers = [name for name in inside if name != _WAITS_FOR]
        # A method that waits may be all that a thread runs.
        first, second = (*callers, _RUNS, _RUNS)[:2]
        if first == _RUNS:
            return pttcheck.PTT_USED_FOR_CONDITION
        if first == _WAITS and second == _RUNS:
            return pttcheck.PTT_USED_FOR_EVENT
        waits_for_work = first in _TAKE_WORK
        return pttcheck.PTT_USED_FOR_WORK if waits_for_work else pttcheck.PTT_USED_FOR_RESULT


def how_made(
    process: Mapped, sites: Sequence[int], passed_over: Callable[[str, str], bool], *, units: bool
) -> Made:
    """Return how a semaphore was initialized.

    Args:
        process: Its process.
        sites: The addresses in the stack, the innermost first.
        passed_over: Says of a function and its source whether it is one of the library.
        units: It began with units.
    """
    modules = [
        PurePath(module.path).name if (module := process.map.at(site)) else ""
        for site in takewhile(lambda site: not is_python(site), sites)
    ]
    if modules and not (is_interpreter(modules[0]) or modules[0].startswith(_OF_PROCESSES)):
        return Made((), 0, simple=False, units=units)
    found = [process.codes.get(code_and_offset(site)[0]) for site in sites if is_python(site)]
    functions = [code for code in found if code is not None]
    inside = takewhile(
        lambda code: code.function != MODULE and passed_over(code.function, code.path), functions
    )
    simple = any(name.startswith(_SIMPLE_QUEUE) for name in modules)
    return Made(functions, len(list(inside)), simple, units)


def purpose_of(process: Process, stack: int, *, units: bool) -> int:
    """Return what a semaphore is for that was initialized with a stack, `pttmodel.PTT_FOR_…`.

    Args:
        process: Its process.
        stack: The number of the stack.
        units: It began with units.
    """
    return made_with(process, stack, units=units).purpose


def purpose_of_wait(process: Process, stack: int) -> int:
    """Return what a semaphore is for of which only a wait is seen, `pttmodel.PTT_FOR_…`.

    A lock of the interpreter that was made before the recording is a semaphore with one unit.

    Args:
        process: Its process.
        stack: The number of the stack of the wait.
    """
    made = made_with(process, stack, units=True)
    if made.reads:
        return c.PTT_FOR_WORK
    if not made.functions or made.functions[0].minor >= _PARKS or made.simple:
        return c.PTT_FOR_ANYTHING
    inside = made.functions[: made.inside]
    takes = not inside or inside[0].function.rpartition(".")[2] in _TAKE_LOCK
    return c.PTT_FOR_LOCK if takes and made.purpose == c.PTT_FOR_LOCK else c.PTT_FOR_ANYTHING


def made_with(process: Process, stack: int, *, units: bool) -> Made:
    """Return how a semaphore was initialized, or is waited for, with a stack.

    Args:
        process: Its process.
        stack: The number of the stack.
        units: It began with units.
    """
    return how_made(process, stack_sites(process.stacks, stack), _passed_over(), units=units)


@cache
def _passed_over() -> PassedOver:
    return PassedOver()
