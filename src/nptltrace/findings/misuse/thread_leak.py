"""Threads that nobody joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.findings.kind import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.findings.facts import Found, Trace


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
