"""Condition waits with a mutex that is not held."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("cond-wait-unlocked-mutex", severity="error")
def cond_wait_unlocked_mutex(trace: Trace) -> Iterator[Found]:
    """A thread waited on a condition with a mutex that it did not hold.

    Another thread held the mutex that the wait gave up, or no thread held it.
    """
    for fact in trace.facts("cond-mutex-not-held"):
        yield fact.found(_message, severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    wait = next(step for step in fact.steps if step.what == "cond")
    held = fact.first("took")
    holder = f"{held.thread} held it" if held is not None else "nobody held it"
    return (
        f"{wait.thread} waited on {wait.object}{wait.at} with {wait.mutex}, which it had not "
        f"locked: {holder}{fact.refusal}"
    )
