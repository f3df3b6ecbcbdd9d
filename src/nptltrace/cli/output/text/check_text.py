"""Findings as text, as wide as the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import plural, seconds
from nptltrace.cli.options import columns
from nptltrace.cli.output.text.folding import folded
from nptltrace.cli.output.text.table import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.findings import Finding

__all__ = ["finding", "summary"]


def summary(findings: Sequence[Finding], name: str, unseen: Sequence[str]) -> Iterator[str]:
    """Yield how many findings there are of which kinds, and what was not judged.

    Args:
        findings: What was found.
        name: What it is about.
        unseen: What findings do not judge, a sentence each.
    """
    counts: dict[str, int] = {}
    for found in findings:
        counts[found.kind] = counts.get(found.kind, 0) + 1
    many = f"{len(findings)} {plural(len(findings), 'finding')}: "
    many += ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    if not findings:
        many = "nothing found in what is covered" if unseen else "nothing found"
    yield f"{name}: {many}"
    for sentence in unseen:
        yield from wrap(f"not covered: {sentence}", "  ", "  ")


def finding(found: Finding, *, stacks: bool = False) -> Iterator[str]:
    """Yield the lines of one finding, an empty one last; with its stacks, if they are wanted."""
    times = f", {found.count:,} times" if found.count > 1 else ""
    yield f"{found.severity}: {found.kind} at {seconds(found.ts_ns)} in process {found.pid}{times}"
    yield from wrap(found.message[:1].upper() + found.message[1:] + ".", "  ", "  ")
    width = max((len(event.thread) for event in found.events), default=0)
    for event in sorted(found.events, key=lambda e: e.ts_ns):
        text = f"{event.thread:<{width}}  {event.text}"
        time = f"    {seconds(event.ts_ns):>14}  "
        yield from folded(time, text, event.site, width=columns(), indent=len(time) + 2)
        if stacks:
            yield from (f"{' ' * (len(time) + 4)}{frame}" for frame in event.stack[1:])
    if not found.events:
        for site in found.sites:
            yield f"    at {site}"
    yield ""
