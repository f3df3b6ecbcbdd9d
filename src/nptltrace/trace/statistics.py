"""What a traceset holds: processes, threads, event counts, objects, losses, first and last time."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace._escaping import readable
from nptltrace.catalog import BY_ID, DOMAINS, EVENTS
from nptltrace.trace.losses import reported_losses
from nptltrace.trace.threads import ALL

if TYPE_CHECKING:
    from collections.abc import Sequence
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
# Domains whose objects are things of the program, as opposed to processes, handlers and so on.
_OBJECT_DOMAINS = frozenset(
    number
    for name, number in DOMAINS.items()
    if name not in {"thread", "process", "user", "handler", "c11"}
)


@dataclass(slots=True)
class ThreadStat:
    """A thread and its events; times in ns since the start, None where it has none."""

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
    def events(self) -> int:
        """The events of all its threads."""
        return sum(thread.events for thread in self.threads)


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
    """What a traceset holds.

    Attributes:
        events: All events.
        lost: Events that are known to be missing.
        lost_by_cause: The same by cause, where the recorder says it.
        first_ns: Time of the first event that is no context switch, None when there is none.
        last_ns: Time of the last one, or of the end of a process that was killed.
        start_unix_ns: Unix time of time 0.
        level: Detail level, as it was asked for.
        nptl: The thread library: `stock`, or what a trace-enabled one calls itself.
        sched: Where times without a processor are known from: `perf`, the kernel's records of
            context switches; `schedstat`; `rseq` where at most is known how long they are in all;
            or `none`.
        bytes: Size of the stream files.
        state: `running`, `complete`, `recovered`, or empty; a caller that
            knows that nothing records it any more says `killed`.
        processes: Processes with their threads.
        event_types: Events by name, in the order of the catalogue.
        objects: Objects with most events first.
        untraced_processes: Processes that were to be traced, and could not be.
        uncovered: Modules of which not all that they do is in the trace, and why.
        damage_bytes: Bytes that could not be read.
    """

    events: int
    lost: int
    lost_by_cause: dict[str, int]
    first_ns: int | None
    last_ns: int | None
    start_unix_ns: int
    level: str
    nptl: str
    sched: Literal["perf", "schedstat", "rseq", "none"]
    bytes: int
    state: str
    processes: list[ProcessStat]
    event_types: dict[str, int]
    objects: list[ObjectStat]
    untraced_processes: int
    uncovered: list[dict[str, Any]]
    damage_bytes: int

    @property
    def duration_ns(self) -> int:
        """Time from the first event to the last, or to the end of a process that was killed."""
        if self.first_ns is None or self.last_ns is None:
            return 0
        return self.last_ns - self.first_ns

    @property
    def thread_count(self) -> int:
        """Threads of all processes."""
        return sum(len(process.threads) for process in self.processes)


@dataclass(frozen=True, slots=True)
class Part:
    """Which events to count.

    Attributes:
        filter: Lets them through.
        begin_ns: Those from this time on; None for the start.
        end_ns: Those before this time; None for the end.
    """

    filter: libpttread.Filter
    begin_ns: int | None = None
    end_ns: int | None = None


def statistics(
    source: Traceset,
    symbols: Symbols | None = None,
    *,
    objects: bool = True,
    named: int | None = None,
    part: Part | None = None,
    ended_ns: Sequence[int | None] | None = None,
) -> Statistics:
    """Count events.

    Args:
        source: The opened traces.
        symbols: Names of addresses; objects stay without names otherwise.
        objects: Whether to count by object, which takes longer.
        named: How many of the objects to name; None for all.
        part: Which events to count; None for all.
        ended_ns: When each process was seen to have ended, or until when it goes on; None for
            what the traces themselves say.
    """
    if part is None:
        workers = len(os.sched_getaffinity(0))
        counts, found, spans = libpttread.count(source.reader, workers=workers, objects=objects)
    else:
        from nptltrace.trace.reading.counting import count_part

        counts, found, spans = count_part(source, part.filter, part.begin_ns, part.end_ns)
    source.names.learn()
    processes = _processes(source, counts, spans)
    if part is None:
        _let_live(processes, _ends(source, processes, ended_ns or source.ended_ns()))
        processes = [process for process in processes if process.threads or process.exe]
    else:
        for process in processes:
            process.threads = [thread for thread in process.threads if thread.events]
        processes = [process for process in processes if process.threads]
    times = [(s.first, s.last) for s in spans if s.first <= s.last]
    causes: dict[str, int] = {}
    for trace in source.traces:
        for cause, n in source.losses(trace).items():
            causes[cause] = causes.get(cause, 0) + n
    types = _types(counts)
    if "EVENTS_LOST" in types:
        for loss in reported_losses(source.reader):
            causes[loss.cause] = causes.get(loss.cause, 0) + loss.events
    levels = dict.fromkeys(trace.info.session.level for trace in source.traces)
    libraries = dict.fromkeys(trace.info.session.nptl for trace in source.traces)
    states = dict.fromkeys(trace.info.session.state for trace in source.traces)
    return Statistics(
        events=sum(count.events for count in counts),
        lost=sum(causes.values()),
        lost_by_cause=causes,
        first_ns=min((first for first, _ in times), default=None),
        last_ns=max(
            (
                thread.end_ns
                for process in processes
                for thread in process.threads
                if thread.end_ns is not None
            ),
            default=max((last for _, last in times), default=None),
        ),
        start_unix_ns=source.start_unix_ns,
        level=", ".join(filter(None, levels)),
        nptl=", ".join(filter(None, libraries)),
        sched=_sched(types),
        bytes=sum(_stream_bytes(source)),
        state=", ".join(filter(None, states)),
        processes=processes,
        event_types=types,
        objects=_objects(source, symbols, found, named),
        untraced_processes=sum(t.info.session.untraced_processes for t in source.traces),
        uncovered=source.uncovered(),
        damage_bytes=sum(damage.size for damage in source.damages()),
    )


def _sched(types: dict[str, int]) -> Literal["perf", "schedstat", "rseq", "none"]:
    """Return the source of the times without a processor."""
    if types.get("SCHED_IN"):
        return "perf"
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
            except OSError:  # rotated away since
                continue
    return sizes


def _types(counts: list[libpttread.ThreadCount]) -> dict[str, int]:
    """Return events by name; variants of one name are one type to the user."""
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
    """Return processes by number, and their threads in the order in which they begin.

    Args:
        source: The opened traces.
        counts: Events by thread and type.
        spans: First and last events by thread.
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
            continue  # its packets are damaged, and so may be its number
        threads[number] = ThreadStat(
            tid,
            name,
            span.events,
            span.first if span.first <= span.last else None,
            span.last if span.first <= span.last else None,
        )
        made[process].threads.append(threads[number])
    for count in sorted(counts, key=lambda count: count.id):
        if count.thread in threads:
            types = threads[count.thread].types
            types[_name(count.id)] = types.get(_name(count.id), 0) + count.events
    return made


def _let_live(processes: list[ProcessStat], ends: Sequence[int | None]) -> None:
    """Let the threads of each process live until it ends, but for those that said that they end."""
    for one, end in zip(processes, ends, strict=True):
        for thread in one.threads:
            if thread.end_ns is not None and "THREAD_END" not in thread.types:
                thread.end_ns = end


def _ends(
    source: Traceset, processes: list[ProcessStat], ended_ns: Sequence[int | None]
) -> list[int | None]:
    """Return when each process ended, None where it has no events.

    A process that left in an orderly way ended with its last event; another one when it was killed,
    or when another process waited for its end, or else when the recorder saw it.
    """
    ends: list[int | None] = []
    waited = _waited_for(source) if len(processes) > 1 else {}
    for one, killed_ns, seen_ns in zip(processes, source.killed_ns(), ended_ns, strict=True):
        lasts = [thread.end_ns for thread in one.threads if thread.end_ns is not None]
        types: Counter[str] = Counter()
        for thread in one.threads:
            types.update(thread.types)
        left = types["PROCESS_EXIT"] or types["PROCESS_EXEC"] > types["PROCESS_EXEC_FAILED"]
        end_ns = killed_ns if killed_ns is not None or left else seen_ns
        if lasts and end_ns is not None:
            after = [ns for ns in waited.get((one.ppid, one.pid), []) if ns >= max(lasts)]
            lasts.append(min([end_ns, *after]))
        ends.append(max(lasts, default=None))
    return ends


def process_ends(source: Traceset) -> list[int | None]:
    """Return when each process ended, None where it has no events or goes on."""
    counts, _, spans = libpttread.count(source.reader, workers=1, objects=False)
    found = _ends(source, _processes(source, counts, spans), source.ended_ns())
    running = [trace.running for trace in source.traces]
    return [
        None if running[source.trace_of(number)] and process.end_unix_ns is None else end
        for number, (process, end) in enumerate(zip(source.processes, found, strict=True))
    ]


def _waited_for(source: Traceset) -> dict[tuple[int, int], list[int]]:
    """Return when processes had waited for the end of children, by ids of both."""
    found: dict[tuple[int, int], list[int]] = {}
    for buffer in source.reader.find((_REAPED,), ALL):
        parents, times = (buffer.arrays[name][: buffer.count] for name in ("object", "ts"))
        children = libpttread.numbers(buffer, "child")
        for parent, child, ts in zip(parents, children, times, strict=True):
            found.setdefault((int(parent), child), []).append(int(ts))
    return found


def _objects(
    source: Traceset,
    symbols: Symbols | None,
    found: list[libpttread.ObjectCount],
    named: int | None,
) -> list[ObjectStat]:
    """Return the objects, those with most events first."""
    processes = source.processes
    counts = [count for count in found if count.domain in _OBJECT_DOMAINS and count.object]
    counts.sort(key=lambda count: (-count.events, count.process, count.object, count.domain))
    result = []
    for number, count in enumerate(counts):
        name = ""
        if symbols is not None and (named is None or number < named):
            name = symbols.object_name(count.process, count.object, count.domain)
        kind, pid = _KIND.get(count.domain, "object"), processes[count.process].pid
        result.append(ObjectStat(count.object, pid, kind, name, count.events))
    return result
