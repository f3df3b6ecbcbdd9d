"""Threads that wait for threads of lower priority."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration, priority


@finding("priority-inversion", severity="warning")
def priority_inversion(trace: Trace) -> Iterator[Found]:
    """A thread waited for a lock that a thread of lower priority held.

    The waiting thread has a real-time priority and waited a millisecond or more. The lock does not
    lend its holder that priority (`PTHREAD_PRIO_INHERIT`, `PTHREAD_PRIO_PROTECT`).
    """
    for fact in trace.facts("wait-for-lower"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    wait = next(step for step in fact.steps if step.what == "waits")
    low, high = (step.value for step in fact.steps if step.what == "priority")
    return (
        f"{wait.thread} with {priority(high)} waited {duration(fact.value)} for {wait.object}"
        f"{wait.at}, which {wait.other} with {priority(low)} held without "
        "inheriting its priority"
    )
