"""Conditions that are waited on with several mutexes."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("cond-two-mutexes", severity="error")
def cond_two_mutexes(trace: Trace) -> Iterator[Found]:
    """Two threads waited on a condition at the same time with different mutexes.

    A waiter that a signal may have woken already does not count. A waiter with a time limit counts
    if it turns out that it was woken.
    """
    for fact in trace.facts("cond-two-mutexes"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    one, two = fact.steps
    return (
        f"{two.thread} waits on {two.object} with {two.mutex}{two.at} while {one.thread} waits "
        f"on it with {one.mutex}{one.at}"
    )
