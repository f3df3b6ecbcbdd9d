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
    """Yield the number of findings by kind, and sentences about parts that are not covered.

    Args:
        findings: The findings.
        name: The traces.
        unseen: Sentences about parts of the program that findings do not cover.
    """
    counts: dict[str, int] = {}
    for item in findings:
        counts[item.kind] = counts.get(item.kind, 0) + 1
    many = f"{len(findings)} {plural(len(findings), 'finding')}: "
    many += ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    if not findings:
        many = "nothing found in what is covered" if unseen else "nothing found"
    yield f"{name}: {many}"
    for sentence in unseen:
        yield from wrap(f"not covered: {sentence}", "  ", "  ")


def finding(item: Finding, *, stacks: bool = False) -> Iterator[str]:
    """Yield the lines of a finding, with call stacks if `stacks` is set, and an empty line."""
    times = f", {item.count:,} times" if item.count > 1 else ""
    yield f"{item.severity}: {item.kind} at {seconds(item.ts_ns)} in process {item.pid}{times}"
    yield from wrap(item.title[:1].upper() + item.title[1:] + ".", "  ", "  ")
    width = max((len(event.thread) for event in item.events), default=0)
    for event in sorted(item.events, key=lambda e: e.ts_ns):
        text = f"{event.thread:<{width}}  {event.text}"
        time = f"    {seconds(event.ts_ns):>14}  "
        yield from folded(time, text, event.site, width=columns(), indent=len(time) + 2)
        if stacks:
            yield from (f"{' ' * (len(time) + 4)}{frame}" for frame in event.stack[1:])
    if not item.events:
        for site in item.sites:
            yield f"    at {site}"
    yield ""
