"""The figures of a report, as plain data.

Durations are in ns, times in ns since the traceset's start. Only waits of class `contended` count
in `waits` and `wait_ns`; those of the other classes stand beside them by class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._dataclasses import dataclass, field
from nptltrace._units import plural
from nptltrace.analysis.checking.silent_threads import silent
from nptltrace.analysis.objects import is_lock, nothing_contended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nptltrace.analysis.report.critical_path import CriticalPath
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.analysis.report.stacks.both_sides import BothStacks
    from nptltrace.catalog.tables import WaitClass

__all__ = [
    "Blame", "Cause", "Contention", "Figures", "ObjectFigures", "OpenWait", "PairFigures",
    "SiteFigures", "ThreadFigures",
]  # fmt: skip

_LONG_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of waits and holds.

    Attributes:
        waits: Contended waits.
        wait_ns: Their duration.
        held_ns: The part of it in which what they were for was held; the rest went by until the
            threads were awake.
        wait_max_ns: The longest.
        wait_p50_ns: Median, within 3 %; None of no waits, and where it is not kept.
        wait_p99_ns: 99th percentile, within 3 %; None likewise.
        other_waits: Waits by class, `contended` left out.
        other_ns: Their duration by class.
        holds: How often a lock was held.
        hold_ns: For how long.
        hold_max_ns: The longest.
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
        """The part of the contended waits in which no thread held the object any more."""
        return self.wait_ns - self.held_ns

    @property
    def is_mostly_wake(self) -> bool:
        """Whether most of the contended time is `wake_ns`.

        Those of less than 10 ms in all are not worth a word.
        """
        return self.wake_ns >= _LONG_NS and 2 * self.wake_ns > self.wait_ns

    @property
    def blocked_ns(self) -> int:
        """Duration of all waits, whatever their class."""
        return self.wait_ns + sum(self.other_ns.values())


@dataclass(frozen=True, slots=True)
class Blame:
    """What a thread's holds from one call site, or its wake-ups from there, had to do with waits.

    Attributes:
        thread: The thread; None if it is not known.
        site: Where it took the lock, or woke others; empty when unknown.
        wait_caused_ns: How long others waited meanwhile.
        count: How many waits it ended; 0 for holders.
        released: The site is where it released the lock: where it took it is not known.
    """

    thread: ThreadName | None
    site: str
    wait_caused_ns: int
    count: int = 0
    released: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """Waits of one thread for one object at one call site with one cause.

    Attributes:
        address: Address of the object.
        kind: Its kind.
        name: Global variable or alias, or empty.
        site: Where it waited.
        wait_class: Class of these waits.
        thread: The holder when they began, or the waker where nothing is held.
        thread_site: Where that thread took it, or woke the other.
        waits: How many.
        wait_ns: How long.
        held_ns: Of contended ones, how long the object was held.
        wait_max_ns: The longest.
    """

    address: int
    kind: str
    name: str
    site: str
    wait_class: WaitClass
    thread: ThreadName | None
    thread_site: str
    waits: int
    wait_ns: int
    held_ns: int
    wait_max_ns: int

    @property
    def label(self) -> str:
        """How to call the object: its name, or its address."""
        return self.name or f"{self.address:#x}"


@dataclass(frozen=True, slots=True)
class ObjectFigures:
    """One object; generations of an address are taken together, but for locks of Python.

    Attributes:
        address: Its address.
        pid: Process id.
        kind: Its kind.
        name: Global variable or alias, or empty.
        label: How to call it, never empty.
        init_site: Where it was initialized; empty where no event says so.
        first_site: Where it was first used.
        generations: How many objects at this address were used.
        threads: How many threads used it.
        max_waiters: Most threads that waited at once.
        wasted_signals: Signals that found no waiter.
        figures: The sums.
        blamed: The holders while others waited, the worst first.
        wakers: The threads that ended waits for it, the most important first.
        stacks: The call stacks of its contended waits, the longest first, if they were asked for.
    """

    address: int
    pid: int
    kind: str
    name: str
    label: str
    init_site: str
    first_site: str
    generations: int
    threads: int
    max_waiters: int
    wasted_signals: int
    figures: Figures
    blamed: list[Blame]
    wakers: list[Blame]
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ThreadFigures:
    """One thread.

    Attributes:
        thread: Which one.
        start_ns: Its first event.
        end_ns: When it ended, or its process or the recording did.
        by_kind: How long it was blocked by kind of object, whatever the class.
        blocked_ns: How long it waited, for what was chosen or not.
        wait_caused_ns: How long others waited for what it held.
        buffer_ns: How long it waited for room in the trace buffers.
        silent_ns: How long it had no event and was in no wait, stretches of 10 ms and more.
        cpu_ns: How long it had a processor in all its life; None when unknown.
        ready_ns: How long it could have run and had none; None likewise.
        figures: The sums.
        causes: The objects and holders that it waited for, the longest first.
        stacks: The call stacks of its contended waits, the longest first, if they were asked for.
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
        """Its process id."""
        return self.thread.pid

    @property
    def life_ns(self) -> int:
        """From its first event to its last."""
        return self.end_ns - self.start_ns

    @property
    def running_ns(self) -> int:
        """Its life without waits: it ran, was ready to, or slept elsewhere."""
        return max(self.life_ns - self.blocked_ns, 0)


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """One call site: waits and holds that began there.

    Attributes:
        address: Its address.
        pid: Process id.
        site: Function, file and line.
        kind: Kind of objects used there.
        wait_caused_ns: How long others waited during holds that began there.
        figures: The sums.
        stacks: The call stacks of its contended waits, the longest first, if they were asked for.
    """

    address: int
    pid: int
    site: str
    kind: str
    wait_caused_ns: int
    figures: Figures
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PairFigures:
    """What one thread did with one object.

    Attributes:
        thread: The thread.
        address: The object's address.
        kind: Its kind.
        name: Global variable or alias, or empty.
        label: How to call it, never empty.
        wait_caused_ns: How long others waited for the object while this thread held it.
        figures: The sums; percentiles are not kept.
        stacks: The call stacks of its contended waits, the longest first, if they were asked for.
    """

    thread: ThreadName
    address: int
    kind: str
    name: str
    label: str
    wait_caused_ns: int
    figures: Figures
    stacks: list[BothStacks] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait that had not ended when the trace did.

    Attributes:
        thread: The waiter.
        kind: Kind of the object.
        address: Its address.
        name: Global variable or alias, or empty.
        label: How to call it, never empty.
        t_ns: When it began.
        dur_ns: For how long, up to the end of the process.
        wait_class: Its class.
        site: Where.
        owner: The holder, or the thread whose end is waited for; None if not known.
        owner_site: Where that thread took it.
    """

    thread: ThreadName
    kind: str
    address: int
    name: str
    label: str
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
        last_ns: Last event, or the end of a process that was still waiting then.
        lost: Events that are known to be lost.
        figures: Sums over all threads.
        objects: Those that were waited for most first, or the first of these.
        all_objects: How many there are.
        waited_objects: How many of them somebody waited for, in whatever class.
        threads: In the order in which they began.
        sites: Those that were waited at most first.
        pairs: Those that were waited for most first, if they were asked for.
        open_waits: Waits that never ended.
        deadlocks: Cycles of them, each wait's owner being the next one's thread.
        path: The critical path to the last event.
        uncovered: Modules of which not all that they do is in the trace, and why.
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
        """Threads of which nothing is known for most of their life, as `silent` says."""
        return silent(self.threads)

    @property
    def is_whole(self) -> bool:
        """Whether the class of all waits is known, as far as a trace can show it."""
        unknown = self.figures.other_waits["unknown"]
        return not (self.uncovered or unknown or self.silent_threads)

    @property
    def uncontended(self) -> str:
        """What is to be said where nothing was contended; the empty text where something was."""
        if self.figures.waits:
            return ""
        if self.lost:
            were = plural(self.lost, "event was", "events were")
            return f"what was contended is not known: {self.lost:,} {were} lost"
        locks = [item for item in self.objects if is_lock(item.kind)]
        given_up = any(
            item.figures.other_waits[why] for item in locks for why in ("timeout", "cancelled")
        )
        return nothing_contended(given_up=given_up, is_whole=self.is_whole)

    @property
    def elapsed_ns(self) -> int:
        """From the first event to the end."""
        return max(self.last_ns - self.first_ns, 0)
