"""The input and output of kinds of findings: traces, facts, events, and the words for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from nptltrace._dataclasses import dataclass, replace
from nptltrace.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = [
    "FACTS", "Event", "Fact", "Found", "Severity", "Step", "Trace", "duration", "listed",
    "priority",
]  # fmt: skip

Severity = Literal["error", "warning"]

_FEW = 4

FACTS = {
    "wait-cycle": "threads that wait for each other, or for a lock that a fork left without owner",
    "wait-for-self": "a thread that waits for something that it has, or for its own end",
    "order-cycle": "locks that threads asked for in orders that close a cycle",
    "signal-missed": "a wait to the end for a signal that came before it, or woke another thread",
    "release-of-others": "a release of a lock that another thread held",
    "release-of-free": "a release of a lock that no thread held",
    "destroy-in-use": "an object that was destroyed while it was held or waited for",
    "use-of-destroyed": "a use of an object that had been destroyed",
    "cond-mutex-not-held": "a condition wait with a mutex that its thread did not hold",
    "cond-two-mutexes": "waits on one condition at one time with different mutexes",
    "end-with-hold": "a thread that ended while it held a lock",
    "end-unjoined": "a thread that ended, and was neither joined nor detached",
    "barrier-incomplete": "waits at a barrier for `value` threads that will not come",
    "long-hold": "a hold of `value` ns, as long as `--long-hold` or longer, that others waited for",
    "wait-for-lower": "a wait of `value` ns, 1 ms or more, for a thread of lower priority",
    "all-blocked": "a process in which all `value` threads are blocked for ever",
    "wait-with-hold": "a thread with a lock that waited for something other than a lock, while "
    "another thread waited `value` ns, 1 ms or more, for the thread's lock",
    "order-cycle-prevented": "locks that threads asked for in orders that close a cycle, but "
    "something prevents the cycle: another lock, one thread, readers, an order in time, or a try",
    "hold-preempted": "a holder that could have run and had no processor, while another thread "
    "waited `value` ns, 1 ms or more, for its lock",
    "hold-asleep": "a holder that slept in a known or unknown system call outside of waits, while "
    "another thread waited `value` ns, 1 ms or more, for its lock",
    "convoy": "a lock that was handed 100 times in a row or more to a thread that slept in its "
    "queue, for `value` ns, and was free for most of that time",
    "join-refused": "a join that was refused: the thread was detached, or another thread joins it",
    "init-in-use": "a lock that was initialized while a thread held it",
    "limit-of-other-clock": "a wait with a time limit decades ahead by its clock, `value` ns ahead "
    "by the other clock",
    "limit-over": "a wait with a time limit that was over for a day or more when it began; by the "
    "other clock, the limit was `value` ns ahead if that is near, else `value` is 0",
    "tries-refused": "a thread that tried to take a lock `value` times in a row, 1000 or more, "
    "while other threads had the lock, and did nothing else meanwhile",
    "extra-post": "a post of a semaphore that is used as a lock, by a thread that had not taken "
    "the semaphore; two threads had the semaphore at the same time afterwards",
    "writer-overtaken": "a writer that waited 1 ms or more for a read-write lock, while readers "
    "that asked for the lock later took it `value` times, 100 or more",
}
"""Kinds of facts of the checker, with their meanings, in the order of `enum ptt_fact_kind`."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that proves a finding.

    Attributes:
        ts_ns: Time of the event, in ns since the traceset's start.
        pid: Process id.
        tid: Kernel thread id, 0 if unknown.
        thread: The thread as text, such as `thread 12 (worker)`.
        text: Action of the thread, as the end of a sentence that begins with the thread.
        site: Call site as text, or empty.
        stack: Frames from the call site on, the innermost first; empty if the trace has no stack.
        object: Address of the object, 0 if there is none.
    """

    ts_ns: int
    pid: int
    tid: int
    thread: str
    text: str
    site: str = ""
    stack: tuple[str, ...] = ()
    object: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, as a kind of finding yields it.

    Attributes:
        message: The finding as a sentence without a full stop.
        ts_ns: Time of the finding, in ns since the traceset's start.
        process: Number of the process in the traceset, as in the column `process` of the tables.
        threads: Kernel thread ids of the threads concerned.
        objects: Addresses of the objects concerned, as numbers or as `0x…`.
        sites: The call sites concerned, as text.
        events: The events that prove the finding, in the order of the sentence.
        count: Number of times it was found.
        suspect: The cause may be memory that was reused for another object.
        severity: Severity of this finding; None for the severity of its kind.
        title: A short sentence without a full stop and without call sites, to stand above the
            events; empty: it is the message.
    """

    message: str
    ts_ns: int
    process: int = 0
    threads: Sequence[int] = ()
    objects: Sequence[int | str] = ()
    sites: Sequence[str] = ()
    events: Sequence[Event] = ()
    count: int = 1
    suspect: bool = False
    severity: Severity | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """An action of one thread: one of the few steps that prove a fact.

    Attributes:
        what: `took`, `waits`, `asked`, `cond` (waits on a condition), `joins`, `barrier` (waits at
            a barrier), `released`, `unlocks` (a lock that it does not hold), `refused`, `init`,
            `destroyed`, `used`, `signalled`, `broadcast`, `ended`, `created`, `priority`,
            `forked`, `slept` (in a system call, for `value` ns), `passed` (a lock, the last of
            `value` times in a row), `free` (took a lock that nobody had for `value` ns in that
            time), `tried` (to take a lock, `value` times in a row, and was refused) or `posted` (a
            semaphore that it had not taken).
        ts_ns: Time of the step, in ns since the traceset's start.
        value: An errno, a number of threads, a priority or a time: see `text`.
        process: Number of the thread's process in the traceset.
        pid: Process id.
        thread: The thread as text, such as `thread 12 (worker)`.
        tid: Kernel thread id.
        thread_id: A number that no other thread has. Several threads may have the same `tid`.
        other: The other thread of the step as text.
        other_tid: Kernel thread id of the other thread.
        other_id: The `thread_id` of the other thread; 0 if there is none.
        kind: Kind of the object: `mutex`, `rwlock`, `condition`, ….
        address: Address of the object; 0 if there is none.
        name: Name of the object, or its address.
        mutex_address: Address of the mutex of a condition wait, or 0.
        mutex_name: Name of that mutex, or its address.
        site: Call site as text, or empty.
        call: Name of the system call of a sleep, or empty.
    """

    what: str
    ts_ns: int
    value: int
    process: int
    pid: int
    thread: str
    tid: int
    thread_id: int
    other: str
    other_tid: int
    other_id: int
    kind: str
    address: int
    name: str
    mutex_address: int
    mutex_name: str
    site: str
    call: str

    @property
    def at(self) -> str:
        """The call site as the end of a sentence, or empty."""
        return f" at {self.site}" if self.site else ""

    @property
    def taken(self) -> str:
        """Where the object was taken or released, as the end of a sentence; empty if unknown."""
        how = "released" if self.what == "released" and self.kind != "semaphore" else "taken"
        return f", {how}{self.at}" if self.site else ""

    @property
    def object(self) -> str:
        """Kind and name of the object; empty if there is none."""
        return f"{self.kind} {self.name}".strip() if self.address else ""

    @property
    def mutex(self) -> str:
        """The mutex of a condition wait, such as `mutex queue_lock`, or empty."""
        return f"mutex {self.mutex_name}" if self.mutex_address else ""

    @property
    def error(self) -> str:
        """The name of the error that a call returned."""
        return error_name(self.value)

    @property
    def tids(self) -> list[int]:
        """Kernel thread ids of the threads concerned."""
        tids = {
            "init": [],
            "created": [self.other_tid],
            "forked": [self.other_tid],
            "joins": [self.tid, self.other_tid],
        }.get(self.what, [self.tid])
        return [tid for tid in tids if tid]

    @property
    def text(self) -> str:
        """Action of the thread, as the end of a sentence that begins with the thread."""
        return _TEXTS[self.what](self)

    @property
    def event(self) -> Event:
        """The step as an event of a finding."""
        columns = (self.ts_ns, self.pid, self.tid, self.thread, self.text, self.site)
        return Event(*columns, object=self.address)


def duration(ns: int) -> str:
    """Return a duration as text: `1.23 s`, `45.6 ms`, `789 ns`."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns // size} {unit}"
    return f"{ns} ns"


def listed(names: Iterable[str]) -> str:
    """Return different names as text: `a, b and c`, with the number of those beyond the fourth."""
    names = list(dict.fromkeys(names))
    *names, last = [*names[:_FEW], f"{len(names) - _FEW} more"] if len(names) > _FEW else names
    return f"{', '.join(names)} and {last}" if names else last


def priority(value: int) -> str:
    """Return a priority as text; 0 is the ordinary priority."""
    return f"real-time priority {value}" if value else "ordinary priority"


def _shared(step: Step) -> str:
    return " for reading" if step.value == 1 and step.kind == "rwlock" else ""


def _used(step: Step) -> str:
    from nptltrace.catalog import BY_ID

    event = BY_ID[step.value].name if step.value in BY_ID else str(step.value)
    return f"used {step.object} ({event})"


_TEXTS: dict[str, Callable[[Step], str]] = {
    "took": lambda step: f"took {step.object}{_shared(step)}",
    "waits": lambda step: f"waits for {step.object}{_shared(step)}",
    "asked": lambda step: f"asked for {step.object}{_shared(step)}",
    "cond": lambda step: f"waits on {step.object} with {step.mutex}",
    "joins": lambda step: (
        f"waits for the end of {step.other}{' (already joined)' if step.value else ''}"
    ),
    "barrier": lambda step: f"waits at {step.object}",
    # In a step of a semaphore, `released` stands for the thread that took the semaphore.
    "released": lambda step: f"{'took' if step.kind == 'semaphore' else 'released'} {step.object}",
    "unlocks": lambda step: f"released {step.object}",
    "refused": lambda step: f"was refused{step.object and f' {step.object}'}: {step.error}",
    "init": lambda step: f"initialized {step.object}",
    "destroyed": lambda step: f"destroyed {step.object}",
    "used": _used,
    "signalled": lambda step: f"signalled {step.object}",
    "broadcast": lambda step: f"broadcast {step.object}",
    "ended": lambda _: "ended",
    "created": lambda step: f"created {step.other}",
    "priority": lambda step: f"had {priority(step.value)}",
    "forked": lambda step: f"forked while {step.other} had locks",
    "slept": lambda step: f"slept {duration(step.value)} in {step.call}",
    "passed": lambda step: f"gave {step.object} to the last of {step.value} that slept in turn",
    "posted": lambda step: f"posted {step.object} without having taken it",
    "tried": lambda step: f"tried to take {step.object} {step.value} times, and was refused",
    "free": lambda step: f"took {step.object}, which nobody had for {duration(step.value)} in all",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """An observation of the checker, with the few steps that prove it.

    A fact is neutral: a kind of finding decides whether it is a finding.

    Attributes:
        ts_ns: Time of the fact, in ns since the traceset's start.
        process: Number of the process in the traceset.
        value: A time in ns, or a number: see `FACTS`.
        count: Number of times the fact was seen.
        total: Sum of the values of all times, for a fact with a size.
        steps: The steps that prove the fact.
        refused: Whether the library refused the call, so that the program knows.
        suspect: Whether memory of a lock may have been reused for another lock.
        unless_handler: Whether the fact is false if a signal handler posts a semaphore.
    """

    ts_ns: int
    process: int
    value: int
    count: int
    total: int
    steps: tuple[Step, ...]
    refused: bool
    suspect: bool
    unless_handler: bool = False

    @property
    def objects(self) -> list[int]:
        """Addresses of the objects of the steps."""
        pairs = ((s.address if s.kind != "thread" else 0, s.mutex_address) for s in self.steps)
        return list(dict.fromkeys(address for pair in pairs for address in pair if address))

    @property
    def harmless(self) -> bool:
        """Whether the fact is a misuse of an object that the library refused."""
        return self.refused and bool(self.objects)

    @property
    def refusal(self) -> str:
        """The end of a sentence for a refused call; empty if the call was not refused."""
        return f" (refused with {self.steps[-1].error})" if self.refused else ""

    @property
    def waits(self) -> list[str]:
        """A text for each blocked thread: the object that others want of it, and its own wait."""
        parts = []
        held: Step | None = None
        for step in self.steps:
            if step.what == "took":
                held = step
                continue
            is_holder = held is not None and held.thread_id == step.thread_id
            holds = f"holds {held.object} and " if held is not None and is_holder else ""
            by = f", held by {step.other}" if step.what == "waits" and step.other_id else ""
            parts.append(f"{step.thread} {holds}{step.text}{step.at}{by}")
            held = None
        return parts

    def first(self, *whats: str) -> Step | None:
        """Return the first step with one of some values of `what`, or None."""
        return next((step for step in self.steps if step.what in whats), None)

    @property
    def without_sites(self) -> Fact:
        """The fact with steps that do not say where they happened."""
        return replace(self, steps=tuple(replace(step, site="") for step in self.steps))

    def found(
        self,
        message: str | Callable[[Fact], str],
        *,
        title: str = "",
        severity: Severity | None = None,
    ) -> Found:
        """Return the fact as a finding.

        Args:
            message: The finding as a sentence without a full stop, or a function that composes this
                sentence from a fact.
            title: A short sentence without call sites. If it is empty, a function composes it from
                a fact without call sites. Otherwise, it is the message.
            severity: Severity of this finding; None for the severity of its kind.
        """
        if callable(message):
            title = title or message(self.without_sites)
            message = message(self)
        return Found(
            message,
            title=title,
            ts_ns=self.ts_ns,
            process=self.process,
            threads=list(dict.fromkeys(tid for step in self.steps for tid in step.tids)),
            objects=self.objects,
            sites=list(dict.fromkeys(step.site for step in self.steps if step.site)),
            events=[step.event for step in self.steps],
            count=self.count,
            suspect=self.suspect,
            severity=severity,
        )


class Trace(Protocol):
    """The trace, as a kind of finding or a report reads it."""

    @property
    def thread_count(self) -> int:
        """The number of threads. It costs nothing."""

    def lifetimes(self) -> Mapping[int, NDArray[np.int64]]:
        """Return the lifetimes of threads, from first event to last. They cost less than a table.

        Returns:
            An array for each process by its number, with a time in ns for each thread.
        """

    def facts(self, kind: str) -> Sequence[Fact]:
        """Return the facts of one kind. They cost nothing more.

        Args:
            kind: One of `FACTS`.
        """

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table. For this, the events are read once more.

        Args:
            name: `waits`, `holds`, `threads`, …
            columns: Names of columns to choose; None for all.
        """

    def sql(self, query: str) -> pa.Table:
        """Return the rows of an SQL query over the tables.

        Args:
            query: One or more statements; the last statement that returns rows counts.
        """
