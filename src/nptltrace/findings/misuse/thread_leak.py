"""Threads that nobody joins."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("thread-leak", severity="warning")
def thread_leak(trace: Trace) -> Iterator[Found]:
    """A thread ended, and was neither joined nor detached.

    This is reported only if the program ended by itself: a program that was killed might have
    joined the thread later.
    """
    for fact in trace.facts("end-unjoined"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    created = fact.steps[0]
    made = f", created{created.at}," if created.site else ""
    return f"{created.other}{made} ended and was neither joined nor detached"
