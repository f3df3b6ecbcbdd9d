"""Reports and findings as documents: the shapes of `--format json`, and the rows of CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.trace.symbols.site import hex_of_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.findings import Finding
    from nptltrace.analysis.report.critical_path import CriticalPath
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
    from nptltrace.analysis.report.naming import ThreadName

__all__ = ["findings_document", "findings_rows", "report_document", "report_rows"]


def report_document(found: Contention, *, by: str) -> dict[str, Any]:
    """Return the document of `ptt report --format json`.

    Args:
        found: The report.
        by: Sites and pairs are in it only when they are asked for.
    """
    document: dict[str, Any] = {
        "elapsed_ns": found.elapsed_ns,
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
        "lost": found.lost,
        **_figures(found.figures),
        "objects": [_object(item) for item in found.objects],
        "threads": [_thread(item) for item in found.threads],
    }
    if by == "site":
        document["sites"] = [_site(item) for item in found.sites]
    if by == "thread,object":
        document["pairs"] = [_pair(item) for item in found.pairs]
    document["never_ended"] = [_open(wait) for wait in found.open_waits]
    document["deadlocks"] = [[_open(wait) for wait in cycle] for cycle in found.deadlocks]
    document["critical_path"] = _path(found.path)
    return document


def report_rows(found: Contention, *, by: str) -> Iterator[list[Any]]:
    """Yield the rows of `ptt report --format csv`, the header first."""
    rows = {
        "object": lambda: [_object(item) for item in found.objects],
        "thread": lambda: [_thread(item) for item in found.threads],
        "site": lambda: [_site(item) for item in found.sites],
        "thread,object": lambda: [_pair(item) for item in found.pairs],
    }[by]()
    columns = _COLUMNS[by] + _FIGURES
    yield columns
    for row in rows:
        yield [row[column] for column in columns]


_FIGURES = [
    "waits", "wait_ns", "held_ns", "wake_ns", "wait_max_ns", "wait_p50_ns", "wait_p99_ns",
    "idle_waits", "idle_ns", "join_waits", "join_ns", "timeout_waits", "timeout_ns",
    "cancelled_waits", "cancelled_ns", "holds", "hold_ns", "hold_max_ns",
]  # fmt: skip
_COLUMNS = {
    "object": ["object", "pid", "kind", "name", "first_site", "threads", "max_waiters"],
    "thread": ["tid", "pid", "name", "start_ns", "end_ns", "blocked_ns", "running_ns",
               "wait_caused_ns"],
    "site": ["site", "site_address", "pid", "kind", "wait_caused_ns"],
    "thread,object": ["tid", "pid", "thread_name", "object", "kind", "name", "wait_caused_ns"],
}  # fmt: skip


def _figures(figures: Figures) -> dict[str, Any]:
    found: dict[str, Any] = {
        "waits": figures.waits,
        "wait_ns": figures.wait_ns,
        "held_ns": figures.held_ns,
        "wake_ns": figures.wake_ns,
        "wait_max_ns": figures.wait_max_ns,
        "wait_p50_ns": figures.wait_p50_ns,
        "wait_p99_ns": figures.wait_p99_ns,
    }
    for name, ns in figures.other_ns.items():
        found[f"{name}_waits"] = figures.other_waits[name]
        found[f"{name}_ns"] = ns
    found |= {
        "holds": figures.holds,
        "hold_ns": figures.hold_ns,
        "hold_max_ns": figures.hold_max_ns,
    }
    return found


def _blame(blame: Blame, *, waker: bool) -> dict[str, Any]:
    thread = blame.thread
    found: dict[str, Any] = {
        "tid": _tid(thread),
        "pid": None if thread is None else thread.pid,
        "name": "" if thread is None else thread.name,
        "site": blame.site,
    }
    if waker:
        return found | {"waits": blame.count, "wait_ns": blame.wait_caused_ns}
    return found | {"wait_caused_ns": blame.wait_caused_ns}


def _object(item: ObjectFigures) -> dict[str, Any]:
    return {
        "object": f"{item.address:#x}",
        "pid": item.pid,
        "kind": item.kind,
        "name": item.name,
        "first_site": item.first_site,
        "generations": item.generations,
        "threads": item.threads,
        "max_waiters": item.max_waiters,
        "wasted_signals": item.wasted_signals,
        **_figures(item.figures),
        "blamed": [_blame(blame, waker=False) for blame in item.blamed],
        "wakers": [_blame(blame, waker=True) for blame in item.wakers],
    }


def _tid(thread: ThreadName | None) -> int | None:
    return None if thread is None else thread.tid


def _thread(item: ThreadFigures) -> dict[str, Any]:
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
        "waited_for": [
            {
                "object": cause.object,
                "kind": cause.kind,
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


def _site(item: SiteFigures) -> dict[str, Any]:
    return {
        "site": item.site,
        "site_address": hex_of_site(item.address),
        "pid": item.pid,
        "kind": item.kind,
        "wait_caused_ns": item.wait_caused_ns,
        **_figures(item.figures),
    }


def _pair(item: PairFigures) -> dict[str, Any]:
    return {
        "tid": item.thread.tid,
        "pid": item.thread.pid,
        "thread_name": item.thread.name,
        "object": f"{item.address:#x}",
        "kind": item.kind,
        "name": item.name,
        "wait_caused_ns": item.wait_caused_ns,
        **_figures(item.figures),
    }


def _open(wait: OpenWait) -> dict[str, Any]:
    return {
        "tid": wait.thread.tid,
        "pid": wait.thread.pid,
        "thread_name": wait.thread.name,
        "object": f"{wait.address:#x}",
        "kind": wait.kind,
        "name": wait.name,
        "class": wait.wait_class,
        "since_ns": wait.since_ns,
        "dur_ns": wait.dur_ns,
        "site": wait.site,
        "owner_tid": _tid(wait.owner),
        "owner_site": wait.owner_site,
    }


def _path(path: CriticalPath) -> dict[str, Any]:
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
                "wake_ns": part.wake_ns,
                "wait_ns": part.wait_ns,
            }
            for part in path.threads
        ],
        "links": [
            {"object": link.object, "kind": link.kind, "count": link.count, "wake_ns": link.wake_ns}
            for link in path.links
        ],
    }


# ---- findings ----


def findings_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the document of `ptt check --format json`."""
    return {"findings": [_finding(found) for found in findings]}


def _finding(found: Finding) -> dict[str, Any]:
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
            }
            for event in found.events
        ],
    }


def findings_rows(findings: Sequence[Finding]) -> Iterator[list[Any]]:
    """Yield the rows of `ptt check --format csv`, the header first."""
    columns = [
        "kind",
        "severity",
        "ts_ns",
        "pid",
        "threads",
        "objects",
        "sites",
        "count",
        "message",
    ]
    yield columns
    for found in findings:
        row = _finding(found)
        for column in ("threads", "objects", "sites"):
            row[column] = ";".join(map(str, row[column]))
        yield [row[column] for column in columns]
