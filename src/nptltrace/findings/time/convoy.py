"""Locks that threads hand to one another, each thread asleep until its turn."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_LONG_NS = 5_000_000


@finding("convoy", severity="warning")
def convoy(trace: Trace) -> Iterator[Found]:
    """A lock was handed from waiter to waiter, and nobody had it for most of the time.

    The lock was taken 100 times in a row or more, in 5 ms or longer, by a thread that had slept
    until the release, while other threads slept in the queue. It takes longer to wake a thread than
    to use the lock, so the threads continue at the pace of the kernel. It would help to use a lock
    that spins for a moment, or to ask for the lock less often. For each lock, the longest time is
    reported.
    """
    for fact in trace.facts("convoy"):
        if fact.value < _LONG_NS:
            continue
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    passed, free = fact.steps
    return (
        f"{passed.object} was handed to a thread that slept in its queue {passed.value} times "
        f"in a row, the last time by {passed.thread}{passed.at} to {free.thread}: of "
        f"{duration(fact.value)} nobody had it for {duration(free.value)}"
    )
