"""Releases of locks that another thread holds."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("unlock-not-owner", severity="error")
def unlock_not_owner(trace: Trace) -> Iterator[Found]:
    """A thread released a lock that another thread held.

    The lock is a mutex, rwlock or spin lock. The trace must have the events of the thread from its
    beginning. A refusal with `EPERM` is a warning, because the program knows.
    """
    for fact in trace.facts("release-of-others"):
        yield fact.found(_message, severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    held, last = fact.steps[0], fact.steps[-1]
    return f"{last.thread} unlocked {last.object}{last.at}, which {held.thread} held{fact.refusal}"
