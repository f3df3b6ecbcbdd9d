"""What a report says, as plain data.

Durations are in ns, times in ns since the traceset's start. Only waits of class `contended` count
in `waits` and `wait_ns`; those of the other classes stand beside them by class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nptltrace.analysis.report.critical_path import CriticalPath
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.analysis.vocabulary.document_types import WaitClass

__all__ = [
    "Blame", "Cause", "Contention", "Figures", "ObjectFigures", "OpenWait", "PairFigures",
    "SiteFigures", "ThreadFigures",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of waits and holds.

    Attributes:
        waits: Contended waits.
        wait_ns: Their duration.
        held_ns: The part of it in which what they were for was held; the rest went by until the
            threads were awake.
        wait_max_ns: The longest.
        wait_p50_ns: Median, within 3 %; None where it is not kept.
        wait_p99_ns: 99th percentile, within 3 %; None where it is not kept.
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
        """The part of the contended waits in which nobody held what they were for any more."""
        return self.wait_ns - self.held_ns

    @property
    def blocked_ns(self) -> int:
        """Duration of all waits, whatever their class."""
        return self.wait_ns + sum(self.other_ns.values())


@dataclass(frozen=True, slots=True)
class Blame:
    """What a thread's holds from one call site, or its wake-ups from there, had to do with waits.

    Attributes:
        thread: The thread; None if nobody knows.
        site: Where it took the lock, or woke others; empty when unknown.
        wait_caused_ns: How long others waited meanwhile.
        count: How many waits it ended; 0 for holders.
    """

    thread: ThreadName | None
    site: str
    wait_caused_ns: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """Waits of one thread for one object at one call site with one cause.

    Attributes:
        address: Address of the object.
        kind: Its kind.
        name: Global variable or alias, or empty.
        site: Where it waited.
        wait_class: Class of these waits.
        thread: Who held the object when they began, or ended them where nothing is held.
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
    """One object; generations of an address that was used anew are taken together.

    Attributes:
        address: Its address.
        pid: Process id.
        kind: Its kind.
        name: Global variable or alias, or empty.
        label: How to call it, never empty.
        first_site: Where it was first used.
        generations: How many objects there were at this address.
        threads: How many threads used it.
        max_waiters: Most threads that waited at once.
        wasted_signals: Signals that found nobody waiting.
        figures: The sums.
        blamed: Who held it while others waited, the worst first.
        wakers: Who ended waits for it, the most important first.
    """

    address: int
    pid: int
    kind: str
    name: str
    label: str
    first_site: str
    generations: int
    threads: int
    max_waiters: int
    wasted_signals: int
    figures: Figures
    blamed: list[Blame]
    wakers: list[Blame]


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
        figures: The sums.
        causes: What it waited for and because of whom, the longest first.
    """

    thread: ThreadName
    start_ns: int
    end_ns: int
    by_kind: Mapping[str, int]
    blocked_ns: int
    wait_caused_ns: int
    buffer_ns: int
    figures: Figures
    causes: list[Cause]

    @property
    def life_ns(self) -> int:
        """From its first event to its last."""
        return self.end_ns - self.start_ns

    @property
    def running_ns(self) -> int:
        """What is left of its life without waits: it ran, was ready to, or slept elsewhere."""
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
    """

    address: int
    pid: int
    site: str
    kind: str
    wait_caused_ns: int
    figures: Figures


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
    """

    thread: ThreadName
    address: int
    kind: str
    name: str
    label: str
    wait_caused_ns: int
    figures: Figures


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait that had not ended when the trace did.

    Attributes:
        thread: Who waits.
        kind: Kind of the object.
        address: Its address.
        name: Global variable or alias, or empty.
        label: How to call it, never empty.
        t_ns: When it began.
        dur_ns: For how long, up to the end of the process.
        wait_class: Its class.
        site: Where.
        owner: Who holds the object, or whose end is waited for; None when nobody is known.
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
    """Everything a report says.

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
    def elapsed_ns(self) -> int:
        """From the first event to the end."""
        return max(self.last_ns - self.first_ns, 0)
