"""Locks at which programs park idle threads, and functions in which threads sleep.

A wait at such a place is idle. The thread that keeps such a lock does nothing wrong, however long
it keeps the lock.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from nptltrace.trace.passed_over import bare_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["gates_of", "is_gate", "is_sleep", "waits_for_turn"]


# Names of global variables that are a lock or an array of locks, by patterns of file names of
# executables. Of Redis, one file is the server and its checks, and the others are links to it.
_LOCKS = {("redis-*", "valkey-*", "keydb-*"): ("io_threads_mutex",)}
# Patterns of functions in which a thread waits for time to pass, by file name of the module.
_SLEEPS = {"libjvm.so": ("JavaThread::sleep*", "WatcherThread::sleep", "os::sleep*", "JVM_Sleep*")}
# Patterns of frames, as they are shown, of threads that wait for their turn to wait for work. With
# multiprocessing, one process sleeps until the queue has something, and the others wait for it.
_WAITERS = ("*get (queues.py:*)", "*get_payload (queues.py:*)")


def gates_of(program: str) -> list[str]:
    """Return the names of a program's variables that hold such locks.

    Args:
        program: Path of its executable.
    """
    name = program.rpartition("/")[2]
    return [
        lock
        for programs, locks in _LOCKS.items()
        if any(fnmatchcase(name, program) for program in programs)
        for lock in locks
    ]


def is_gate(program: str, lock: str) -> bool:
    """Return whether a lock of a program is one at which it parks threads.

    Args:
        program: Path of its executable.
        lock: Name of the lock.
    """
    return lock.partition("+")[0] in gates_of(program)


def is_sleep(function: str, module: str) -> bool:
    """Return whether threads wait in a function for time to pass, and for nothing else.

    Args:
        function: Its name, demangled.
        module: File name of its module.
    """
    return any(fnmatchcase(bare_name(function), pattern) for pattern in _SLEEPS.get(module, ()))


def waits_for_turn(stack: Iterable[str]) -> bool:
    """Return whether a thread waits for its turn to wait for work, and nobody keeps it from work.

    Args:
        stack: The frames of the thread, as text.
    """
    return any(fnmatchcase(frame, pattern) for frame in stack for pattern in _WAITERS)
