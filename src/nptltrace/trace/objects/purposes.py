"""The purposes of semaphores of Python programs, from the functions that initialize them.

Up to CPython 3.13, locks of Python are semaphores. Most of them are locks of the program, and their
events show it. Other semaphores are parts of the library. There, threads wait for work, for the end
of a thread, or for the thread that imports a module.

From 3.13 on, a thread that waits for a mutex of the interpreter is parked at its own semaphore. The
thread that has the mutex posts it. From 3.14 on, all locks of Python are such mutexes.

Semaphores of an interpreter of an unknown version have an unknown purpose.

Libraries called from Python initialize semaphores too. The interpreter does not use these, so only
their events tell the purpose, as in programs without Python.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.headers import pttcheck
from nptltrace._binding.headers import pttmodel as c
from nptltrace.catalog.runtimes import is_unknown_python
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
# Functions of importlib that make or take import locks. Its other functions call imported code.
_LOCKS_MODULE = ("__init__", "acquire")
# The module with the class `SimpleQueue`, written in C.
_SIMPLE_QUEUE = "_queue.cpython-"
# The module with the semaphores of `multiprocessing`.
_OF_PROCESSES = "_multiprocessing.cpython-"
# A thread keeps a lock until it ends. From 3.13 on, joining threads are parked instead.
_LOCK_OF_THREAD, _JOINS = "_set_tstate_lock", ("join", "_shutdown")
# `threading` makes a lock for each wait for work in this function.
_WAITS = "wait"
_WAITS_FOR, _RUNS = "wait_for", "run"
# Functions that wait for work: of queues, of semaphores, and of queues of processes.
_TAKE_WORK = frozenset({"get", "acquire", "_feed"})
# A reader of a queue of processes keeps the lock of the queue while it waits for work.
_QUEUES, _GET = "/multiprocessing/queues.py", "get"
_THREADING = ("threading.py", "<frozen threading>")
# Functions of the library that take a lock. Its other functions wait for other things.
_TAKE_LOCK = ("__enter__", "acquire")
# From this minor version on, threads are parked at semaphores, which begin without units.
_PARKS = 13


class Made(NamedTuple):
    """How a semaphore was initialized.

    Attributes:
        functions: The functions of Python in the stack, the innermost first; empty if a library
            initialized the semaphore, not the interpreter.
        inside: How many innermost functions belong to `threading`, `queue` and the like.
        simple: Whether it is a part of a `SimpleQueue`.
        units: Whether it began with units: then it is a lock, and no thread is parked at it.
        unknown: Whether an interpreter of an unknown version initialized it.
    """

    functions: Sequence[PythonCode]
    inside: int
    simple: bool
    units: bool
    unknown: bool = False

    @property
    def imports(self) -> bool:
        """Whether it is a part of an import lock of a module."""
        inner = self.functions[:1] if self.inside else ()
        return any(
            _IMPORT.fullmatch(code.path) and code.function.rpartition(".")[2] in _LOCKS_MODULE
            for code in inner
        )

    @property
    def imported(self) -> bool:
        """Whether a native module made it while it was imported."""
        inner = self.functions[:1] if self.inside else ()
        return not self.imports and any(_IMPORT.fullmatch(code.path) for code in inner)

    @property
    def reads(self) -> bool:
        """Whether a thread takes the lock of a queue of processes to wait for work."""
        return any(
            code.path.endswith(_QUEUES) and code.function.rpartition(".")[2] == _GET
            for code in self.functions[: self.inside]
        )

    @property
    def purpose(self) -> int:
        """The purpose, `pttmodel.PTT_FOR_…`."""
        return c.PTT_FOR_UNKNOWN if self.unknown else self._of_known

    @property
    def _of_known(self) -> int:
        """The purpose if no interpreter of an unknown version made it."""
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
        """The purpose if it is not a part of the library."""
        if self.units:
            made = self.functions and not self.imported
            return c.PTT_FOR_LOCK if made else c.PTT_FOR_ANYTHING
        parks = any(code.minor >= _PARKS for code in self.functions[:1])
        return c.PTT_FOR_HOLDER if parks else c.PTT_FOR_ANYTHING

    @property
    def use(self) -> int:
        """The use: what threads wait for there, `pttcheck.PTT_USED_…`."""
        if self.purpose == c.PTT_FOR_END:
            return pttcheck.PTT_USED_FOR_END
        # A thread that waits for a module takes it. The thread that imports the module posts it.
        if self.imports and self.units:
            return pttcheck.PTT_USED_FOR_RESULT
        if self.purpose != c.PTT_FOR_WORK:
            return pttcheck.PTT_USED_ANYHOW
        return pttcheck.PTT_USED_FOR_WORK if self.simple else self._use_of_wait

    @property
    def _use_of_wait(self) -> int:
        """The use of a lock that a function of the library made for a wait."""
        inside = (code.function.rpartition(".")[2] for code in self.functions[1 : self.inside])
        callers = [name for name in inside if name != _WAITS_FOR]
        # The stack may end here: a thread may run nothing but the method that waits.
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
        passed_over: Tells whether a function, given its name and source, belongs to the library.
        units: Whether it began with units.
    """
    mapped = [process.map.at(site) for site in takewhile(lambda site: not is_python(site), sites)]
    if mapped and mapped[0] is not None and is_unknown_python(mapped[0].runtime):
        return Made((), 0, simple=False, units=units, unknown=True)
    modules = [PurePath(module.path).name if module else "" for module in mapped]
    if modules and not (is_interpreter(modules[0]) or modules[0].startswith(_OF_PROCESSES)):
        return Made((), 0, simple=False, units=units)
    codes = [process.codes.get(code_and_offset(site)[0]) for site in sites if is_python(site)]
    functions = [code for code in codes if code is not None]
    inside = takewhile(
        lambda code: code.function != MODULE and passed_over(code.function, code.path), functions
    )
    simple = any(name.startswith(_SIMPLE_QUEUE) for name in modules)
    return Made(functions, len(list(inside)), simple, units)


def purpose_of(process: Process, stack: int, *, units: bool) -> int:
    """Return the purpose of a semaphore from the stack of its initialization.

    Args:
        process: Its process.
        stack: Number of the stack.
        units: Whether it began with units.

    Returns:
        `pttmodel.PTT_FOR_…`.
    """
    return made_with(process, stack, units=units).purpose


def purpose_of_wait(process: Process, stack: int) -> int:
    """Return the purpose of a semaphore that was initialized before the recording.

    A lock of the interpreter is a semaphore with one unit.

    Args:
        process: Its process.
        stack: Number of the stack of a wait for it.

    Returns:
        `pttmodel.PTT_FOR_…`.
    """
    made = made_with(process, stack, units=True)
    if made.unknown:
        return made.purpose
    if made.reads:
        return c.PTT_FOR_WORK
    if not made.functions or made.functions[0].minor >= _PARKS or made.simple:
        return c.PTT_FOR_ANYTHING
    inside = made.functions[: made.inside]
    takes = not inside or inside[0].function.rpartition(".")[2] in _TAKE_LOCK
    return c.PTT_FOR_LOCK if takes and made.purpose == c.PTT_FOR_LOCK else c.PTT_FOR_ANYTHING


def made_with(process: Process, stack: int, *, units: bool) -> Made:
    """Return how a semaphore was initialized, from the stack of its initialization or of a wait.

    Args:
        process: Its process.
        stack: Number of the stack.
        units: Whether it began with units.
    """
    return how_made(process, stack_sites(process.stacks, stack), _passed_over(), units=units)


@cache
def _passed_over() -> PassedOver:
    return PassedOver()
