"""Locks where programs park idle threads, and functions where threads sleep.

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


# Names of global variables (locks or arrays of locks) by patterns of file names of executables.
# One executable of Redis is the server and its checks. Other names are links to this executable.
_LOCKS = {("redis-*", "valkey-*", "keydb-*"): ("io_threads_mutex",)}
# Patterns of functions that wait for time to pass, by file name of the module.
_SLEEPS = {"libjvm.so": ("JavaThread::sleep*", "WatcherThread::sleep", "os::sleep*", "JVM_Sleep*")}
# Patterns of the text of frames. Threads in these functions wait for their turn to wait for work.
# With multiprocessing, one process waits for the queue, and other processes wait for that process.
_WAITERS = ("*get (queues.py:*)", "*get_payload (queues.py:*)")


def gates_of(program: str) -> list[str]:
    """Return the names of variables with locks that park threads.

    Args:
        program: Path of the executable.
    """
    name = program.rpartition("/")[2]
    return [
        lock
        for patterns, locks in _LOCKS.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
        for lock in locks
    ]


def is_gate(program: str, lock: str) -> bool:
    """Return whether a program parks threads at a lock.

    Args:
        program: Path of the executable.
        lock: Name of the lock.
    """
    return lock.partition("+")[0] in gates_of(program)


def is_sleep(function: str, module: str) -> bool:
    """Return whether threads in a function wait for time to pass, and for nothing else.

    Args:
        function: Demangled name of the function.
        module: File name of the module.
    """
    return any(fnmatchcase(bare_name(function), pattern) for pattern in _SLEEPS.get(module, ()))


def waits_for_turn(stack: Iterable[str]) -> bool:
    """Return whether a thread waits for its turn to wait for work: no thread keeps it from work.

    Args:
        stack: The texts of the thread's frames.
    """
    return any(fnmatchcase(frame, pattern) for frame in stack for pattern in _WAITERS)
