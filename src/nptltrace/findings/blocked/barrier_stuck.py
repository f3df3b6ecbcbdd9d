"""Barriers that no thread completes."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import listed


@finding("barrier-stuck", severity="error")
def barrier_stuck(trace: Trace) -> Iterator[Found]:
    """Threads wait at a barrier for other threads that will not come.

    The barrier needs more threads than have come. Every thread of the process has ended or is
    blocked. If the barrier is process-shared, this holds for all processes that may share it.
    """
    for fact in trace.facts("barrier-incomplete"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    waits = [step for step in fact.steps if step.what == "barrier"]
    threads = listed(step.thread for step in waits)
    return (
        f"{threads} wait{'s' if len(waits) == 1 else ''} at {waits[0].object}{waits[0].at} for "
        f"ever: {fact.value} of {waits[0].value} will not come"
    )
