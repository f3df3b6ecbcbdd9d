"""Results as the JSON documents whose shapes `analysis.vocabulary` declares, and as rows of CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from nptltrace.analysis.report.metrics import METRICS
from nptltrace.trace.places.site import hex_of_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nptltrace.analysis.findings import Finding
    from nptltrace.analysis.report.critical_path import CriticalPath
    from nptltrace.analysis.report.diff import Difference, Row
    from nptltrace.analysis.report.figures import (
        Blame,
        Contention,
        Figures,
        ObjectFigures,
        OpenWait,
        PairFigures,
        SiteFigures,
        ThreadFigures,
    )
    from nptltrace.analysis.report.live_contention import (
        LiveContention,
        LiveFigures,
        LiveObject,
        LiveSite,
        LiveThread,
        LiveWait,
    )
    from nptltrace.analysis.report.measures import Run
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.analysis.report.stacks.sums import Shown
    from nptltrace.analysis.report.stacks.trees import ReportStacks
    from nptltrace.analysis.verify import Verdict, Violation
    from nptltrace.analysis.vocabulary import document_types as shapes
    from nptltrace.trace.statistics import ProcessStat, Statistics

__all__ = [
    "TOP_COLUMNS", "diff_document", "diff_rows", "findings_document", "findings_rows",
    "report_document", "report_rows", "stat_document", "stat_rows", "top_document", "top_rows",
    "uncovered_modules", "verify_document", "verify_rows",
]  # fmt: skip


# ---- report ----


def report_document(
    found: Contention, *, by: str, stacks: ReportStacks | None = None
) -> shapes.Report:
    """Return the document of `ptt report`.

    Args:
        found: The report.
        by: Sites and pairs are in it only when they are asked for.
        stacks: The stacks, where they are asked for.
    """
    parts: shapes.ReportParts = {}
    if by == "site":
        parts["sites"] = [_site(item) for item in found.sites]
    if by == "thread,object":
        parts["pairs"] = [_pair(item) for item in found.pairs]
    if stacks is not None:
        parts["stacks"] = _stacks(stacks)
    return {
        "elapsed_ns": found.elapsed_ns,
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
        "lost": found.lost,
        **_figures(found.figures),
        "objects": [_object(item) for item in found.objects],
        "threads": [_thread(item) for item in found.threads],
        **parts,
        "never_ended": [_open(wait) for wait in found.open_waits],
        "deadlocks": [[_open(wait) for wait in cycle] for cycle in found.deadlocks],
        "critical_path": _path(found.path),
        "uncovered": uncovered_modules(found.uncovered),
    }


def report_rows(
    found: Contention, *, by: str, stacks: ReportStacks | None = None
) -> Iterator[list[Any]]:
    """Yield the rows of `ptt report --format csv`, the header first."""
    if stacks is not None:
        yield ["stack", *_STACK_COLUMNS[stacks.shown]]
        yield from (["; ".join(one.frames), one.count, one.ns] for one in stacks.stacks)
        return
    columns = _COLUMNS[by] + _FIGURES
    yield columns
    for row in _report_rows(found, by):
        yield [row[column] for column in columns]


def _report_rows(found: Contention, by: str) -> Sequence[Mapping[str, Any]]:
    if by == "thread":
        return [_thread(item) for item in found.threads]
    if by == "site":
        return [_site(item) for item in found.sites]
    if by == "thread,object":
        return [_pair(item) for item in found.pairs]
    return [_object(item) for item in found.objects]


_FIGURES = [
    "waits", "wait_ns", "held_ns", "wake_ns", "wait_max_ns", "wait_p50_ns", "wait_p99_ns",
    "idle_waits", "idle_ns", "join_waits", "join_ns", "timeout_waits", "timeout_ns",
    "cancelled_waits", "cancelled_ns", "unknown_waits", "unknown_ns", "gil_waits", "gil_ns",
    "holds", "hold_ns", "hold_max_ns",
]  # fmt: skip
_COLUMNS = {
    "object": ["object", "pid", "kind", "name", "init_site", "first_site", "threads",
               "max_waiters"],
    "thread": ["tid", "pid", "name", "start_ns", "end_ns", "blocked_ns", "running_ns",
               "wait_caused_ns"],
    "site": ["site", "site_address", "pid", "kind", "wait_caused_ns"],
    "thread,object": ["tid", "pid", "thread_name", "object", "kind", "object_name",
                      "wait_caused_ns"],
}  # fmt: skip


# How often and how long, of what is added up by stack.
_STACK_COLUMNS: dict[Shown, tuple[str, str]] = {
    "waits": ("waits", "wait_ns"),
    "holders": ("waits", "wait_caused_ns"),
    "holds": ("holds", "hold_ns"),
    "idle": ("idle_waits", "idle_ns"),
}


def _stacks(found: ReportStacks) -> list[shapes.ReportStack]:
    count, ns = _STACK_COLUMNS[found.shown]
    return [
        cast("shapes.ReportStack", {"stack": list(one.frames), count: one.count, ns: one.ns})
        for one in found.stacks
    ]


def _figures(figures: Figures) -> shapes.Figures:
    waits, ns = figures.other_waits, figures.other_ns
    return {
        "waits": figures.waits,
        "wait_ns": figures.wait_ns,
        "held_ns": figures.held_ns,
        "wake_ns": figures.wake_ns,
        "wait_max_ns": figures.wait_max_ns,
        "wait_p50_ns": figures.wait_p50_ns,
        "wait_p99_ns": figures.wait_p99_ns,
        "idle_waits": waits["idle"],
        "idle_ns": ns["idle"],
        "join_waits": waits["join"],
        "join_ns": ns["join"],
        "timeout_waits": waits["timeout"],
        "timeout_ns": ns["timeout"],
        "cancelled_waits": waits["cancelled"],
        "cancelled_ns": ns["cancelled"],
        "unknown_waits": waits["unknown"],
        "unknown_ns": ns["unknown"],
        "gil_waits": waits["gil"],
        "gil_ns": ns["gil"],
        "holds": figures.holds,
        "hold_ns": figures.hold_ns,
        "hold_max_ns": figures.hold_max_ns,
    }


def _blamed(blame: Blame) -> shapes.Blamed:
    thread = blame.thread
    return {
        "tid": _tid(thread),
        "pid": None if thread is None else thread.pid,
        "name": "" if thread is None else thread.name,
        "site": blame.site,
        "released": blame.released,
        "wait_caused_ns": blame.wait_caused_ns,
    }


def _waker(blame: Blame) -> shapes.Waker:
    thread = blame.thread
    return {
        "tid": _tid(thread),
        "pid": None if thread is None else thread.pid,
        "name": "" if thread is None else thread.name,
        "site": blame.site,
        "count": blame.count,
        "blocked_ns": blame.wait_caused_ns,
    }


def _object(item: ObjectFigures) -> shapes.ReportObject:
    return {
        "object": f"{item.address:#x}",
        "pid": item.pid,
        "kind": item.kind,
        "name": item.name,
        "init_site": item.init_site,
        "first_site": item.first_site,
        "generations": item.generations,
        "threads": item.threads,
        "max_waiters": item.max_waiters,
        "wasted_signals": item.wasted_signals,
        **_figures(item.figures),
        "blamed": [_blamed(blame) for blame in item.blamed],
        "wakers": [_waker(blame) for blame in item.wakers],
    }


def _tid(thread: ThreadName | None) -> int | None:
    return None if thread is None else thread.tid


def _thread(item: ThreadFigures) -> shapes.ReportThread:
    return {
        "tid": item.thread.tid,
        "pid": item.thread.pid,
        "name": item.thread.name,
        "start_ns": item.start_ns,
        "end_ns": item.end_ns,
        "blocked_ns": item.figures.blocked_ns,
        "running_ns": item.running_ns,
        **_figures(item.figures),
        "by_kind": dict(item.by_kind),
        "wait_caused_ns": item.wait_caused_ns,
        "buffer_wait_ns": item.buffer_ns,
        "silent_ns": item.silent_ns,
        "cpu_ns": item.cpu_ns,
        "ready_ns": item.ready_ns,
        "waited_for": [
            {
                "object": f"{cause.address:#x}",
                "kind": cause.kind,
                "name": cause.name,
                "class": cause.wait_class,
                "site": cause.site,
                "because_of_tid": _tid(cause.thread),
                "because_of_site": cause.thread_site,
                "waits": cause.waits,
                "wait_ns": cause.wait_ns,
                "held_ns": cause.held_ns,
                "wait_max_ns": cause.wait_max_ns,
            }
            for cause in item.causes
        ],
    }


def _site(item: SiteFigures) -> shapes.ReportSite:
    return {
        "site": item.site,
        "site_address": hex_of_site(item.address),
        "pid": item.pid,
        "kind": item.kind,
        "wait_caused_ns": item.wait_caused_ns,
        **_figures(item.figures),
    }


def _pair(item: PairFigures) -> shapes.ReportPair:
    return {
        "tid": item.thread.tid,
        "pid": item.thread.pid,
        "thread_name": item.thread.name,
        "object": f"{item.address:#x}",
        "kind": item.kind,
        "object_name": item.name,
        "wait_caused_ns": item.wait_caused_ns,
        **_figures(item.figures),
    }


def _open(wait: OpenWait) -> shapes.OpenWait:
    return {
        "tid": wait.thread.tid,
        "pid": wait.thread.pid,
        "thread_name": wait.thread.name,
        "object": f"{wait.address:#x}",
        "kind": wait.kind,
        "object_name": wait.name,
        "class": wait.wait_class,
        "t_ns": wait.t_ns,
        "dur_ns": wait.dur_ns,
        "site": wait.site,
        "owner_tid": _tid(wait.owner),
        "owner_site": wait.owner_site,
    }


def _path(path: CriticalPath) -> shapes.CriticalPath:
    return {
        "start_ns": path.start_ns,
        "end_ns": path.end_ns,
        "resolution_ns": path.resolution_ns,
        "segments": path.segments,
        "threads": [
            {
                "tid": part.thread.tid,
                "pid": part.thread.pid,
                "name": part.thread.name,
                "run_ns": part.run_ns,
                "latency_ns": part.latency_ns,
                "ready_ns": part.ready_ns,
                "open_ns": part.open_ns,
            }
            for part in path.threads
        ],
        "links": [
            {
                "object": f"{link.address:#x}",
                "pid": link.pid,
                "kind": link.kind,
                "name": link.name,
                "count": link.count,
                "latency_ns": link.latency_ns,
            }
            for link in path.links
        ],
    }


# ---- check ----


def findings_document(
    findings: Sequence[Finding], uncovered: Sequence[Mapping[str, Any]], futex_waits: int
) -> shapes.Check:
    """Return the document of `ptt check`.

    Args:
        findings: What was found.
        uncovered: Modules of which not all that they do is in the trace: `Source.uncovered`.
        futex_waits: Waits for futexes of no lock that is known, which are not judged.
    """
    return {
        "findings": [_finding(found) for found in findings],
        "uncovered": uncovered_modules(uncovered),
        "futex_waits": futex_waits,
    }


def uncovered_modules(modules: Sequence[Mapping[str, Any]]) -> list[shapes.Uncovered]:
    """Return modules of which not all that they do is in the trace, as documents have them."""
    return [
        {"module": str(item.get("module", "")), "why": str(item.get("why", ""))} for item in modules
    ]


def _finding(found: Finding) -> shapes.Finding:
    return {
        "kind": found.kind,
        "severity": found.severity,
        "threads": found.threads,
        "objects": [f"{address:#x}" for address in found.objects],
        "sites": found.sites,
        "ts_ns": found.ts_ns,
        "message": found.message,
        "pid": found.pid,
        "object_names": found.names,
        "count": found.count,
        "suspect": found.suspect,
        "events": [
            {
                "ts_ns": event.ts_ns,
                "pid": event.pid,
                "tid": event.tid,
                "text": event.text,
                "site": event.site,
                "stack": list(event.stack),
            }
            for event in found.events
        ],
    }


def findings_rows(findings: Sequence[Finding]) -> Iterator[list[Any]]:
    """Yield the rows of `ptt check --format csv`, the header first."""
    columns = [
        "kind", "severity", "ts_ns", "pid", "threads", "objects", "object_names", "sites", "count",
        "message",
    ]  # fmt: skip
    yield from _joined(columns, [_finding(found) for found in findings])


def _joined(columns: list[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Yield columns of rows, the header first; what is a list is one text."""
    yield columns
    for row in rows:
        cells = (row[column] for column in columns)
        yield [";".join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]


# ---- verify ----


def verify_document(verdict: Verdict) -> shapes.Verify:
    """Return the document of `ptt verify`."""
    return {
        "violations": [_violation(one) for one in verdict.violations],
        "checked": verdict.checked,
        "skipped": verdict.skipped,
        "gaps": verdict.gaps,
    }


def _violation(one: Violation) -> shapes.Violation:
    return {
        "rule": one.rule,
        "severity": cast("shapes.Severity", one.severity),
        "pid": one.pid,
        "threads": one.threads,
        "objects": [f"{one.object:#x}"],
        "object_names": [one.name],
        "kind": one.kind,
        "sites": one.sites,
        "ts_ns": one.ts_ns,
        "message": one.message,
        "count": one.count,
        "events": [
            {
                "ts_ns": event.ts_ns,
                "pid": event.pid,
                "tid": event.tid,
                "event": event.event,
                "object": f"{event.object:#x}",
                "site": event.site,
                "text": event.text,
            }
            for event in one.events
        ],
    }


def verify_rows(verdict: Verdict) -> Iterator[list[Any]]:
    """Yield the rows of `ptt verify --format csv`, the header first."""
    columns = [
        "rule", "severity", "ts_ns", "pid", "threads", "kind", "objects", "object_names", "sites",
        "count", "message",
    ]  # fmt: skip
    yield from _joined(columns, [_violation(one) for one in verdict.violations])


# ---- stat ----


def stat_document(found: Statistics) -> shapes.Stat:
    """Return the document of `ptt stat`."""
    return {
        "events": found.events,
        "lost": found.lost,
        "lost_by_cause": found.lost_by_cause,
        "untraced_processes": found.untraced_processes,
        "duration_ns": found.duration_ns,
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
        "start_unix_ns": found.start_unix_ns,
        "level": found.level,
        "nptl": found.nptl,
        "sched": found.sched,
        "state": found.state,
        "bytes": found.bytes,
        "damage_bytes": found.damage_bytes,
        "processes": [_process(process) for process in found.processes],
        "event_types": found.event_types,
        "objects": [
            {
                "object": f"{item.address:#x}",
                "pid": item.pid,
                "kind": item.kind,
                "name": item.name,
                "events": item.events,
            }
            for item in found.objects
        ],
        "uncovered": uncovered_modules(found.uncovered),
    }


def _process(process: ProcessStat) -> shapes.StatProcess:
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "exe": process.exe,
        "cmdline": process.cmdline,
        "threads": [
            {
                "tid": thread.tid,
                "name": thread.name,
                "events": thread.events,
                "start_ns": thread.start_ns,
                "end_ns": thread.end_ns,
            }
            for thread in process.threads
        ],
    }


def stat_rows(found: Statistics) -> Iterator[list[Any]]:
    """Yield one row a thread and event type, the finest count there is, the header first."""
    yield ["pid", "tid", "thread_name", "event", "events"]
    for process in found.processes:
        for thread in process.threads:
            for event, n in thread.types.items():
                yield [process.pid, thread.tid, thread.name, event, n]


# ---- diff ----


def diff_document(found: Difference, *, by: str, per: str) -> shapes.Diff:
    """Return the document of `ptt diff`.

    Args:
        found: What changed.
        by: What the rows are.
        per: What values were divided by.
    """
    return {
        "by": by,
        "per": per,
        "runs_before": [_run(run) for run in found.before],
        "runs_after": [_run(run) for run in found.after],
        "confidence": found.confidence,
        "enough_runs": found.enough,
        "total": _metrics(found, found.total),
        "rows": [
            {**_label(row, by), "kind": row.kind, "metrics": _metrics(found, row)}
            for row in found.rows
        ],
    }


def _label(row: Row, by: str) -> shapes.DiffLabel:
    if by == "stack":
        return {"stack": [row.label, *row.callers]}
    return {"site": row.label} if by == "site" else {"name": row.label}


def _run(run: Run) -> shapes.DiffRun:
    return {"trace": run.name, "elapsed_ns": run.elapsed_ns}


def _metrics(found: Difference, row: Row) -> dict[str, shapes.DiffMetric]:
    return {
        metric.name: {
            "before": change.mean_before,
            "after": change.mean_after,
            "change_percent": change.percent,
            "chance": change.chance,
            "verdict": cast("shapes.Certainty", found.verdict(change)),
            "values_before": list(change.before),
            "values_after": list(change.after),
        }
        for metric in METRICS
        if (change := row.changes[metric.name]).known and any((*change.before, *change.after))
    }


def diff_rows(found: Difference, *, by: str) -> Iterator[list[Any]]:
    """Yield one row a metric of each row, the total first, the header before that.

    Args:
        found: What changed.
        by: What the rows are.
    """
    yield [
        by if by in {"site", "stack"} else "name",
        "kind",
        "metric",
        "before",
        "after",
        "change_percent",
        "chance",
        "verdict",
    ]
    for row in (found.total, *found.rows):
        for name, metric in _metrics(found, row).items():
            yield [
                "; ".join((row.label, *row.callers)), row.kind, name, metric["before"],
                metric["after"], metric["change_percent"], metric["chance"], metric["verdict"],
            ]  # fmt: skip


# ---- top ----


def top_document(found: LiveContention) -> shapes.Top:
    """Return a snapshot of `ptt top`."""
    return {
        "ts_ns": found.now_ns,
        "since_ns": found.since_ns,
        "running": found.running,
        "lost": found.lost,
        "waiting": found.waiting,
        "unknown_ns": found.unknown_ns,
        "uncovered": uncovered_modules(found.uncovered),
        **_live(found.figures),
        "objects": [_live_object(item) for item in found.objects],
        "threads": [_live_thread(item) for item in found.threads],
        "sites": [_live_site(item) for item in found.sites],
    }


_LIVE = [
    "waits", "wait_ns", "held_ns", "wake_ns",
    "total_waits", "total_wait_ns", "total_held_ns", "total_wake_ns",
]  # fmt: skip
# What a thread waits for has columns of its own.
_WAIT = ["object", "kind", "object_name", "class", "t_ns", "dur_ns", "site", "owner_tid"]
TOP_COLUMNS = {
    "object": ["ts_ns", "object", "pid", "kind", "name", "waiters", "holder_tid", "holder_site",
               "longest_ns", *_LIVE],
    "thread": ["ts_ns", "tid", "pid", "thread_name", *_WAIT, "held", "idle_ns", "wait_caused_ns",
               *_LIVE],
    "site": ["ts_ns", "site", "pid", "kind", "waiters", "wait_caused_ns", *_LIVE],
}  # fmt: skip


def top_rows(found: LiveContention, *, by: str, top: int | None) -> Iterator[list[Any]]:
    """Yield the rows of a snapshot in CSV, whose columns are `TOP_COLUMNS`.

    Args:
        found: The snapshot.
        by: `object`, `thread` or `site`.
        top: How many rows, or None for all.
    """
    for row in _live_rows(found, by, top):
        yield [found.now_ns, *(row[column] for column in TOP_COLUMNS[by][1:])]


def _live_rows(found: LiveContention, by: str, top: int | None) -> Sequence[Mapping[str, Any]]:
    if by == "thread":
        return [_flat(_live_thread(item)) for item in found.threads[:top]]
    if by == "site":
        return [_live_site(item) for item in found.sites[:top]]
    return [_live_object(item) for item in found.objects[:top]]


def _flat(thread: shapes.TopThread) -> dict[str, Any]:
    """Return a thread with the columns of what it waits for."""
    wait: Mapping[str, Any] = thread["waits_for"] or {}
    columns = {name: wait.get(name) for name in _WAIT} | {"object_name": wait.get("name")}
    return {**thread, **columns, "thread_name": thread["name"]}


def _live(figures: LiveFigures) -> shapes.LiveFigures:
    return {
        "waits": figures.waits,
        "wait_ns": figures.wait_ns,
        "held_ns": figures.held_ns,
        "wake_ns": figures.wake_ns,
        "total_waits": figures.total_waits,
        "total_wait_ns": figures.total_wait_ns,
        "total_held_ns": figures.total_held_ns,
        "total_wake_ns": figures.total_wake_ns,
    }


def _live_object(item: LiveObject) -> shapes.TopObject:
    return {
        "object": f"{item.address:#x}",
        "pid": item.pid,
        "kind": item.kind,
        "name": item.name,
        "waiters": item.waiters,
        "holder_tid": _tid(item.holder),
        "holder_site": item.holder_site,
        "longest_ns": item.longest_ns,
        **_live(item.figures),
    }


def _live_thread(item: LiveThread) -> shapes.TopThread:
    return {
        "tid": item.thread.tid,
        "pid": item.thread.pid,
        "name": item.thread.name,
        "waits_for": None if item.wanted is None else _live_wait(item.wanted),
        "held": item.held,
        "idle_ns": item.idle_ns,
        "wait_caused_ns": item.caused_ns,
        **_live(item.figures),
    }


def _live_wait(wait: LiveWait) -> shapes.TopWait:
    return {
        "object": f"{wait.address:#x}",
        "kind": wait.kind,
        "name": wait.name,
        "class": wait.wait_class,
        "t_ns": wait.t_ns,
        "dur_ns": wait.dur_ns,
        "site": wait.site,
        "owner_tid": _tid(wait.owner),
    }


def _live_site(item: LiveSite) -> shapes.TopSite:
    return {
        "site": item.site,
        "pid": item.pid,
        "kind": item.kind,
        "waiters": item.waiters,
        "wait_caused_ns": item.caused_ns,
        **_live(item.figures),
    }
