"""Threads that nobody joins."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("thread-leak", severity="warning")
def thread_leak(trace: Trace) -> Iterator[Found]:
    """A thread ended, and was neither joined nor detached.

    It counts where the program ended by itself: what a program that was killed would have come to,
    the trace does not say.
    """
    for fact in trace.facts("end-unjoined"):
        created = fact.steps[0]
        yield fact.found(
            f"{created.other}, created{created.at}, ended and was neither joined nor detached"
        )
