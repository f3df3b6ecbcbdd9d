"""The shapes of the JSON documents that commands print and `Traceset` returns, as types.

What the names mean, and in which unit, is in `meanings`. Names whose value is missing are null,
or the empty text for names of things and call sites.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from nptltrace.catalog.tables import WaitClass

__all__ = [
    "Blamed", "Cause", "Certainty", "Check", "CriticalPath", "Diff",
    "DiffLabel", "DiffMetric", "DiffRow", "DiffRun", "Event", "Figures", "Finding",
    "FindingEvent", "FleetChange", "FleetCheck", "FleetDiff", "FleetFinding", "FleetGroup",
    "FleetOrder", "FleetPlace", "FleetPlaceChange", "FleetReport", "FleetRun", "FleetRuns",
    "FleetSite", "FleetStep", "Hang", "HangThread", "HangWait", "LiveFigures", "OpenWait",
    "PathLink", "PathThread", "Report", "ReportObject", "ReportPair", "ReportParts", "ReportSite",
    "ReportStack", "ReportThread", "Severity", "StackTimes",
    "Stat", "StatObject", "StatProcess", "StatThread", "Top", "TopObject", "TopSite",
    "TopThread", "TopWait", "Uncovered", "Verify", "Violation", "ViolationEvent",
    "Waker",
]  # fmt: skip

Severity = Literal["error", "warning"]
Certainty = Literal["sure", "chance", "unknown"]


class Uncovered(TypedDict):
    """A module of which not all that it does is in the trace."""

    module: str
    why: str


# ---- report ----


class Figures(TypedDict):
    """Sums of waits and holds; only contended waits count in `waits`."""

    waits: int
    wait_ns: int
    held_ns: int
    wake_ns: int
    wait_max_ns: int
    wait_p50_ns: int | None
    wait_p99_ns: int | None
    idle_waits: int
    idle_ns: int
    join_waits: int
    join_ns: int
    timeout_waits: int
    timeout_ns: int
    cancelled_waits: int
    cancelled_ns: int
    unknown_waits: int
    unknown_ns: int
    gil_waits: int
    gil_ns: int
    holds: int
    hold_ns: int
    hold_max_ns: int


class Blamed(TypedDict):
    """A thread that held an object while others waited, null where it is not known."""

    tid: int | None
    pid: int | None
    name: str
    site: str
    released: bool
    wait_caused_ns: int


class Waker(TypedDict):
    """A thread that ended waits for an object, null where it is not known."""

    tid: int | None
    pid: int | None
    name: str
    site: str
    count: int
    blocked_ns: int


class ReportObject(Figures):
    """An object in a report; the generations of an address are one, but for locks of Python."""

    object: str
    pid: int
    kind: str
    name: str
    init_site: str
    first_site: str
    generations: int
    threads: int
    max_waiters: int
    wasted_signals: int
    blamed: list[Blamed]
    wakers: list[Waker]


Cause = TypedDict(
    "Cause",
    {
        "object": str,
        "kind": str,
        "name": str,
        "class": WaitClass,
        "site": str,
        "because_of_tid": int | None,
        "because_of_site": str,
        "waits": int,
        "wait_ns": int,
        "held_ns": int,
        "wait_max_ns": int,
    },
)
Cause.__doc__ = "An object that a thread waited for at one call site, because of one other thread."


class ReportThread(Figures):
    """A thread in a report."""

    tid: int
    pid: int
    name: str
    start_ns: int
    end_ns: int
    blocked_ns: int
    running_ns: int
    by_kind: dict[str, int]
    wait_caused_ns: int
    buffer_wait_ns: int
    silent_ns: int
    cpu_ns: int | None
    ready_ns: int | None
    waited_for: list[Cause]


class ReportSite(Figures):
    """A call site in a report."""

    site: str
    site_address: str
    pid: int
    kind: str
    wait_caused_ns: int


class ReportPair(Figures):
    """What one thread did with one object."""

    tid: int
    pid: int
    thread_name: str
    object: str
    kind: str
    object_name: str
    wait_caused_ns: int


class StackTimes(TypedDict, total=False):
    """What is added up by call stack: one count, and one time."""

    waits: int
    wait_ns: int
    wait_caused_ns: int
    holds: int
    hold_ns: int
    idle_waits: int
    idle_ns: int


class ReportStack(StackTimes):
    """A call stack in a report: of waiters, holders, holds or idle waits, as it is asked for."""

    stack: list[str]


OpenWait = TypedDict(
    "OpenWait",
    {
        "tid": int,
        "pid": int,
        "thread_name": str,
        "object": str,
        "kind": str,
        "object_name": str,
        "class": WaitClass,
        "t_ns": int,
        "dur_ns": int,
        "site": str,
        "owner_tid": int | None,
        "owner_site": str,
    },
)
OpenWait.__doc__ = "A wait that had not ended when the trace did."


class PathThread(TypedDict):
    """A thread's part of the critical path."""

    tid: int
    pid: int
    name: str
    run_ns: int
    latency_ns: int
    ready_ns: int | None
    open_ns: int


class PathLink(TypedDict):
    """An object through which the critical path goes from thread to thread."""

    object: str
    pid: int
    kind: str
    name: str
    count: int
    latency_ns: int


class CriticalPath(TypedDict):
    """The critical path to the last event."""

    start_ns: int
    end_ns: int
    resolution_ns: int
    segments: int
    threads: list[PathThread]
    links: list[PathLink]


class ReportParts(TypedDict, total=False):
    """What a report holds when it is asked for."""

    sites: list[ReportSite]
    pairs: list[ReportPair]
    stacks: list[ReportStack]


class Report(ReportParts, Figures):
    """The document of `ptt report`, with `sites`, `pairs` or `stacks` where they are asked for."""

    elapsed_ns: int
    first_ns: int
    last_ns: int
    lost: int
    objects: list[ReportObject]
    threads: list[ReportThread]
    never_ended: list[OpenWait]
    deadlocks: list[list[OpenWait]]
    critical_path: CriticalPath
    uncovered: list[Uncovered]


# ---- check and verify ----


class FindingEvent(TypedDict):
    """An event that proves a finding."""

    ts_ns: int
    pid: int
    tid: int
    text: str
    site: str
    stack: list[str]


class Finding(TypedDict):
    """One thing that is wrong."""

    kind: str
    severity: Severity
    threads: list[int]
    objects: list[str]
    sites: list[str]
    ts_ns: int
    message: str
    pid: int
    object_names: list[str]
    count: int
    suspect: bool
    events: list[FindingEvent]


class Check(TypedDict):
    """The document of `ptt check`."""

    findings: list[Finding]
    uncovered: list[Uncovered]
    futex_waits: int


class HangWait(TypedDict):
    """What a thread of a running process waits for; `object` is null for a system call."""

    object: str | None
    kind: str
    name: str
    owner_tid: int | None
    timed: bool


class HangThread(TypedDict):
    """A thread of a running process; `moved` is null unless it was watched."""

    tid: int
    name: str
    state: str
    moved: bool | None
    waits_for: HangWait | None
    stack: list[str]


class Hang(TypedDict):
    """The document of `ptt hang`; times of its findings are 0."""

    pid: int
    name: str
    threads: list[HangThread]
    findings: list[Finding]
    uncovered: list[Uncovered]


class ViolationEvent(TypedDict):
    """An event that proves a violation."""

    ts_ns: int
    pid: int
    tid: int
    event: str
    object: str
    site: str
    text: str


class Violation(TypedDict):
    """A promise of the thread library that was broken."""

    rule: str
    severity: Severity
    pid: int
    threads: list[int]
    objects: list[str]
    object_names: list[str]
    kind: str
    sites: list[str]
    ts_ns: int
    message: str
    count: int
    events: list[ViolationEvent]


class Verify(TypedDict):
    """The document of `ptt verify`."""

    violations: list[Violation]
    checked: dict[str, int]
    skipped: dict[str, int]
    gaps: list[str]


# ---- stat ----


class StatThread(TypedDict):
    """A thread and its events."""

    tid: int
    name: str
    events: int
    start_ns: int | None
    end_ns: int | None


class StatProcess(TypedDict):
    """A process image and its threads."""

    pid: int
    ppid: int
    exe: str
    cmdline: list[str]
    threads: list[StatThread]


class StatObject(TypedDict):
    """An object and its events."""

    object: str
    pid: int
    kind: str
    name: str
    events: int


class Stat(TypedDict):
    """The document of `ptt stat`."""

    events: int
    lost: int
    lost_by_cause: dict[str, int]
    untraced_processes: int
    duration_ns: int
    first_ns: int | None
    last_ns: int | None
    start_unix_ns: int
    level: str
    nptl: str
    sched: Literal["perf", "schedstat", "rseq", "none"]
    state: str
    bytes: int
    damage_bytes: int
    processes: list[StatProcess]
    event_types: dict[str, int]
    objects: list[StatObject]
    uncovered: list[Uncovered]


# ---- diff ----


class DiffRun(TypedDict):
    """A run that was compared."""

    trace: str
    elapsed_ns: int


class DiffMetric(TypedDict):
    """How one figure changed."""

    before: float
    after: float
    change_percent: float | None
    chance: float | None
    verdict: Certainty
    values_before: list[float]
    values_after: list[float]


class DiffLabel(TypedDict, total=False):
    """Which row is meant: a call site, a call stack, or an object or the threads of one name."""

    site: str
    stack: list[str]
    name: str


class DiffRow(DiffLabel):
    """What changed of a call site, a call stack, an object, or the threads of one name."""

    kind: str
    metrics: dict[str, DiffMetric]


class Diff(TypedDict):
    """The document of `ptt diff`."""

    by: str
    per: str
    runs_before: list[DiffRun]
    runs_after: list[DiffRun]
    confidence: float
    enough_runs: bool
    total: dict[str, DiffMetric]
    rows: list[DiffRow]


# ---- fleet ----


class FleetGroup(TypedDict):
    """Runs that have one value of a label, of a host or of a program."""

    value: str
    runs: int
    run_mean_ns: int


class FleetChange(TypedDict):
    """How the contended waiting of a run changed, on average."""

    before_ns: int
    after_ns: int
    change_percent: float | None
    chance: float


class FleetStep(FleetChange):
    """A change from the runs of one value to those of the next."""

    value_before: str
    value_after: str


class FleetSite(TypedDict):
    """A place in the program where threads waited, whatever the build."""

    place: str
    site: str
    module: str
    kind: str


class FleetPlace(FleetSite):
    """How long threads waited at a place, in all runs and in one."""

    runs: int
    waits: int
    wait_ns: int
    held_ns: int
    wait_max_ns: int
    run_mean_ns: int
    run_p50_ns: int
    run_p90_ns: int
    run_max_ns: int
    groups: list[FleetGroup]
    changes: list[FleetStep]


class FleetReport(TypedDict):
    """The document of `ptt fleet report`."""

    store: str
    by: str
    runs: int
    wait_ns: int
    confidence: float
    groups: list[FleetGroup]
    places: list[FleetPlace]


class FleetOrder(TypedDict):
    """An order of locks that takes part in a cycle, with the first run that has it."""

    held_name: str
    wanted_name: str
    runs: int
    count: int
    run_id: str
    host: str
    tid: int
    held_site: str
    site: str


class FleetFinding(TypedDict):
    """What was found in several runs, or between them."""

    kind: str
    severity: Severity
    message: str
    sites: list[str]
    runs: int
    count: int
    hosts: list[str]
    values: list[str]
    first_unix_ns: int
    last_unix_ns: int
    first_run_id: str
    last_run_id: str
    orders: list[FleetOrder]


class FleetCheck(TypedDict):
    """The document of `ptt fleet check`."""

    store: str
    runs: int
    findings: list[FleetFinding]


class FleetPlaceChange(FleetSite, FleetChange):
    """What changed at a place."""


class FleetDiff(TypedDict):
    """The document of `ptt fleet diff`."""

    store: str
    runs_before: int
    runs_after: int
    confidence: float
    total: FleetChange
    places: list[FleetPlaceChange]


class FleetRun(TypedDict):
    """A run of a store."""

    run_id: str
    start_unix_ns: int
    added_unix_ns: int
    host: str
    exe: str
    events: int
    summary: bool
    labels: list[str]


class FleetRuns(TypedDict):
    """The document of `ptt fleet list`."""

    store: str
    runs: list[FleetRun]


# ---- top ----


class LiveFigures(TypedDict):
    """Contended waits in the interval of a snapshot, and since the start."""

    waits: int
    wait_ns: int
    held_ns: int
    wake_ns: int
    total_waits: int
    total_wait_ns: int
    total_held_ns: int
    total_wake_ns: int


class TopObject(LiveFigures):
    """An object that threads wait for, or waited for."""

    object: str
    pid: int
    kind: str
    name: str
    waiters: int
    holder_tid: int | None
    holder_site: str
    longest_ns: int


TopWait = TypedDict(
    "TopWait",
    {
        "object": str,
        "kind": str,
        "name": str,
        "class": WaitClass,
        "t_ns": int,
        "dur_ns": int,
        "site": str,
        "owner_tid": int | None,
    },
)
TopWait.__doc__ = "What a thread waits for now."


class TopThread(LiveFigures):
    """A thread that lives, or that waited in the interval."""

    tid: int
    pid: int
    name: str
    waits_for: TopWait | None
    held: int
    idle_ns: int
    wait_caused_ns: int


class TopSite(LiveFigures):
    """A call site at which threads wait, or whose holds others waited for."""

    site: str
    pid: int
    kind: str
    waiters: int
    wait_caused_ns: int


class Top(LiveFigures):
    """A snapshot: one line of `ptt top --format json`."""

    ts_ns: int
    since_ns: int
    running: bool
    lost: int
    waiting: int
    unknown_ns: int
    uncovered: list[Uncovered]
    objects: list[TopObject]
    threads: list[TopThread]
    sites: list[TopSite]


# ---- view ----


class EventNames(TypedDict, total=False):
    """Names of what an event is about, where they are known."""

    thread_name: str
    object_name: str


class Event(EventNames):
    """One line of `ptt view --format jsonl`; the event's own fields follow by their names."""

    ts_ns: int
    pid: int
    tid: int
    cpu: int | None
    source: Literal["nptl", "handler", "user"]
    event: str
    object: str
    site: str
    site_name: str
