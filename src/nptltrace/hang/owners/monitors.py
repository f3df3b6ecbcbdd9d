"""What threads of Java (HotSpot, JDK 10 and newer) wait for, and its owner: monitors and locks.

A thread that waits for one sleeps on a condition of its own, which says nothing. The virtual
machine notes for each thread which monitor it waits to enter, and in the monitor its owner. The
locks of `java.util.concurrent` are objects of Java: a thread that is parked has a field that says
for which, and the lock one that says whose it is.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.hang.owners.hotspot import JVM, Objects, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_monitors"]

_THREADS = 1 << 16
_LAYERS = ("JavaThread", "Thread")
# The function in which a thread is parked.
_PARKS = "Parker::park"
# The function that initializes a class, and how functions begin that call Java or that Java calls.
_INITIALIZES = "InstanceKlass::initialize_impl"
_ENTRIES = ("InstanceKlass::", "JavaCalls::", "JVM_", "Unsafe_")
# So much of a stack is looked through for the class.
_STACK = 1 << 13


class _JavaThread(NamedTuple):
    """A thread of Java.

    Attributes:
        tid: As the process knows it.
        at: Where its structure is.
        stack: The addresses of its stack.
        number: What monitors of newer versions name it by.
        wanted: The monitor that it waits to enter, or 0.
        waits_on: The monitor that it is to be notified by, or 0.
        instance: Its `java.lang.Thread`, or 0.
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
) -> list[ThreadPicture]:
    """Return the threads with the monitors of Java that they wait to enter.

    Args:
        process: Whose they are.
        names: Names for what lies in it.
        threads: As they were seen.
    """
    module = next((m for m in process.modules if m.path.rpartition("/")[2] == JVM), None)
    if module is None:
        return list(threads)
    machine = _Machine(process, fields_of(process, module, names))
    try:
        java_threads = {thread.tid: thread for thread in machine.threads()}
    except (KeyError, struct.error):
        return list(threads)  # a version with other structures
    return [_with_monitor(machine, seen, java_threads) for seen in threads]


def _with_monitor(
    machine: _Machine, seen: ThreadPicture, java_threads: Mapping[int, _JavaThread]
) -> ThreadPicture:
    thread = java_threads.get(seen.thread.inner_tid)
    if seen.wait is None or seen.wait.kind != "condition" or thread is None:
        return seen
    # It may wait for a lock of the virtual machine itself while it enters.
    if thread.wanted:
        # The time limit is the virtual machine's own: it looks again, and waits on.
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
        # When a thread ends, the machine notifies whoever waits for its object: Thread.join() does.
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


class _Machine:
    """The structures of a virtual machine.

    Args:
        process: The process.
        fields: Offsets or addresses of fields, by type and name.
    """

    def __init__(self, process: Target, fields: Mapping[tuple[str, str], int]) -> None:
        self._process, self._fields = process, fields
        self._objects = Objects(process, fields)

    def threads(self) -> Iterator[_JavaThread]:
        """Yield the threads of Java there are.

        Raises:
            KeyError: A field is not there.
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

    def owner(self, monitor: int, threads: Mapping[int, _JavaThread]) -> int:
        """Return the thread that has a monitor, 0 where it is not known.

        Older versions have the thread's structure there, or a place on its stack; newer ones a
        number.
        """
        try:
            owner = self._word(monitor + self._fields["ObjectMonitor", "_owner"])
        except (KeyError, struct.error):
            return 0
        for thread in threads.values() if owner else ():
            by_place = owner == thread.at or owner in thread.stack
            if owner == thread.number if thread.number else by_place:
                return thread.tid
        return 0

    def blocker(
        self, thread: _JavaThread, threads: Mapping[int, _JavaThread]
    ) -> tuple[int, str, int]:
        """Return what a parked thread is parked for: the object, its name, the thread that has it.

        Zeros and the empty string where they are not known; no thread of what no one has alone.
        """
        objects = self._objects
        blocker = objects.reference(thread.instance, "java/lang/Thread", "parkBlocker")
        name = objects.class_name(blocker).replace("/", ".") if blocker else ""
        if not name:
            return 0, "", 0
        lock = "java/util/concurrent/locks/AbstractOwnableSynchronizer"
        owner = objects.reference(blocker, lock, "exclusiveOwnerThread")
        by = (other.tid for other in threads.values() if owner and other.instance == owner)
        return blocker, f"{name}@{blocker:#x}", next(by, 0)

    def initialized(
        self, sp: int, own: _JavaThread, threads: Mapping[int, _JavaThread]
    ) -> tuple[int, str, int]:
        """Return the class whose initialization a thread waits for, its name, and by which thread.

        The class notes the thread that initializes it, and is on the stack of the other.

        Args:
            sp: The stack pointer of the thread that waits.
            own: That thread.
            threads: All threads.
        """
        at = self._fields.get(("InstanceKlass", "_init_thread"), 0)
        others = {thread.at: thread.tid for thread in threads.values() if thread.at != own.at}
        initialized: dict[int, tuple[str, int]] = {}
        for klass in self._process.words(sp, _STACK) if at else ():
            runs = self._process.word(klass + at)
            name = self._objects.name_of_class(klass) if runs in others else ""
            if name:
                initialized[klass] = name.replace("/", "."), others[runs]
        if len(initialized) != 1:
            return 0, "", 0
        ((klass, (name, tid)),) = initialized.items()
        return klass, name, tid

    def thread_of(self, monitor: int, threads: Mapping[int, _JavaThread]) -> int:
        """Return the thread whose `java.lang.Thread` a monitor is of, 0 for another object."""
        try:
            handle = self._word(monitor + self._fields["ObjectMonitor", "_object"])
            instance = self._word(handle)
        except (KeyError, struct.error):
            return 0
        return next((o.tid for o in threads.values() if instance and o.instance == instance), 0)

    def class_of(self, monitor: int) -> str:
        """Return the class and address of the monitor's object as `java.lang.Object@0x…`."""
        try:
            handle = self._word(monitor + self._fields["ObjectMonitor", "_object"])
            name = self._objects.class_name(self._word(handle)).replace("/", ".")
        except (KeyError, struct.error):
            return ""
        return f"{name}@{monitor:#x}" if name else ""

    def _listed(self) -> Iterator[int]:
        """Yield where the structures of threads are."""
        threads = self._word(self._fields["ThreadsSMRSupport", "_java_thread_list"])
        count = self._number(threads + self._fields["ThreadsList", "_length"])
        begin = self._word(threads + self._fields["ThreadsList", "_threads"])
        yield from self._process.words(begin, 8 * min(count, _THREADS))

    def _of_thread(self, field: str) -> int:
        """Return the offset of a field of a thread: which class has it depends on the version."""
        layer = next((layer for layer in _LAYERS if (layer, field) in self._fields), "")
        return self._fields[layer, field]

    def _word(self, address: int) -> int:
        return int(struct.unpack("<Q", self._process.read(address, 8))[0])

    def _number(self, address: int) -> int:
        return int(struct.unpack("<I", self._process.read(address, 4))[0])
