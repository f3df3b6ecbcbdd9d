"""Releases of free locks."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("unlock-unlocked", severity="error")
def unlock_unlocked(trace: Trace) -> Iterator[Found]:
    """A thread released a lock that no thread held.

    The rules of `unlock-not-owner` hold here too.
    """
    for fact in trace.facts("release-of-free"):
        yield fact.found(_message, severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    last, released = fact.steps[-1], fact.first("released")
    since = f" since {released.thread} released it{released.at}" if released is not None else ""
    return f"{last.thread} unlocked {last.object}{last.at}, which nobody held{since}{fact.refusal}"
