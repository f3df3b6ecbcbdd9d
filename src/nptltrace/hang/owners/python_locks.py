"""The locks of Python that threads wait for, their owners, and the threads that threads join.

A thread that wants the lock of the interpreter (GIL) waits for a condition with a time limit, and
then asks the holder for the lock again. Before the condition in memory are the state of the last
holder's thread, and whether the lock is taken.

A `Lock` does not know its owner. But a function inside the `with` statement of a lock has the
lock's `__exit__` on its stack. So its thread owns the lock, unless a function of the thread may
have released the lock. An `RLock` knows its owner.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython_slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.hang.stack.cpython import InsideFrame, Pythons
    from nptltrace.hang.stack.cpython_slots import Entered
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.waits import Wait

__all__ = ["GIL", "with_gil", "with_python_locks"]

# The kind of a wait for the lock of the interpreter.
GIL = "gil"
# The fields before the condition in CPython 3.8 to 3.15: the time limit in microseconds, the last
# holder, whether the lock is taken, and the number of changes of the holder.
_BEFORE = struct.Struct("<QQi4xQ")
# The offsets of the futexes in a condition of the C library, before and since glibc 2.41.
_SLEEP_AT = (40, 44, 32, 36)

_LOCKS, _RLOCK = frozenset({"_thread.lock", "_thread.RLock"}), "_thread.RLock"
_CONDITION = "Condition"
_THREADING = "/threading.py"
# Functions of `threading`, without their class: they wait for the end of a thread; the main thread
# waits for the end of all threads; a thread begins.
_JOINS = frozenset({"join", "_wait_for_tstate_lock"})
_JOINS_ALL, _BEGINS = frozenset({"_shutdown"}), frozenset({"_bootstrap"})
# Functions that wait on a condition, and so release its lock.
_WAITS = frozenset({"wait"})
# Functions of `threading` that take a lock of the program. Other functions wait for internal locks.
_TAKES = frozenset({"__enter__", "acquire", "_acquire_restore"})
# The file and the function that take the lock of a module during its import.
_IMPORTS, _TAKES_MODULE = "<frozen importlib._bootstrap>", "acquire"
# The offsets of the semaphore or mutex in a lock, and of the owner in an RLock.
_LOCK_AT, _OWNER_AT = 16, 24
# A parked thread has the address of the mutex on its stack, so far before the semaphore.
_MUTEX_BEFORE, _OWN_STACK = 8, 1 << 16
# The number of innermost frames to search for the name of a lock.
_NAMING = 8
_MODULE = "<module>"
# The sources of Python's own library.
_LIBRARY = re.compile(r"<frozen .*|.*/python3\.\d+t?/(?!(site|dist)-packages/)")


def with_gil(process: Target, states: Mapping[int, int], seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the holder of the interpreter's lock, if it waits for this lock.

    Args:
        process: The process.
        states: The threads of CPython by the addresses of their states.
        seen: The thread.
    """
    wait = seen.wait
    if not states or wait is None or wait.kind != "condition" or not wait.timed:
        return seen
    # The offset of the futex depends on the C library. The fields before the condition show which
    # offset is right.
    for condition in (wait.object, *(wait.word - offset for offset in _SLEEP_AT)):
        lock = condition - _BEFORE.size
        data = process.read(lock, _BEFORE.size)
        if len(data) == _BEFORE.size:
            limit, holder, taken, _ = _BEFORE.unpack(data)
            if limit and taken in {0, 1} and holder in states:
                break
    else:
        return seen
    # If the waiting thread is the holder, it got the lock after it was read.
    owner = states[holder] if taken and states[holder] != seen.thread.inner_tid else 0
    wait = wait._replace(kind=GIL, object=lock, owner=owner, timed=False, repeated=True)
    return seen._replace(wait=wait, object_name="GIL")


def with_python_locks(
    process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with the locks of Python that they wait for, and the holders.

    Args:
        process: The process.
        pythons: The functions of Python in the process.
        threads: All threads of the process.
    """
    waits = (seen.wait is not None and seen.wait.kind == "semaphore" for seen in threads)
    if not pythons.threads or not any(waits):
        return list(threads)
    locks = _Locks(process, pythons, threads)
    return [locks.of(seen) for seen in threads]


class _Locks:
    """The locks of Python in a process.

    Args:
        process: The process.
        pythons: The functions of Python in the process.
        threads: All threads of the process.
    """

    def __init__(self, process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]) -> None:
        self._pythons, self._slots = pythons, Slots(process.read, pythons)
        tids = [seen.thread.inner_tid for seen in threads]
        self._frames = {tid: frames for tid in tids if (frames := pythons.inside(tid))}

    def of(self, seen: ThreadPicture) -> ThreadPicture:
        """Return a thread with the lock that it waits for; unchanged if the lock is not known."""
        wait, frames = seen.wait, self._frames.get(seen.thread.inner_tid, [])
        if wait is None or wait.kind != "semaphore" or not frames:
            return seen
        try:
            return self._with_lock(seen, wait, frames)
        except (struct.error, ValueError):
            return seen

    def _with_lock(
        self, seen: ThreadPicture, wait: Wait, frames: Sequence[InsideFrame]
    ) -> ThreadPicture:
        inner = frames[0]
        if _is_method(inner, _JOINS):
            return self._with_joined(seen, wait, self._joined(inner))
        if inner.function.path == _IMPORTS and _last(inner) == _TAKES_MODULE:
            return self._with_module(seen, wait, inner)
        lock = self._waited(seen, wait.object, frames)
        if lock and _is_method(inner, _JOINS_ALL):
            return self._with_joined(seen, wait, self._ends_with(lock))
        if _is_method(inner, _WAITS):
            return seen._replace(object_name=self._name(self._slots.first(inner), frames))
        if not lock or (_is_method(inner) and not _is_method(inner, _TAKES)):
            return seen
        wait = wait._replace(kind="lock", object=lock, owner=self._owner(lock))
        return seen._replace(wait=wait, object_name=self._name(lock, frames))

    def _with_joined(self, seen: ThreadPicture, wait: Wait, tid: int) -> ThreadPicture:
        if tid not in self._frames:
            return seen
        return seen._replace(wait=wait._replace(kind="join", owner=tid))

    def _with_module(self, seen: ThreadPicture, wait: Wait, inner: InsideFrame) -> ThreadPicture:
        """Return a thread with the lock of a module, and the thread that imports the module."""
        attributes = dict(self._slots.attributes(inner, self._slots.first(inner)))
        ident, name = attributes.get("owner", 0), attributes.get("name", 0)
        if not ident or not name:
            return seen
        owner = self._pythons.idents.get(self._slots.integer(inner, ident), 0)
        wait = wait._replace(kind="lock", owner=owner)
        return seen._replace(wait=wait, object_name=f"of module {self._pythons.text(name)}")

    @staticmethod
    def _is_library(frame: InsideFrame) -> bool:
        return bool(_LIBRARY.match(frame.function.path))

    def _joined(self, join: InsideFrame) -> int:
        """Return the thread that a function joins; 0 if it is not known."""
        number = self._attribute(join, self._slots.first(join), "_native_id")
        return self._slots.integer(join, number) if number else 0

    def _ends_with(self, lock: int) -> int:
        """Return the thread that releases a lock at its end; 0 if there is none."""
        for tid, frames in self._frames.items():
            begin = frames[-1]
            if _is_method(begin, _BEGINS):
                thread = self._slots.first(begin)
                if self._attribute(begin, thread, "_tstate_lock") == lock:
                    return tid
        return 0

    def _attribute(self, frame: InsideFrame, address: int, name: str) -> int:
        attributes = self._slots.attributes(frame, address)
        return next((value for key, value in attributes if key == name), 0)

    def _waited(self, seen: ThreadPicture, semaphore: int, frames: Sequence[InsideFrame]) -> int:
        """Return the lock that a thread waits for; 0 if it waits for something else."""
        if 0 < semaphore - seen.thread.sp < _OWN_STACK:
            lock = self._slots.word(semaphore - _MUTEX_BEFORE) - _LOCK_AT
            return lock if self._pythons.kind_of(lock) in _LOCKS else 0
        # The stack of the function has the bound method that it calls, or the lock.
        return next(
            (
                lock
                for lock in self._slots.on_stack(frames[0])
                if self._slots.word(lock + _LOCK_AT) == semaphore
                and self._pythons.kind_of(lock) in _LOCKS
            ),
            0,
        )

    def _owner(self, lock: int) -> int:
        """Return the thread that holds a lock; 0 if it is not known."""
        if self._pythons.kind_of(lock) == _RLOCK:
            return self._pythons.idents.get(self._slots.word(lock + _OWNER_AT), 0)
        owners = [tid for tid, locks in self._held.items() if lock in locks]
        return owners[0] if len(owners) == 1 else 0

    @cached_property
    def _held(self) -> dict[int, set[int]]:
        """The locks that threads hold by `with` statements, by thread."""
        return {tid: self._held_in(frames) for tid, frames in self._frames.items()}

    def _held_in(self, frames: Sequence[InsideFrame]) -> set[int]:
        locks: set[int] = set()
        try:
            for number, frame in enumerate(frames):
                for entered in self._slots.entered(frame):
                    lock = self._lock_of(frame, entered)
                    if lock and not self._may_be_released(lock, frames[: number + 1]):
                        locks.add(lock)
        except (struct.error, ValueError):
            return set()
        return locks

    def _lock_of(self, frame: InsideFrame, entered: Entered) -> int:
        if entered.kind in _LOCKS:
            return entered.object
        if entered.kind != _CONDITION:
            return 0
        lock = self._attribute(frame, entered.object, "_lock")
        return lock if lock and self._pythons.kind_of(lock) in _LOCKS else 0

    def _may_be_released(self, lock: int, inside: Sequence[InsideFrame]) -> bool:
        """Return whether a lock may have been released inside its `with` statement.

        Args:
            lock: The lock.
            inside: The function with the statement, and the functions that it has called.
        """
        for frame in inside:
            if not self._is_library(frame) and "release" in self._slots.names(frame):
                return True
            if _is_method(frame, _WAITS):
                condition = self._slots.first(frame)
                if self._attribute(frame, condition, "_lock") in {0, lock}:
                    return True
        return False

    def _name(self, wanted: int, frames: Sequence[InsideFrame]) -> str:
        """Return the program's name of an object, or of the library's object that contains it."""
        part = wanted
        for frame in frames[:_NAMING]:
            if not self._is_library(frame):
                if name := next(self._names(frame, wanted), ""):
                    whole = "" if wanted == part else f" ({self._pythons.kind_of(wanted)})"
                    return name + whole
            elif frame.function.function != _MODULE:
                # A method of the library, for example of a queue, an event, or a log handler.
                method_of = self._slots.first(frame)
                if any(self._attribute_names(frame, method_of, wanted)):
                    wanted = method_of
        return ""

    def _names(self, frame: InsideFrame, wanted: int) -> Iterator[str]:
        variables = [*self._slots.variables(frame), *self._slots.shared(frame)]
        yield from (name for name, value in variables if value == wanted)
        for name, value in variables:
            yield from self._attribute_names(frame, value, wanted, of_module=name)

    def _attribute_names(
        self, frame: InsideFrame, address: int, wanted: int, of_module: str = ""
    ) -> Iterator[str]:
        """Yield the attributes of an object that refer to a wanted object, as `Class.attribute`.

        Args:
            frame: A frame of the same interpreter.
            address: The object with the attributes.
            wanted: The wanted object.
            of_module: The text in place of the class if the object is a module.
        """
        try:
            kind = self._pythons.kind_of(address)
            whole = of_module if kind == "module" else kind
            for name, value in self._slots.attributes(frame, address):
                if value == wanted:
                    yield f"{whole}.{name}"
        except (struct.error, ValueError, StopIteration):  # The object has no attributes.
            return


def _last(frame: InsideFrame) -> str:
    return frame.function.function.rpartition(".")[2]


def _is_method(frame: InsideFrame, names: frozenset[str] = frozenset()) -> bool:
    """Return whether a function is of `threading` and has one of the names, if any are given."""
    return frame.function.path.endswith(_THREADING) and (not names or _last(frame) in names)
