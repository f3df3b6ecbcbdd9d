"""Threads that nobody joins."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("thread-leak", severity="warning")
def thread_leak(trace: Trace) -> Iterator[Found]:
    """A thread ended, and was neither joined nor detached.

    This is reported only if the program ended by itself: a program that was killed might have
    joined the thread later.
    """
    for fact in trace.facts("end-unjoined"):
        created = fact.steps[0]
        yield fact.found(
            f"{created.other}, created{created.at}, ended and was neither joined nor detached"
        )
