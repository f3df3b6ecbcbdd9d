"""Threads that try to take a lock again and again, and keep a processor busy."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration


@finding("spinning-trylock", severity="warning")
def spinning_trylock(trace: Trace) -> Iterator[Found]:
    """A thread tried to take a lock again and again, and was refused each time.

    The thread called a function such as `pthread_mutex_trylock` 1000 times in a row or more at one
    call site, in 1 ms or longer, while other threads had the lock. Between the tries, the trace has
    no other event of the thread, and less than 0.2 ms passed on average. A wait for the lock would
    leave the processor to other threads. For each lock and call site, the largest number of tries
    is reported.

    The trace has refused tries only at level 3 (`-l 3`, or `-l mutex=3`). Tries before the thread
    waits for the same lock do not count, nor do tries for a lock that the thread has itself. A
    thread that releases another lock between its tries backs off, and is not reported.
    """
    for fact in trace.facts("tries-refused"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    held, tried = fact.steps
    often = f", the most of {fact.count} times" if fact.count > 1 else ""
    return (
        f"{tried.thread} tried to take {tried.object}{tried.at} {tried.value} times in a row "
        f"in {duration(fact.ts_ns - tried.ts_ns)}{often}, and was refused: {held.thread} held "
        f"it{held.taken}"
    )
