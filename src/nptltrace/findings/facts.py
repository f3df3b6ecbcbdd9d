"""What a kind of finding reads, and what it yields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from nptltrace._dataclasses import dataclass
from nptltrace.errors import error_name
from nptltrace.findings.words import duration, priority

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["FACTS", "Event", "Fact", "Found", "Severity", "Step", "Trace"]

Severity = Literal["error", "warning"]

FACTS = {
    "wait-cycle": "threads that wait for each other, or for a lock that a fork left without owner",
    "wait-for-self": "a thread that waits for what it has itself, or for its own end",
    "order-cycle": "locks that were asked for in orders that close a cycle",
    "signal-missed": "a wait to the end for a signal that came before it, or woke another thread",
    "release-of-others": "a release of a lock that another thread held",
    "release-of-free": "a release of a lock that no thread held",
    "destroy-in-use": "an object that was destroyed while it was held or waited for",
    "use-of-destroyed": "a use of an object that had been destroyed",
    "cond-mutex-not-held": "a condition wait with a mutex that its thread did not hold",
    "cond-two-mutexes": "waits on one condition at one time with different mutexes",
    "end-with-hold": "a thread that ended while it held a lock",
    "end-unjoined": "a thread that ended, and was neither joined nor detached",
    "barrier-incomplete": "waits at a barrier for threads that will not come; `value` of them",
    "long-hold": "a hold of `value` ns, as long as `--long-hold` or longer, that others waited for",
    "wait-for-lower": "a wait of `value` ns, 1 ms or more, for a thread of lower priority",
    "all-blocked": "a process in which all `value` threads are blocked for ever",
    "wait-with-hold": "a wait for no lock, while another thread waited `value` ns, 1 ms or more, "
    "for a lock that the waiting one held",
    "order-cycle-prevented": "locks that were asked for in orders that close a cycle, which "
    "something prevents: another lock, one thread, readers, an order in time, or a try",
    "hold-preempted": "a holder that could have run and had no processor, while another thread "
    "waited `value` ns, 1 ms or more, for its lock",
    "hold-asleep": "a holder that slept, in a system call that is known or is not, and in no wait, "
    "while another thread waited `value` ns, 1 ms or more, for its lock",
    "convoy": "a lock that was handed 100 times in a row or more to a thread that slept in its "
    "queue, for `value` ns, and was free for most of that time",
    "join-refused": "a join that was refused: the thread was detached, or another thread joins it",
    "init-in-use": "a lock that was initialized while a thread held it",
    "limit-of-other-clock": "a wait with a time limit decades ahead by its clock, `value` ns ahead "
    "by the other clock",
    "limit-over": "a wait with a time limit that was over for a day or more when it began, and in "
    "`value` ns by the other clock if that is near, else 0",
    "tries-refused": "a thread that tried to take a lock `value` times in a row, 1000 or more, "
    "while other threads had the lock, and did nothing else meanwhile",
    "extra-post": "a post of a semaphore that is used as a lock, by a thread that had not taken "
    "the semaphore; two threads had the semaphore at the same time afterwards",
    "writer-overtaken": "a writer that waited 1 ms or more for a read-write lock, while readers "
    "that asked for the lock later took it `value` times, 100 or more",
}
"""What the checker sees, by name, in the order of `enum ptt_fact_kind`."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event that proves something.

    Attributes:
        ts_ns: When.
        pid: Process id.
        tid: Kernel thread id, 0 when it is not known.
        thread: What to call the thread.
        text: What it did, as the end of a sentence that begins with the thread.
        site: Where, or empty.
        stack: The frames from there on, the innermost first; filled in where the trace has them.
        object: Address of the object, 0 when there is none.
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
    """What a kind of finding yields.

    Attributes:
        message: The whole of it in a sentence, without a full stop.
        ts_ns: When it showed, in ns since the start of the traceset.
        process: Number of the process in the traceset, as in the column `process` of the tables.
        threads: Kernel thread ids of those that take part.
        objects: Addresses of what it is about, as numbers or as `0x…`.
        sites: Where it happened.
        events: What proves it, in the order of the sentence.
        count: How often it was seen.
        suspect: It may be explained by memory that was used again for another object.
        severity: Another one than that of the kind.
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


@dataclass(frozen=True, slots=True)
class Step:
    """What one thread did: one of the few steps that prove a fact.

    Attributes:
        what: `took`, `waits`, `asked`, `cond` (waits on a condition), `joins`, `barrier` (waits at
            one), `released`, `unlocks` (what it does not hold), `refused`, `init`, `destroyed`,
            `used`, `signalled`, `broadcast`, `ended`, `created`, `priority`, `forked`, `slept`
            (in a system call, for `value` ns), `passed` (a lock, the last of `value` times in a
            row), `free` (took a lock that nobody had for `value` ns in that time), `tried` (to
            take a lock, `value` times in a row, and was refused) or `posted` (a semaphore that it
            had not taken).
        ts_ns: When.
        value: An errno, a number of threads, a priority: see `text`.
        process: Number of the process in the traceset.
        pid: Its process id.
        thread: What to call the thread.
        tid: Its kernel thread id.
        thread_id: What distinguishes it from others that had this kernel thread id.
        other: What to call the other thread of the step.
        other_tid: Its kernel thread id.
        other_id: As `thread_id`; 0 when there is no other thread.
        kind: Of the object: `mutex`, `rwlock`, `condition`, ….
        address: Of the object; 0 when there is none.
        name: Of the object, or its address.
        mutex_address: Of the mutex of a condition wait, or 0.
        mutex_name: Its name, or its address.
        site: Where, or empty.
        call: The system call that it slept in, or empty.
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
        """Where, as the end of a sentence."""
        return f" at {self.site}" if self.site else ""

    @property
    def taken(self) -> str:
        """Where the object was taken, or else released; empty if neither is known."""
        how = "released" if self.what == "released" and self.kind != "semaphore" else "taken"
        return f", {how}{self.at}" if self.site else ""

    @property
    def object(self) -> str:
        """The name of the object, or its address."""
        return f"{self.kind} {self.name}".strip() if self.address else ""

    @property
    def mutex(self) -> str:
        """The name of the mutex of a condition wait, or its address."""
        return f"mutex {self.mutex_name}" if self.mutex_address else ""

    @property
    def error(self) -> str:
        """The name of the error that a call returned."""
        return error_name(self.value)

    @property
    def tids(self) -> list[int]:
        """Kernel thread ids of those that the step is about."""
        tids = {
            "init": [],
            "created": [self.other_tid],
            "forked": [self.other_tid],
            "joins": [self.tid, self.other_tid],
        }.get(self.what, [self.tid])
        return [tid for tid in tids if tid]

    @property
    def text(self) -> str:
        """What the thread did."""
        return _TEXTS[self.what](self)

    @property
    def event(self) -> Event:
        """The step as an event of a finding."""
        own = (self.ts_ns, self.pid, self.tid, self.thread, self.text, self.site)
        return Event(*own, object=self.address)


def _shared(step: Step) -> str:
    return " for reading" if step.value == 1 and step.kind == "rwlock" else ""


def _joined(step: Step) -> str:
    return " (already joined)" if step.value else ""


def _refused(step: Step) -> str:
    return f"was refused {step.object}: {step.error}" if step.address else (
        f"was refused: {step.error}"
    )  # fmt: skip


def _used(step: Step) -> str:
    from nptltrace.catalog import BY_ID

    event = BY_ID[step.value].name if step.value in BY_ID else str(step.value)
    return f"used {step.object} ({event})"


_TEXTS: dict[str, Callable[[Step], str]] = {
    "took": lambda step: f"took {step.object}{_shared(step)}",
    "waits": lambda step: f"waits for {step.object}{_shared(step)}",
    "asked": lambda step: f"asked for {step.object}{_shared(step)}",
    "cond": lambda step: f"waits on {step.object} with {step.mutex}",
    "joins": lambda step: f"waits for the end of {step.other}{_joined(step)}",
    "barrier": lambda step: f"waits at {step.object}",
    # Of a semaphore the fact has the thread that took it.
    "released": lambda step: f"{'took' if step.kind == 'semaphore' else 'released'} {step.object}",
    "unlocks": lambda step: f"released {step.object}",
    "refused": _refused,
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
    """Something that the checker saw: neutral, with the few steps that prove it.

    Attributes:
        ts_ns: When it showed.
        process: Number of the process in the traceset.
        value: How long in ns, or how many threads; each kind of fact says which.
        count: How often the same was seen.
        total: The sum of all values, of what has a size.
        steps: What proves it.
        refused: The library refused the call, and the program knows.
        suspect: Memory of a lock may have been used again for another.
        unless_handler: It stands unless a signal handler posts a semaphore.
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
        """Whether it is the misuse of an object that the library refused."""
        return self.refused and bool(self.objects)

    @property
    def refusal(self) -> str:
        """How a sentence ends if the library refused the call; empty if it did not."""
        return f" (refused with {self.steps[-1].error})" if self.refused else ""

    @property
    def waits(self) -> list[str]:
        """What each blocked thread waits for, and the object that it has and others want."""
        parts = []
        held: Step | None = None
        for step in self.steps:
            if step.what == "took":
                held = step
                continue
            own = held is not None and held.thread_id == step.thread_id
            holds = f"holds {held.object} and " if held is not None and own else ""
            by = f", held by {step.other}" if step.what == "waits" and step.other_id else ""
            parts.append(f"{step.thread} {holds}{step.text}{step.at}{by}")
            held = None
        return parts

    def first(self, *whats: str) -> Step | None:
        """Return the first step that is one of these."""
        return next((step for step in self.steps if step.what in whats), None)

    def found(self, message: str, *, severity: Severity | None = None) -> Found:
        """Return the fact as a finding.

        Args:
            message: The whole of it in a sentence.
            severity: Another one than that of the kind.
        """
        return Found(
            message,
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
    """The trace that is checked, as a kind of finding or a report reads it."""

    @property
    def thread_count(self) -> int:
        """How many threads it has, which costs nothing."""

    def lifetimes(self) -> Mapping[int, NDArray[np.int64]]:
        """Return how long each thread of each process lived, in ns, from first event to last.

        It costs little: far less than a table.
        """

    def facts(self, kind: str) -> Sequence[Fact]:
        """Return what the checker saw of one kind, which costs nothing more.

        Args:
            kind: One of `FACTS`.
        """

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table, for which the events are read once more.

        Args:
            name: `waits`, `holds`, `threads`, …
            columns: Only these; None for all.
        """

    def sql(self, query: str) -> pa.Table:
        """Return what an SQL query over the tables answers.

        Args:
            query: One or more statements; the last that returns rows counts.
        """
