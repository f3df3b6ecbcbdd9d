"""Long holds of locks."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration


@finding("long-hold", severity="warning")
def long_hold(trace: Trace) -> Iterator[Found]:
    """A thread held a lock for long, and another thread waited for the lock meanwhile.

    The bound is a second (`--long-hold`). Of all holds that began at one call site, the longest
    hold is reported. A lock that nobody waited for is not reported, however long it was held. A
    hold ends when a condition wait gives the mutex up. Holds that never ended are not reported:
    another finding says why they did not end.
    """
    for fact in trace.facts("long-hold"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    held = fact.steps[0]
    return f"{held.thread} held {held.object} for {duration(fact.value)}{held.taken}"
