"""Sentences that several kinds share: what each blocked thread waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.findings.facts import Step

__all__ = ["blocked"]


def blocked(steps: Sequence[Step]) -> list[str]:
    """Return what each thread waits for, and what it has that others want."""
    parts = []
    held: Step | None = None
    for step in steps:
        if step.what == "took":
            held = step
            continue
        own = held is not None and held.thread_id == step.thread_id
        holds = f"holds {held.object} and " if held is not None and own else ""
        by = f", held by {step.other}" if step.what == "waits" and step.other_id else ""
        parts.append(f"{step.thread} {holds}{step.text}{step.at}{by}")
        held = None
    return parts
