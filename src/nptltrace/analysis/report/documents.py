"""Results as JSON documents and rows of CSV. `catalog/documents.toml` declares the shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from nptltrace.analysis.report.metrics import METRICS
from nptltrace.analysis.vocabulary.document_fields import FIELDS
from nptltrace.trace.code.call_site import hex_of_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nptltrace.analysis.findings import Finding
    from nptltrace.analysis.report.diff import Difference, Row
    from nptltrace.analysis.report.figures import Contention
    from nptltrace.analysis.report.live_contention import LiveContention
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.report.stacks.trees import ReportStacks
    from nptltrace.analysis.verify import Verdict, Violation
    from nptltrace.analysis.vocabulary import document_types as shapes
    from nptltrace.trace.statistics import Statistics

__all__ = [
    "TOP_COLUMNS", "diff_document", "diff_rows", "findings_document", "findings_rows",
    "report_document", "report_rows", "stat_document", "stat_rows", "top_document", "top_rows",
    "uncovered_modules", "verify_document", "verify_rows",
]  # fmt: skip


def _built(shape: str, item: Any) -> dict[str, Any]:
    """Return an object of a shape, filled from the attributes that `document_fields` names."""
    fields: dict[str, Any] = {}
    for name, path, how, depth, none in FIELDS[shape]:
        value = item
        for part in path:
            value = value[part] if isinstance(value, dict) else getattr(value, part)
            if value is None:
                break
        if not name:
            fields |= _built(how, value)
        else:
            fields[name] = none if value is None else _written(value, how, depth)
    return fields


def _written(value: Any, how: str, depth: int) -> Any:
    if depth:
        return [_written(part, how, depth - 1) for part in value]
    return _HOW[how](value) if how in _HOW else _built(how, value)


def _uncovered(module: Mapping[str, Any]) -> shapes.Uncovered:
    return {"module": str(module.get("module", "")), "why": str(module.get("why", ""))}


_HOW: dict[str, Callable[[Any], Any]] = {
    "plain": lambda value: value,
    "hex": "{:#x}".format,
    "site": hex_of_site,
    "list": list,
    "dict": dict,
    "Uncovered": _uncovered,
}


def _all_built(shape: str, items: Iterable[Any]) -> list[Any]:
    return [_built(shape, item) for item in items]


# ---- report ----


def report_document(
    report: Contention, *, by: str, stacks: ReportStacks | None = None
) -> shapes.Report:
    """Return the document of `ptt report`.

    Args:
        report: The report.
        by: The subject of the rows. The document has `sites` or `pairs` if they are the subject.
        stacks: The call stacks; None to leave them out.
    """
    parts: shapes.ReportParts = {}
    if by == "site":
        parts["sites"] = _all_built("ReportSite", report.sites)
    if by == "thread,object":
        parts["pairs"] = _all_built("ReportPair", report.pairs)
    if stacks is not None:
        parts["stacks"] = _stacks(stacks)
    document = {
        "elapsed_ns": report.elapsed_ns,
        "first_ns": report.first_ns,
        "last_ns": report.last_ns,
        "lost": report.lost,
        **_built("Figures", report.figures),
        "objects": _all_built("ReportObject", report.objects),
        "threads": _all_built("ReportThread", report.threads),
        **parts,
        "never_ended": _all_built("OpenWait", report.open_waits),
        "deadlocks": [_all_built("OpenWait", cycle) for cycle in report.deadlocks],
        "critical_path": _built("CriticalPath", report.path),
        "uncovered": uncovered_modules(report.uncovered),
    }
    return cast("shapes.Report", document)


def report_rows(
    report: Contention, *, by: str, stacks: ReportStacks | None = None
) -> Iterator[list[Any]]:
    """Yield the rows of `ptt report --format csv`, the header first."""
    if stacks is not None:
        yield ["stack", *_STACK_COLUMNS[stacks.measure]]
        yield from (["; ".join(stack.frames), stack.count, stack.ns] for stack in stacks.stacks)
        return
    columns = _COLUMNS[by] + _FIGURES
    yield columns
    shape, attribute = _SHAPES[by]
    for item in getattr(report, attribute):
        row = _built(shape, item)
        yield [row[column] for column in columns]


# The shape of a row by its subject, and the attribute of `Contention` with the rows.
_SHAPES = {
    "object": ("ReportObject", "objects"),
    "thread": ("ReportThread", "threads"),
    "site": ("ReportSite", "sites"),
    "thread,object": ("ReportPair", "pairs"),
}
_FIGURES = [name for name, *_ in FIELDS["Figures"]]
_COLUMNS = {
    "object": ["object", "pid", "kind", "name", "init_site", "first_site", "threads",
               "max_waiters"],
    "thread": ["tid", "pid", "name", "start_ns", "end_ns", "blocked_ns", "running_ns",
               "wait_caused_ns"],
    "site": ["site", "site_address", "pid", "kind", "wait_caused_ns"],
    "thread,object": ["tid", "pid", "thread_name", "object", "kind", "object_name",
                      "wait_caused_ns"],
}  # fmt: skip


# The columns of count and time, by measure.
_STACK_COLUMNS: dict[StackMeasure, tuple[str, str]] = {
    "waits": ("waits", "wait_ns"),
    "holders": ("waits", "wait_caused_ns"),
    "holds": ("holds", "hold_ns"),
    "idle": ("idle_waits", "idle_ns"),
    "inside": ("parts", "waited_ns"),
}


def _stacks(stacks: ReportStacks) -> list[shapes.ReportStack]:
    count, ns = _STACK_COLUMNS[stacks.measure]
    return [
        cast("shapes.ReportStack", {"stack": list(stack.frames), count: stack.count, ns: stack.ns})
        for stack in stacks.stacks
    ]


# ---- check ----


def findings_document(
    findings: Sequence[Finding], uncovered: Sequence[Mapping[str, Any]], futex_waits: int
) -> shapes.Check:
    """Return the document of `ptt check`.

    Args:
        findings: The findings.
        uncovered: Modules that the trace does not cover completely: `Traceset.uncovered`.
        futex_waits: Waits for futexes of unknown purpose; PTT does not judge them.
    """
    return {
        "findings": _all_built("Finding", findings),
        "uncovered": uncovered_modules(uncovered),
        "futex_waits": futex_waits,
    }


def uncovered_modules(modules: Sequence[Mapping[str, Any]]) -> list[shapes.Uncovered]:
    """Return the modules that a trace does not cover completely, as in documents."""
    return [_uncovered(item) for item in modules]


def findings_rows(findings: Sequence[Finding]) -> Iterator[list[Any]]:
    """Yield the rows of `ptt check --format csv`, the header first."""
    columns = [
        "kind", "severity", "ts_ns", "pid", "threads", "objects", "object_names", "sites", "count",
        "message",
    ]  # fmt: skip
    yield from _joined(columns, _all_built("Finding", findings))


def _joined(columns: list[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Yield columns of rows, the header first. A list becomes one text."""
    yield columns
    for row in rows:
        cells = (row[column] for column in columns)
        yield [";".join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]


# ---- verify ----


def verify_document(verdict: Verdict) -> shapes.Verify:
    """Return the document of `ptt verify`."""
    return {
        "violations": [_violation(violation) for violation in verdict.violations],
        "checked": verdict.checked,
        "skipped": verdict.skipped,
        "gaps": verdict.gaps,
    }


def _violation(violation: Violation) -> shapes.Violation:
    return {
        "rule": violation.rule,
        "severity": cast("shapes.Severity", violation.severity),
        "pid": violation.pid,
        "threads": violation.threads,
        "objects": [f"{violation.object:#x}"],
        "object_names": [violation.name],
        "kind": violation.kind,
        "sites": violation.sites,
        "ts_ns": violation.ts_ns,
        "message": violation.message,
        "count": violation.count,
        "events": _all_built("ViolationEvent", violation.events),
    }


def verify_rows(verdict: Verdict) -> Iterator[list[Any]]:
    """Yield the rows of `ptt verify --format csv`, the header first."""
    columns = [
        "rule", "severity", "ts_ns", "pid", "threads", "kind", "objects", "object_names", "sites",
        "count", "message",
    ]  # fmt: skip
    yield from _joined(columns, [_violation(violation) for violation in verdict.violations])


# ---- stat ----


def stat_document(stat: Statistics, most: int | None = None) -> shapes.Stat:
    """Return the document of `ptt stat`.

    Args:
        stat: The figures.
        most: List at most this many threads of each process, the busiest; None for all.
    """
    document = cast("shapes.Stat", _built("Stat", stat))
    for process, part in zip(stat.processes, document["processes"], strict=True):
        part["threads"] = _all_built("StatThread", process.busiest(most))
    return document


def stat_rows(stat: Statistics, most: int | None = None) -> Iterator[list[Any]]:
    """Yield a row for each thread and event type, the header first.

    Args:
        stat: The figures.
        most: Give at most this many threads of each process, the busiest; None for all.
    """
    yield ["pid", "tid", "thread_name", "event", "events"]
    for process in stat.processes:
        for thread in process.busiest(most):
            for event, n in thread.types.items():
                yield [process.pid, thread.tid, thread.name, event, n]


# ---- diff ----


def diff_document(difference: Difference, *, by: str, per: str) -> shapes.Diff:
    """Return the document of `ptt diff`.

    Args:
        difference: The changes.
        by: The subject of the rows.
        per: The unit that the values are divided by.
    """
    return {
        "by": by,
        "per": per,
        "runs_before": _all_built("DiffRun", difference.before),
        "runs_after": _all_built("DiffRun", difference.after),
        "confidence": difference.confidence,
        "enough_runs": difference.enough,
        "total": _metrics(difference, difference.total),
        "rows": [
            {**_label(row, by), "kind": row.kind, "metrics": _metrics(difference, row)}
            for row in difference.rows
        ],
    }


def _label(row: Row, by: str) -> shapes.DiffLabel:
    if by == "stack":
        return {"stack": [row.label, *row.callers]}
    return {"site": row.label} if by == "site" else {"name": row.label}


def _metrics(difference: Difference, row: Row) -> dict[str, shapes.DiffMetric]:
    return {
        metric.name: {
            "before": change.mean_before,
            "after": change.mean_after,
            "change_percent": change.percent,
            "chance": change.chance,
            "verdict": cast("shapes.Certainty", difference.verdict(change)),
            "values_before": list(change.before),
            "values_after": list(change.after),
        }
        for metric in METRICS
        if (change := row.changes[metric.name]).known and any((*change.before, *change.after))
    }


def diff_rows(difference: Difference, *, by: str) -> Iterator[list[Any]]:
    """Yield a row for each metric of each row, the header first and then the total.

    Args:
        difference: The changes.
        by: The subject of the rows.
    """
    yield [
        by if by in {"site", "stack"} else "name", "kind", "metric", "before", "after",
        "change_percent", "chance", "verdict",
    ]  # fmt: skip
    for row in (difference.total, *difference.rows):
        for name, metric in _metrics(difference, row).items():
            yield [
                "; ".join((row.label, *row.callers)), row.kind, name, metric["before"],
                metric["after"], metric["change_percent"], metric["chance"], metric["verdict"],
            ]  # fmt: skip


# ---- top ----


def top_document(snapshot: LiveContention) -> shapes.Top:
    """Return the document of a snapshot of `ptt top`."""
    return cast("shapes.Top", _built("Top", snapshot))


_LIVE = [name for name, *_ in FIELDS["LiveFigures"]]
# The columns for the current wait of a thread.
_WAIT = ["object", "kind", "object_name", "class", "t_ns", "dur_ns", "site", "owner_tid"]
TOP_COLUMNS = {
    "object": ["ts_ns", "object", "pid", "kind", "name", "waiters", "holder_tid", "holder_site",
               "longest_ns", *_LIVE],
    "thread": ["ts_ns", "tid", "pid", "thread_name", *_WAIT, "held", "idle_ns", "wait_caused_ns",
               *_LIVE],
    "site": ["ts_ns", "site", "pid", "kind", "waiters", "wait_caused_ns", *_LIVE],
}  # fmt: skip


def top_rows(snapshot: LiveContention, *, by: str, top: int | None) -> Iterator[list[Any]]:
    """Yield the rows of a snapshot in CSV, with the columns of `TOP_COLUMNS`.

    Args:
        snapshot: The snapshot.
        by: `object`, `thread` or `site`.
        top: Number of rows, or None for all.
    """
    items: Sequence[Any] = getattr(snapshot, f"{by}s")
    for item in items[:top]:
        row = _built(f"Top{by.capitalize()}", item)
        if by == "thread":
            wait: Mapping[str, Any] = row["waits_for"] or {}
            row |= {name: wait.get(name) for name in _WAIT}
            row |= {"object_name": wait.get("name"), "thread_name": row["name"]}
        yield [snapshot.now_ns, *(row[column] for column in TOP_COLUMNS[by][1:])]
