"""Locks of others that are released."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("unlock-not-owner", severity="error")
def unlock_not_owner(trace: Trace) -> Iterator[Found]:
    """A thread released a lock that another thread held.

    A thread whose events are there from its beginning on released a mutex, rwlock or spin lock that
    it did not hold, while another one did. A refusal with `EPERM` counts, too: that is a warning,
    for the program knows.
    """
    for fact in trace.facts("release-of-others"):
        held, last = fact.steps[0], fact.steps[-1]
        message = (
            f"{last.thread} unlocked {last.object}{last.at}, which {held.thread} held{fact.refusal}"
        )
        yield fact.found(message, severity="warning" if fact.harmless else None)
