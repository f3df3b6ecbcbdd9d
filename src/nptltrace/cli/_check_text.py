"""Findings as text, JSON and CSV."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from nptltrace.cli.stat import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.findings import Finding

__all__ = ["as_json", "as_rows", "finding", "lines", "summary"]

_WIDTH = 100


def lines(findings: Sequence[Finding], name: str) -> Iterator[str]:
    """Yield the lines of all findings.

    Args:
        findings: What was found.
        name: What it is about.
    """
    for found in findings:
        yield from finding(found)
    yield summary(findings, name)


def summary(findings: Sequence[Finding], name: str) -> str:
    """Return how many findings there are of which kinds, as a line."""
    if not findings:
        return f"{name}: nothing found"
    counts: dict[str, int] = {}
    for found in findings:
        counts[found.kind] = counts.get(found.kind, 0) + 1
    many = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    return f"{name}: {many}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))


def finding(found: Finding) -> Iterator[str]:
    """Yield the lines of one finding, an empty one last."""
    times = f", {found.count:,} times" if found.count > 1 else ""
    yield f"{found.severity}: {found.kind} at {seconds(found.ts_ns)} in process {found.pid}{times}"
    yield from _wrap(found.message[:1].upper() + found.message[1:] + ".", "  ")
    width = max((len(event.thread) for event in found.events), default=0)
    for event in sorted(found.events, key=lambda e: e.ts_ns):
        text = f"{event.thread:<{width}}  {event.text}"
        yield f"    {seconds(event.ts_ns):>14}  {text}" + (
            f"  at {event.site}" if event.site else ""
        )
    yield ""


def _wrap(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the document of `--format json`."""
    return {"findings": [_object(found) for found in findings]}


def _object(found: Finding) -> dict[str, Any]:
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


def as_rows(findings: Sequence[Finding]) -> Iterator[list[Any]]:
    """Yield the rows of `--format csv`, the header first."""
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
        row = _object(found)
        for column in ("threads", "objects", "sites"):
            row[column] = ";".join(map(str, row[column]))
        yield [row[column] for column in columns]
