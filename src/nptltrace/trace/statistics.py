"""Counts the contents of a traceset: processes, threads, events, objects, losses and times."""

from __future__ import annotations

import os
from collections import Counter
from heapq import nsmallest
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace._escaping import readable
from nptltrace.catalog import BY_ID, DOMAINS, EVENTS
from nptltrace.trace.losses import reported_losses
from nptltrace.trace.threads import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = [
    "ObjectStat",
    "Part",
    "ProcessStat",
    "Statistics",
    "ThreadStat",
    "process_ends",
    "statistics",
]

_REAPED = next(event.id for event in EVENTS if event.name == "PROCESS_REAPED")
_KIND = {DOMAINS[event.domain]: event.object_kind for event in EVENTS}
# Domains with objects of the program, as opposed to processes, handlers and so on.
_OBJECT_DOMAINS = frozenset(
    number
    for name, number in DOMAINS.items()
    if name not in {"thread", "process", "user", "handler", "c11"}
)


@dataclass(slots=True)
class ThreadStat:
    """A thread and its events. Times are in ns since the start; None without events."""

    tid: int
    name: str
    events: int
    start_ns: int | None
    end_ns: int | None
    types: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessStat:
    """A process image and its threads."""

    pid: int
    ppid: int
    exe: str
    cmdline: list[str]
    threads: list[ThreadStat] = field(default_factory=list)

    @property
    def thread_count(self) -> int:
        """The number of threads."""
        return len(self.threads)

    def busiest(self, most: int | None) -> list[ThreadStat]:
        """Return at most `most` threads with most events, in the order of their begin."""
        if most is None or len(self.threads) <= most:
            return self.threads
        chosen = sorted(range(len(self.threads)), key=lambda n: -self.threads[n].events)[:most]
        return [self.threads[number] for number in sorted(chosen)]


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """An object and its events."""

    address: int
    pid: int
    kind: str
    name: str
    events: int


@dataclass(slots=True)
class Statistics:
    """The contents of a traceset. Times are in ns since the traceset's start.

    Attributes:
        events: Number of all events.
        lost: Number of lost events.
        lost_by_cause: Number of lost events by cause.
        first_ns: Time of the first event that is not a context switch; None without events.
        last_ns: Time of the last such event, or of the end of a killed process.
        start_unix_ns: Unix time of time 0, in ns.
        level: Detail level, as the user asked for it.
        nptl: The thread library: `stock`, or the name of a trace-enabled library.
        sched: Source of times without a processor: `perf` (the kernel's records of context
            switches), `schedstat`, `partial` (the same where the kernel does not tell when threads
            sleep in calls), `rseq` (which gives at most their sum) or `none`.
        bytes: Size of the stream files.
        state: `running`, `complete`, `recovered`, or empty. A caller that finds no recorder any
            more changes it to `killed`.
        processes: Processes with their threads.
        event_types: Numbers of events by name, in the order of the catalogue.
        objects: Objects, the object with most events first.
        object_count: Number of all objects; `objects` may have fewer.
        untraced_processes: Number of processes that could not be traced.
        uncovered: Modules that the trace does not cover fully, and why.
        damage_bytes: Number of bytes that could not be read.
    """

    events: int
    lost: int
    lost_by_cause: dict[str, int]
    first_ns: int | None
    last_ns: int | None
    start_unix_ns: int
    level: str
    nptl: str
    sched: Literal["perf", "schedstat", "partial", "rseq", "none"]
    bytes: int
    state: str
    processes: list[ProcessStat]
    event_types: dict[str, int]
    objects: list[ObjectStat]
    object_count: int
    untraced_processes: int
    uncovered: list[dict[str, Any]]
    damage_bytes: int

    @property
    def duration_ns(self) -> int:
        """Time from the first event to the last event, or to the end of a killed process."""
        if self.first_ns is None or self.last_ns is None:
            return 0
        return self.last_ns - self.first_ns

    @property
    def thread_count(self) -> int:
        """The number of threads of all processes."""
        return sum(process.thread_count for process in self.processes)


@dataclass(frozen=True, slots=True)
class Part:
    """Which events to count.

    Attributes:
        filter: Count events that pass this filter.
        begin_ns: Count events from this time on; None for the start.
        end_ns: Count events before this time; None for the end.
    """

    filter: libpttread.Filter
    begin_ns: int | None = None
    end_ns: int | None = None


def statistics(
    source: Traceset,
    symbols: Symbols | None = None,
    *,
    objects: bool = True,
    most: int | None = None,
    part: Part | None = None,
    ended_ns: Sequence[int | None] | None = None,
) -> Statistics:
    """Count events.

    Args:
        source: The opened traces.
        symbols: Names addresses; None: objects get no names.
        objects: Whether to count by object too, which takes longer.
        most: Return at most this many objects, the objects with most events; None for all.
        part: Which events to count; None for all.
        ended_ns: By process, when its end was seen, or until when it goes on; None: the traces
            tell it.
    """
    if part is None:
        workers = len(os.sched_getaffinity(0))
        counts, by_object, spans = libpttread.count(source.reader, workers=workers, objects=objects)
    else:
        from nptltrace.trace.reading.counting import count_part

        counts, by_object, spans = count_part(source, part.filter, part.begin_ns, part.end_ns)
    source.names.learn()
    processes = _processes(source, counts, spans)
    if part is None:
        ends = _ends(source, processes, ended_ns or source.ended_ns())
        for process, end in zip(processes, ends, strict=True):
            for thread in process.threads:
                # A thread lives until its process ends, unless the thread has an event of its end.
                if thread.end_ns is not None and "THREAD_END" not in thread.types:
                    thread.end_ns = end
        processes = [process for process in processes if process.threads or process.exe]
    else:
        for process in processes:
            process.threads = [thread for thread in process.threads if thread.events]
        processes = [process for process in processes if process.threads]
    listed, object_count = _objects(source, symbols, by_object, most)
    times = [(s.first, s.last) for s in spans if s.first <= s.last]
    lasts = [t.end_ns for process in processes for t in process.threads if t.end_ns is not None]
    types = _types(counts)
    causes = _losses(source, types)
    sessions = [trace.info.session for trace in source.traces]
    return Statistics(
        events=sum(count.events for count in counts),
        lost=sum(causes.values()),
        lost_by_cause=causes,
        first_ns=min((first for first, _ in times), default=None),
        last_ns=max(lasts, default=max((last for _, last in times), default=None)),
        start_unix_ns=source.start_unix_ns,
        level=_different(session.level for session in sessions),
        nptl=_different(session.nptl for session in sessions),
        sched=_sched(types),
        bytes=sum(_stream_bytes(source)),
        state=_different(session.state for session in sessions),
        processes=processes,
        event_types=types,
        objects=listed,
        object_count=object_count,
        untraced_processes=sum(session.untraced_processes for session in sessions),
        uncovered=source.uncovered(),
        damage_bytes=sum(damage.size for damage in source.damages()),
    )


def _different(texts: Iterable[str]) -> str:
    """Return the different texts that are not empty, as a list."""
    return ", ".join(filter(None, dict.fromkeys(texts)))


def _losses(source: Traceset, types: dict[str, int]) -> dict[str, int]:
    """Return the numbers of lost events by cause, from the recorder and from events."""
    causes: Counter[str] = Counter()
    for trace in source.traces:
        causes.update(source.losses(trace))
    if "EVENTS_LOST" in types:
        for loss in reported_losses(source.reader):
            causes[loss.cause] += loss.events
    return dict(causes)


def _sched(types: dict[str, int]) -> Literal["perf", "schedstat", "partial", "rseq", "none"]:
    """Return the source of the times without a processor."""
    if types.get("SCHED_IN"):
        return "perf"
    if types.get("SCHED_PARTIAL"):
        return "partial"
    if types.get("SCHED_READING") or types.get("SCHED_KEPT"):
        return "schedstat"
    return "rseq" if types.get("SCHED_RAN") or types.get("SCHED_SWITCHED") else "none"


def _stream_bytes(source: Traceset) -> list[int]:
    """Return the sizes of all stream files."""
    sizes = []
    for trace in source.traces:
        for name in trace.files:
            try:
                sizes.append((trace.path / name).stat().st_size)
            except OSError:  # the recorder has removed the file
                continue
    return sizes


def _types(counts: list[libpttread.ThreadCount]) -> dict[str, int]:
    """Return numbers of events by name. Variants with one name are one type to the user."""
    by_id: dict[int, int] = {}
    for count in counts:
        by_id[count.id] = by_id.get(count.id, 0) + count.events
    names: dict[str, int] = {}
    for number in sorted(by_id):
        name = _name(number)
        names[name] = names.get(name, 0) + by_id[number]
    return names


def _name(number: int) -> str:
    event = BY_ID.get(number)
    return event.name if event is not None else f"EVENT_{number}"


def _processes(
    source: Traceset,
    counts: list[libpttread.ThreadCount],
    spans: list[libpttread.ThreadSpan],
) -> list[ProcessStat]:
    """Return processes by number, with their threads ordered by begin.

    Args:
        source: The opened traces.
        counts: Numbers of events by thread and type.
        spans: Times of the first and last event by thread.
    """
    known = source.processes
    threads: dict[int, ThreadStat] = {}
    made = [ProcessStat(p.pid, p.ppid, readable(p.exe), p.cmdline) for p in known]
    rows = source.thread_ids
    for number in sorted(range(len(rows)), key=lambda n: (spans[n].first, rows[n])):
        process, tid = rows[number]
        span = spans[number]
        name = source.names.of(number)
        if not span.events and not name:
            continue  # its packets are damaged, and maybe its number too
        begin, end = (span.first, span.last) if span.first <= span.last else (None, None)
        threads[number] = ThreadStat(tid, name, span.events, begin, end)
        made[process].threads.append(threads[number])
    for count in sorted(counts, key=lambda count: count.id):
        if count.thread in threads:
            types = threads[count.thread].types
            types[_name(count.id)] = types.get(_name(count.id), 0) + count.events
    return made


def _ends(
    source: Traceset, processes: list[ProcessStat], ended_ns: Sequence[int | None]
) -> list[int | None]:
    """Return when each process ended; None for a process without events.

    A process that exits or calls exec ends with its last event. Another process ends when a signal
    kills it, or when its parent has waited for its end, or else when the recorder saw its end.
    """
    ends: list[int | None] = []
    waited = _waited_for(source) if len(processes) > 1 else {}
    for process, killed_ns, seen_ns in zip(processes, source.killed_ns(), ended_ns, strict=True):
        lasts = [thread.end_ns for thread in process.threads if thread.end_ns is not None]
        types: Counter[str] = Counter()
        for thread in process.threads:
            types.update(thread.types)
        left = types["PROCESS_EXIT"] or types["PROCESS_EXEC"] > types["PROCESS_EXEC_FAILED"]
        end_ns = killed_ns if killed_ns is not None or left else seen_ns
        if lasts and end_ns is not None:
            reaped = waited.get((process.ppid, process.pid), [])
            after = [ns for ns in reaped if ns >= max(lasts)]
            lasts.append(min([end_ns, *after]))
        ends.append(max(lasts, default=None))
    return ends


def process_ends(source: Traceset) -> list[int | None]:
    """Return when each process ended, in ns; None for a process that goes on or has no events."""
    counts, _, spans = libpttread.count(source.reader, workers=1, objects=False)
    ends = _ends(source, _processes(source, counts, spans), source.ended_ns())
    running = [trace.running for trace in source.traces]
    return [
        None if running[source.trace_of(number)] and process.end_unix_ns is None else end
        for number, (process, end) in enumerate(zip(source.processes, ends, strict=True))
    ]


def _waited_for(source: Traceset) -> dict[tuple[int, int], list[int]]:
    """Return when processes had waited for the end of children, by process ids of both."""
    reaped: dict[tuple[int, int], list[int]] = {}
    for buffer in source.reader.find((_REAPED,), ALL):
        parents, times = (buffer.arrays[name][: buffer.count] for name in ("object", "ts"))
        children = libpttread.numbers(buffer, "child")
        for parent, child, ts in zip(parents, children, times, strict=True):
            reaped.setdefault((int(parent), child), []).append(int(ts))
    return reaped


def _objects(
    source: Traceset,
    symbols: Symbols | None,
    by_object: Iterable[libpttread.ObjectRow],
    most: int | None,
) -> tuple[list[ObjectStat], int]:
    """Return the objects, the object with most events first, and the number of all objects."""
    rows = [row for row in by_object if row[1] in _OBJECT_DOMAINS and row[2]]
    first = sorted(rows, key=_rank) if most is None else nsmallest(most, rows, key=_rank)
    processes, result = source.processes, []
    for process, domain, address, events in first:
        name = "" if symbols is None else symbols.object_name(process, address, domain)
        kind, pid = _KIND.get(domain, "object"), processes[process].pid
        result.append(ObjectStat(address, pid, kind, name, events))
    return result, len(rows)


def _rank(row: libpttread.ObjectRow) -> tuple[int, int, int, int]:
    process, domain, address, events = row
    return -events, process, address, domain
