"""The figures of a report, as plain data.

Durations are in ns, times in ns since the traceset's start. `waits` and `wait_ns` count only waits
of class `contended`. `other_waits` and `other_ns` have the other classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass, field
from nptltrace._units import plural
from nptltrace.analysis.checking.silent_threads import silent
from nptltrace.analysis.objects import is_lock, nothing_contended
from nptltrace.analysis.report.naming import NamedObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nptltrace.analysis.report.critical_path import CriticalPath
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.analysis.report.stacks.both_sides import BothStacks
    from nptltrace.catalog.tables import WaitClass

__all__ = [
    "Blame", "Cause", "Contention", "Figures", "Inside", "ObjectFigures", "OpenWait",
    "PairFigures", "SiteFigures", "ThreadFigures",
]  # fmt: skip

_LONG_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of waits and holds.

    Attributes:
        waits: Number of contended waits.
        wait_ns: Total duration of `waits`.
        held_ns: Part of `wait_ns` while a thread held the object.
        wait_max_ns: The longest of `waits`.
        wait_p50_ns: Median of `waits`, within 3 %; None without waits, or if it is not kept.
        wait_p99_ns: 99th percentile of `waits`, within 3 %; None like the median.
        other_waits: Number of waits by class, without `contended`.
        other_ns: Total duration of `other_waits`, by class.
        holds: Number of holds.
        hold_ns: Total duration of `holds`.
        hold_max_ns: The longest of `holds`.
    """

    waits: int
    wait_ns: int
    held_ns: int
    wait_max_ns: int
    wait_p50_ns: int | None
    wait_p99_ns: int | None
    other_waits: Mapping[str, int]
    other_ns: Mapping[str, int]
    holds: int
    hold_ns: int
    hold_max_ns: int

    @property
    def wake_ns(self) -> int:
        """Rest of the contended waits, until the threads were awake."""
        return self.wait_ns - self.held_ns

    @property
    def is_mostly_wake(self) -> bool:
        """Whether most of the contended time is `wake_ns`, and `wake_ns` is at least 10 ms."""
        return self.wake_ns >= _LONG_NS and 2 * self.wake_ns > self.wait_ns

    @property
    def blocked_ns(self) -> int:
        """Total duration of waits of all classes."""
        return self.wait_ns + sum(self.other_ns.values())


@dataclass(frozen=True, slots=True)
class Blame:
    """The waits that a thread caused by holds, or ended by wake-ups, from one call site.

    Attributes:
        thread: The holder or waker; None if unknown.
        site: Where the holder took the lock, or the waker woke others; empty if unknown.
        wait_caused_ns: How long other threads waited.
        count: Number of waits that a waker ended; 0 for a holder.
        released: The site is the release of the lock, because the place of the acquisition is
            unknown.
    """

    thread: ThreadName | None
    site: str
    wait_caused_ns: int
    count: int = 0
    released: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """What the holders of an object did while other threads waited for it.

    Attributes:
        what: `running`, `ready` (without a processor), `asleep`, `blocked` or `unknown`.
        site: Where the holder ran, slept or waited; empty if unknown.
        call: The system call that the holder was in; None for none, and if unknown.
        wanted: The object that the holder itself waited for, or None.
        waited_ns: How long others waited meanwhile.
        share: Part of `waited_ns` of all that the holders did, from 0 to 1.
    """

    what: str
    site: str
    call: str | None
    wanted: NamedObject | None
    waited_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Cause(NamedObject):
    """The waits of a thread for one object, at one call site, because of one other thread.

    Attributes:
        site: Where the thread waited.
        wait_class: Class of these waits.
        thread: The holder when the waits began. If nothing is held: the waker. None if unknown.
        thread_site: Where the holder took the object, or the waker ended the waits.
        waits: Number of waits.
        wait_ns: Total duration of the waits.
        held_ns: Part of contended waits while a thread held the object.
        wait_max_ns: The longest of the waits.
    """

    site: str
    wait_class: WaitClass
    thread: ThreadName | None
    thread_site: str
    waits: int
    wait_ns: int
    held_ns: int
    wait_max_ns: int


@dataclass(frozen=True, slots=True)
class ObjectFigures(NamedObject):
    """An object. Generations of an address are one object, but not for locks of Python.

    Attributes:
        pid: Process id.
        init_site: Where the object was initialized; empty if no event shows that.
        first_site: Where the object was first used.
        generations: Number of objects that used this address one after the other.
        threads: Number of threads that used the object.
        max_waiters: Maximum number of threads that waited at the same time.
        wasted_signals: Number of signals that found no waiter.
        figures: The sums.
        blamed: The threads that held the object while others waited, the worst first.
        wakers: The threads that ended waits for the object, the most important first.
        inside: What the holders did while others waited, the greatest share first; empty if the
            trace has no holds of the object.
        stacks: The call stacks of the contended waits, the longest first; empty unless asked for.
    """

    pid: int
    init_site: str
    first_site: str
    generations: int
    threads: int
    max_waiters: int
    wasted_signals: int
    figures: Figures
    blamed: list[Blame]
    wakers: list[Blame]
    inside: list[Inside]
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ThreadFigures:
    """A thread.

    Attributes:
        thread: Ids and name of the thread.
        start_ns: First event of the thread.
        end_ns: End of the thread, of its process or of the recording.
        by_kind: How long the thread was blocked, by kind of object, in waits of all classes.
        blocked_ns: How long the thread waited, also for objects that are not chosen.
        wait_caused_ns: How long other threads waited for the objects that the thread held.
        buffer_ns: How long the thread waited for room in the trace buffers.
        silent_ns: Sum of all times of 10 ms or longer without an event, outside of waits.
        cpu_ns: How long the thread had a processor in its whole life; None if unknown.
        ready_ns: How long the thread could have run but had no processor; None like `cpu_ns`.
        figures: The sums.
        causes: The causes of the thread's waits, the longest first.
        stacks: The call stacks of the contended waits, the longest first; empty unless asked for.
    """

    thread: ThreadName
    start_ns: int
    end_ns: int
    by_kind: Mapping[str, int]
    blocked_ns: int
    wait_caused_ns: int
    buffer_ns: int
    silent_ns: int
    cpu_ns: int | None
    ready_ns: int | None
    figures: Figures
    causes: list[Cause]
    stacks: list[BothStacks] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """Process id."""
        return self.thread.pid

    @property
    def life_ns(self) -> int:
        """Time from `start_ns` to `end_ns`."""
        return self.end_ns - self.start_ns

    @property
    def running_ns(self) -> int:
        """Rest of the thread's life: not waiting."""
        return max(self.life_ns - self.blocked_ns, 0)


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """A call site: the waits and holds that began there.

    Attributes:
        address: Address of the call site.
        pid: Process id.
        site: Function, file and line.
        kind: Kind of the objects that are used there.
        wait_caused_ns: How long other threads waited during holds that began there.
        figures: The sums.
        stacks: The call stacks of the contended waits, the longest first; empty unless asked for.
    """

    address: int
    pid: int
    site: str
    kind: str
    wait_caused_ns: int
    figures: Figures
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PairFigures(NamedObject):
    """The figures of one thread and one object.

    Attributes:
        thread: The thread.
        wait_caused_ns: How long other threads waited for the object while this thread held it.
        figures: The sums, without percentiles.
        stacks: The call stacks of the contended waits, the longest first; empty unless asked for.
    """

    thread: ThreadName
    wait_caused_ns: int
    figures: Figures
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OpenWait(NamedObject):
    """A wait for an object that had not ended at the end of the trace.

    Attributes:
        thread: The waiter.
        t_ns: When the wait began.
        dur_ns: Duration up to the end of the process.
        wait_class: Class of the wait.
        site: Call site of the wait.
        owner: The holder, or the thread that a join waits for; None if unknown.
        owner_site: Where the owner took the object.
    """

    thread: ThreadName
    t_ns: int
    dur_ns: int
    wait_class: WaitClass
    site: str
    owner: ThreadName | None
    owner_site: str


@dataclass(frozen=True, slots=True)
class Contention:
    """All figures of a report.

    Attributes:
        first_ns: First event.
        last_ns: Last event, or the end of a process with a thread that still waited.
        lost: Number of known lost events.
        figures: Sums over all threads.
        objects: The objects, the most waited for first; maybe only the first of them.
        all_objects: Number of all objects.
        waited_objects: Number of all objects with waits of any class.
        threads: The threads, in the order of their first events.
        sites: The call sites, the most waiting first; maybe only the first of them.
        pairs: The pairs of thread and object, the most waited for first; empty unless asked for.
        open_waits: Waits that had not ended at the end of the trace.
        deadlocks: Cycles of open waits: the owner of each wait is the thread of the next wait.
        path: The critical path to the last event.
        uncovered: Modules that the trace does not cover completely, and why.
    """

    first_ns: int
    last_ns: int
    lost: int
    figures: Figures
    objects: list[ObjectFigures]
    all_objects: int
    waited_objects: int
    threads: list[ThreadFigures]
    sites: list[SiteFigures]
    pairs: list[PairFigures]
    open_waits: list[OpenWait]
    deadlocks: list[list[OpenWait]]
    path: CriticalPath
    uncovered: list[dict[str, Any]]

    @property
    def silent_threads(self) -> list[ThreadFigures]:
        """Threads without event and wait for most of their life; see `silent`."""
        return silent(self.threads)

    @property
    def is_whole(self) -> bool:
        """Whether the class of all waits is known, as far as the trace shows."""
        unknown = self.figures.other_waits["unknown"]
        return not (self.uncovered or unknown or self.silent_threads)

    @property
    def uncontended(self) -> str:
        """The sentence for a report without contention; empty if something was contended."""
        if self.figures.waits:
            return ""
        if self.lost:
            were = plural(self.lost, "event was", "events were")
            return f"the contention is unknown: {self.lost:,} {were} lost"
        locks = [item for item in self.objects if is_lock(item.kind)]
        given_up = any(
            item.figures.other_waits[why] for item in locks for why in ("timeout", "cancelled")
        )
        return nothing_contended(given_up=given_up, is_whole=self.is_whole)

    @property
    def elapsed_ns(self) -> int:
        """Time from `first_ns` to `last_ns`."""
        return max(self.last_ns - self.first_ns, 0)
