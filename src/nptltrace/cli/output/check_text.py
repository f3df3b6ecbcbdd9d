"""Findings as text, as wide as the terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nptltrace._plural import plural
from nptltrace.cli.commands.stat import seconds
from nptltrace.cli.options import columns
from nptltrace.cli.output.folding import folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.findings import Finding

__all__ = ["finding", "lines", "summary"]


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
    many = f"{len(findings)} {plural(len(findings), 'finding')}"
    return f"{name}: {many}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))


def finding(found: Finding) -> Iterator[str]:
    """Yield the lines of one finding, an empty one last."""
    times = f", {found.count:,} times" if found.count > 1 else ""
    yield f"{found.severity}: {found.kind} at {seconds(found.ts_ns)} in process {found.pid}{times}"
    yield from _wrap(found.message[:1].upper() + found.message[1:] + ".", "  ")
    width = max((len(event.thread) for event in found.events), default=0)
    for event in sorted(found.events, key=lambda e: e.ts_ns):
        text = f"{event.thread:<{width}}  {event.text}"
        time = f"    {seconds(event.ts_ns):>14}  "
        yield from folded(time, text, event.site, width=columns(), indent=len(time) + 2)
    if not found.events:
        for site in found.sites:
            yield f"    at {site}"
    yield ""


def _wrap(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, columns(), initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
