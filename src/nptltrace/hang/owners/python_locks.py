"""Which lock of Python a thread waits for, which thread has it, and whose end a thread waits for.

A thread that wants the lock of the interpreter (GIL) waits for a condition with a time limit, only
to ask the holder for it again. Before the condition stand the state of the thread that took the
lock last, and whether it is taken.

A `Lock` does not know who has it. A function that is inside the `with` statement of the lock has
`__exit__` of the lock on its stack; that says who took the lock, unless a function of the thread
may have given it back meanwhile. An `RLock` knows its owner.
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
# Before the condition, the same in CPython 3.8 to 3.14: the time limit in microseconds, the last
# holder, whether the lock is taken, and how often it changed hands.
_BEFORE = struct.Struct("<QQi4xQ")
# Where in a condition of the C library its waiters sleep.
_SLEEP_AT = (40, 44, 32, 36)

_LOCKS, _RLOCK = frozenset({"_thread.lock", "_thread.RLock"}), "_thread.RLock"
_CONDITION = "Condition"
_THREADING = "/threading.py"
# Functions by which a thread waits for the end of another one, without their class; that by which
# the first thread waits for all others; that with which they begin.
_JOINS = frozenset({"join", "_wait_for_tstate_lock"})
_JOINS_ALL, _BEGINS = frozenset({"_shutdown"}), frozenset({"_bootstrap"})
# A condition wait gives the lock back.
_WAITS = frozenset({"wait"})
# Functions of `threading` that take a lock of the program; others wait at locks of their own.
_TAKES = frozenset({"__enter__", "acquire", "_acquire_restore"})
# The function that takes the lock of a module that is imported.
_IMPORTS, _TAKES_MODULE = "<frozen importlib._bootstrap>", "acquire"
# In a lock its semaphore, or the mutex itself; in an RLock the owner.
_LOCK_AT, _OWNER_AT = 16, 24
# A thread that is parked has, before the semaphore on its stack, where the mutex lies.
_MUTEX_BEFORE, _OWN_STACK = 8, 1 << 16
# So many frames of a thread are looked at for the name of a lock.
_NAMING = 8
_MODULE = "<module>"
# The sources of Python's own library.
_LIBRARY = re.compile(r"<frozen .*|.*/python3\.\d+t?/(?!(site|dist)-packages/)")


def with_gil(process: Target, states: Mapping[int, int], seen: ThreadPicture) -> ThreadPicture:
    """Return a thread with the holder of the interpreter's lock, if it waits for that lock.

    Args:
        process: Whose it is.
        states: Threads of CPython by where their states are.
        seen: The thread as it was seen.
    """
    wait = seen.wait
    if not states or wait is None or wait.kind != "condition" or not wait.timed:
        return seen
    # Where in a condition its waiters sleep depends on the C library; what stands before the
    # right one shows which it is.
    for condition in (wait.object, *(wait.word - offset for offset in _SLEEP_AT)):
        lock = condition - _BEFORE.size
        data = process.read(lock, _BEFORE.size)
        if len(data) == _BEFORE.size:
            limit, holder, taken, _ = _BEFORE.unpack(data)
            if limit and taken in {0, 1} and holder in states:
                break
    else:
        return seen
    # A thread that waits does not have the lock: it was given to it since.
    owner = states[holder] if taken and states[holder] != seen.thread.inner_tid else 0
    wait = wait._replace(kind=GIL, object=lock, owner=owner, timed=False, repeated=True)
    return seen._replace(wait=wait, object_name="GIL")


def with_python_locks(
    process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with the locks of Python that they wait for, and the holders.

    Args:
        process: Whose they are.
        pythons: Its functions of Python.
        threads: As they were seen.
    """
    waits = [seen for seen in threads if _is_semaphore(seen.wait)]
    if not waits or not pythons.threads:
        return list(threads)
    locks = _Locks(process, pythons, threads)
    return [locks.of(seen) if _is_semaphore(seen.wait) else seen for seen in threads]


def _is_semaphore(wait: Wait | None) -> bool:
    return wait is not None and wait.kind == "semaphore"


class _Locks:
    """The locks of Python in a process.

    Args:
        process: The process.
        pythons: Its functions of Python.
        threads: Its threads.
    """

    def __init__(self, process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]) -> None:
        self._pythons, self._slots = pythons, Slots(process.read, pythons)
        tids = [seen.thread.inner_tid for seen in threads]
        self._frames = {tid: frames for tid in tids if (frames := pythons.inside(tid))}

    def of(self, seen: ThreadPicture) -> ThreadPicture:
        """Return a thread with the lock that it waits for; as it is where that is not known."""
        wait, frames = seen.wait, self._frames.get(seen.thread.inner_tid, [])
        if wait is None or not frames:
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
        """Return a thread with the lock of a module that another thread imports."""
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
        """Return the thread whose end a function waits for; 0 if that is not known."""
        number = self._attribute(join, self._slots.first(join), "_native_id")
        return self._slots.integer(join, number) if number else 0

    def _ends_with(self, lock: int) -> int:
        """Return the thread that gives a lock back when it ends; 0 if there is none."""
        for tid, frames in self._frames.items():
            begin = frames[-1]
            if _is_method(begin, _BEGINS):
                own = self._attribute(begin, self._slots.first(begin), "_tstate_lock")
                if own == lock:
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
        # The function has what it calls on its stack, or its object.
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
        """Return the thread that has a lock; 0 if that is not known."""
        if self._pythons.kind_of(lock) == _RLOCK:
            return self._pythons.idents.get(self._slots.word(lock + _OWNER_AT), 0)
        owners = [tid for tid, locks in self._held.items() if lock in locks]
        return owners[0] if len(owners) == 1 else 0

    @cached_property
    def _held(self) -> dict[int, set[int]]:
        """The locks whose `with` statements threads are in, by the thread."""
        return {tid: self._held_in(frames) for tid, frames in self._frames.items()}

    def _held_in(self, frames: Sequence[InsideFrame]) -> set[int]:
        locks: set[int] = set()
        try:
            for number, frame in enumerate(frames):
                for entered in self._slots.entered(frame):
                    lock = self._lock_of(frame, entered)
                    if lock and not self._may_be_given_back(lock, frames[: number + 1]):
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

    def _may_be_given_back(self, lock: int, inside: Sequence[InsideFrame]) -> bool:
        """Return whether a function may have given a lock back that it entered by `with`.

        Args:
            lock: The lock.
            inside: The function and the functions that it has called.
        """
        for frame in inside:
            if not self._is_library(frame) and self._slots.releases(frame):
                return True
            if _is_method(frame, _WAITS):
                own = self._attribute(frame, self._slots.first(frame), "_lock")
                if own in {0, lock}:
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
                # A method of the library: of a queue, an event, or a handler of messages.
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
        """Yield what an object calls another one, with its class before that.

        Args:
            frame: A frame of the same interpreter.
            address: The object.
            wanted: The other one.
            of_module: What to put before it where the object is a module.
        """
        try:
            kind = self._pythons.kind_of(address)
            whole = of_module if kind == "module" else kind
            for name, value in self._slots.attributes(frame, address):
                if value == wanted:
                    yield f"{whole}.{name}"
        except (struct.error, ValueError, StopIteration):  # It has no attributes.
            return


def _last(frame: InsideFrame) -> str:
    return frame.function.function.rpartition(".")[2]


def _is_method(frame: InsideFrame, names: frozenset[str] = frozenset()) -> bool:
    """Return whether a function is of `threading`, and has one of the names if any are given."""
    return frame.function.path.endswith(_THREADING) and (not names or _last(frame) in names)
