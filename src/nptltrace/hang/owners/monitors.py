"""The monitors and locks that threads of Java wait for, and the owners (HotSpot, JDK 10 and newer).

A waiting thread of Java sleeps on a condition of its own, which does not name the monitor. But the
virtual machine notes the monitor in its structure of the thread, and the owner in the monitor. The
locks of `java.util.concurrent` are objects of Java. A field of a parked thread refers to the lock,
and a field of the lock refers to the owner.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.owners.hotspot import JVM, Objects, fields_of
from nptltrace.hang.owners.java_stacks import JavaStacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_monitors"]

_THREADS = 1 << 16
_LAYERS = ("JavaThread", "Thread")
# The function that parks a thread.
_PARKS = "Parker::park"
# The function that initializes a class, and prefixes of functions between Java and the machine.
_INITIALIZES = "InstanceKlass::initialize_impl"
_ENTRIES = ("InstanceKlass::", "JavaCalls::", "JVM_", "Unsafe_")
# Packages of Java's library.
_LIBRARY = ("java.", "javax.", "jdk.", "sun.")
# The part of a stack that is searched for a class, in bytes.
_STACK = 1 << 13
# The owner of a monitor that another thread made for it: only the owner's lock stack has the object
# (lightweight locking, the default from JDK 23 on).
_ANONYMOUS, _LOCK_STACK = 1, ("JavaThread", "_lock_stack")
# The class of the threads that run virtual threads.
_CARRIER = "jdk/internal/misc/CarrierThread"
_VIRTUAL = "what virtual threads of Java wait for, and what they hold, is unknown"
_OTHER_VERSION = (
    "the structures of this Java virtual machine are not known to this version of PTT: who holds "
    "its monitors and locks is unknown"
)
# The largest number of objects on a lock stack.
_LOCKED_MAX = 64


class _JavaThread(NamedTuple):
    """A thread of Java.

    Attributes:
        tid: The thread id in the process's PID namespace.
        at: The address of the `JavaThread`.
        stack: The addresses of the stack.
        number: The number of the thread in the monitors of newer versions, or 0.
        wanted: The monitor that the thread waits to enter, or 0.
        waits_on: The monitor on which the thread waits for a notification, or 0.
        instance: The `java.lang.Thread`, or 0.
    """

    tid: int
    at: int
    stack: range
    number: int
    wanted: int
    waits_on: int
    instance: int


def with_monitors(
    process: Target, names: Names, threads: Sequence[ThreadPicture]
) -> tuple[list[ThreadPicture], list[tuple[str, str]]]:
    """Return the threads with the monitors and locks of Java that they wait for.

    Args:
        process: The process.
        names: The names in the process.
        threads: All threads of the process.

    Returns:
        The threads, and the virtual machine with each reason why PTT does not know all waits of
        Java in it.
    """
    module = next((m for m in process.modules if m.path.rpartition("/")[2] == JVM), None)
    if module is None:
        return list(threads), []
    machine = _Machine(process, fields_of(process, module, names))
    try:
        java_threads = {thread.tid: thread for thread in machine.threads()}
    except (KeyError, struct.error):
        return list(threads), [(module.path, _OTHER_VERSION)]
    virtual = any(machine.is_carrier(thread) for thread in java_threads.values())
    return (
        [
            _with_java(machine, _with_monitor(machine, seen, java_threads), java_threads)
            for seen in threads
        ],
        [(module.path, _VIRTUAL)] if virtual else [],
    )


def _with_monitor(
    machine: _Machine, seen: ThreadPicture, java_threads: Mapping[int, _JavaThread]
) -> ThreadPicture:
    thread = java_threads.get(seen.thread.inner_tid)
    if seen.wait is None or seen.wait.kind != "condition" or thread is None:
        return seen
    # While it enters a monitor, a thread may wait for a lock of the virtual machine itself.
    if thread.wanted:
        # The time limit is the virtual machine's: it checks the monitor and waits again.
        wait = seen.wait._replace(
            kind="monitor", object=thread.wanted, owner=machine.owner(thread.wanted, java_threads),
            timed=False, repeated=True,
        )  # fmt: skip
        return seen._replace(wait=wait, object_name=machine.class_of(thread.wanted))
    entries = (f.function for f in seen.frames if f.function.startswith(_ENTRIES))
    if next(entries, "").startswith(_INITIALIZES):
        klass, name, owner = machine.initialized(seen.thread.sp, thread, java_threads)
        if klass:
            wait = seen.wait._replace(kind="static", object=klass, owner=owner)
            return seen._replace(wait=wait, object_name=name)
    if thread.waits_on:
        # Thread.join() waits on the monitor of the thread object. The end of a thread notifies it.
        ends = machine.thread_of(thread.waits_on, java_threads)
        kind = "join" if ends else seen.wait.kind
        wait = seen.wait._replace(kind=kind, object=thread.waits_on, owner=ends)
        return seen._replace(wait=wait, object_name=machine.class_of(thread.waits_on))
    if any(frame.function.startswith(_PARKS) for frame in seen.frames):
        blocker, name, owner = machine.blocker(thread, java_threads)
        wait = seen.wait._replace(
            kind="lock" if owner else "park", object=blocker if owner else 0, owner=owner
        )
        return seen._replace(wait=wait, object_name=name)
    return seen


def _with_java(
    machine: _Machine, seen: ThreadPicture, java_threads: Mapping[int, _JavaThread]
) -> ThreadPicture:
    """Return a sleeping thread with its functions of Java behind the functions of the machine."""
    thread = java_threads.get(seen.thread.inner_tid)
    java = machine.stacks.of(thread.at) if thread is not None and seen.wait is not None else []
    if not java:
        return seen
    site = seen.site
    if not site or JVM in site:
        own = (frame for frame in java if not frame.function.startswith(_LIBRARY))
        site = str(next(own, java[0]))
    return seen._replace(frames=(*seen.frames, *java), site=site)


class _Machine:
    """The structures of a virtual machine.

    Args:
        process: The process.
        fields: The result of `fields_of`.

    Attributes:
        stacks: The functions of Java on the stacks of threads.
    """

    def __init__(self, process: Target, fields: Mapping[tuple[str, str], int]) -> None:
        self._process, self._fields = process, fields
        self._objects = Objects(process, fields)
        self.stacks = JavaStacks(process, fields, self._objects)

    def threads(self) -> Iterator[_JavaThread]:
        """Yield the threads of Java.

        Raises:
            KeyError: The version does not have a field.
            struct.error: The memory cannot be read.
        """
        stack_base, stack_size = self._of_thread("_stack_base"), self._of_thread("_stack_size")
        os_thread = self._of_thread("_osthread")
        wanted = self._of_thread("_current_pending_monitor")
        waits_on = self._of_thread("_current_waiting_monitor")
        number = self._fields.get(("JavaThread", "_monitor_owner_id"), 0)
        for at in self._listed():
            tid = self._number(self._word(at + os_thread) + self._fields["OSThread", "_thread_id"])
            base = self._word(at + stack_base)
            yield _JavaThread(
                tid, at, range(base - self._word(at + stack_size), base),
                self._word(at + number) if number else 0, self._word(at + wanted),
                self._word(at + waits_on), self._objects.thread(at),
            )  # fmt: skip

    def is_carrier(self, thread: _JavaThread) -> bool:
        """Return whether a thread runs virtual threads."""
        return self._objects.class_name(thread.instance) == _CARRIER

    def owner(self, monitor: int, threads: Mapping[int, _JavaThread]) -> int:
        """Return the thread that owns a monitor, 0 if it is not known.

        The field has the thread's number in newer versions. In older versions it has the address of
        the `JavaThread`, or an address on the stack of the thread. If the object of the monitor is
        on the lock stack of a thread, the field names no thread.
        """
        try:
            owner = self._word(monitor + self._fields["ObjectMonitor", "_owner"])
            if owner == _ANONYMOUS and _LOCK_STACK in self._fields:
                return self._locker(self._object_of(monitor), threads)
        except (KeyError, struct.error):
            return 0
        for thread in threads.values() if owner else ():
            by_address = owner == thread.at or owner in thread.stack
            if owner == thread.number if thread.number else by_address:
                return thread.tid
        return 0

    def _locker(self, instance: int, threads: Mapping[int, _JavaThread]) -> int:
        """Return the thread that has an object on its lock stack, 0 if it is not known.

        The top of a lock stack is the offset of its first free slot in the `JavaThread`.

        Raises:
            KeyError: The version does not have a field.
            struct.error: The memory cannot be read.
        """
        stack = self._fields[_LOCK_STACK]
        slots = stack + self._fields["LockStack", "_base[0]"]
        for thread in threads.values() if instance else ():
            top = self._number(thread.at + stack + self._fields["LockStack", "_top"])
            size = top - slots
            if 0 < size <= 8 * _LOCKED_MAX and instance in self._process.words(
                thread.at + slots, size
            ):
                return thread.tid
        return 0

    def blocker(
        self, thread: _JavaThread, threads: Mapping[int, _JavaThread]
    ) -> tuple[int, str, int]:
        """Return the blocker of a parked thread: the object, its name, and the owning thread.

        Unknown values are zeros and the empty string. The thread is 0 if the object has no single
        owner.
        """
        objects = self._objects
        blocker = objects.reference(thread.instance, "java/lang/Thread", "parkBlocker")
        name = objects.class_name(blocker).replace("/", ".") if blocker else ""
        if not name:
            return 0, "", 0
        lock = "java/util/concurrent/locks/AbstractOwnableSynchronizer"
        owner = objects.reference(blocker, lock, "exclusiveOwnerThread")
        return blocker, f"{name}@{blocker:#x}", _thread_with(owner, threads)

    def initialized(
        self, sp: int, waiting: _JavaThread, threads: Mapping[int, _JavaThread]
    ) -> tuple[int, str, int]:
        """Return the class that another thread initializes, its name, and the other thread.

        The class has a field with the initializing thread. A pointer to the class is on the stack
        of the waiting thread.

        Args:
            sp: The stack pointer of the waiting thread.
            waiting: The waiting thread.
            threads: All threads by id.
        """
        at = self._fields.get(("InstanceKlass", "_init_thread"), 0)
        others = {thread.at: thread.tid for thread in threads.values() if thread.at != waiting.at}
        initialized: dict[int, tuple[str, int]] = {}
        for klass in self._process.words(sp, _STACK) if at else ():
            initializer = self._process.word(klass + at)
            name = self._objects.name_of_class(klass) if initializer in others else ""
            if name:
                initialized[klass] = name.replace("/", "."), others[initializer]
        if len(initialized) != 1:
            return 0, "", 0
        ((klass, (name, tid)),) = initialized.items()
        return klass, name, tid

    def thread_of(self, monitor: int, threads: Mapping[int, _JavaThread]) -> int:
        """Return the thread if the object of a monitor is a `java.lang.Thread`, or 0."""
        return _thread_with(self._object_of(monitor), threads)

    def class_of(self, monitor: int) -> str:
        """Return the class of a monitor's object with the address, as `java.lang.Object@0x…`."""
        name = self._objects.class_name(self._object_of(monitor)).replace("/", ".")
        return f"{name}@{monitor:#x}" if name else ""

    def _object_of(self, monitor: int) -> int:
        """Return the object of a monitor, 0 if it is not known."""
        try:
            handle = self._word(monitor + self._fields["ObjectMonitor", "_object"])
            return self._objects.object_in(self._word(handle))
        except (KeyError, struct.error):
            return 0

    def _listed(self) -> Iterator[int]:
        """Yield the address of each `JavaThread`."""
        threads = self._word(self._fields["ThreadsSMRSupport", "_java_thread_list"])
        count = self._number(threads + self._fields["ThreadsList", "_length"])
        begin = self._word(threads + self._fields["ThreadsList", "_threads"])
        yield from self._process.words(begin, 8 * min(count, _THREADS))

    def _of_thread(self, field: str) -> int:
        """Return the offset of a field of a thread. Versions have it in different classes."""
        layer = next((layer for layer in _LAYERS if (layer, field) in self._fields), "")
        return self._fields[layer, field]

    def _word(self, address: int) -> int:
        return int(struct.unpack("<Q", self._process.read(address, 8))[0])

    def _number(self, address: int) -> int:
        return int(struct.unpack("<I", self._process.read(address, 4))[0])


def _thread_with(instance: int, threads: Mapping[int, _JavaThread]) -> int:
    """Return the id of the thread with a `java.lang.Thread`, or 0."""
    return next((t.tid for t in threads.values() if instance and t.instance == instance), 0)
