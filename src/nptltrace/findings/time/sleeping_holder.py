"""Threads that sleep while they hold a lock that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_LONG_NS = 10_000_000
_LONG_SUM_NS = 100_000_000


@finding("sleeping-holder", severity="warning")
def sleeping_holder(trace: Trace) -> Iterator[Found]:
    """A thread slept while it held a lock, and others waited for the lock meanwhile.

    They waited 10 ms or longer at a time, or 100 ms in all for holds that began at one call site.
    Waits of less than 1 ms do not count.

    The thread slept in a system call, such as `nanosleep`, `poll` or `read`, or for a page of a
    file, and not in a wait for another lock, a condition or a thread. Calls of the domain `sys` are
    named. For other calls, the trace shows the sleep only if it has readings of the scheduler
    (`"sched"` of `ptt stat`). Of all holds that began at one call site, the longest sleep is
    reported. A semaphore that is used as a lock counts as a lock, and so do the locks of Python up
    to 3.13.

    The holder of a `Mutex` of Rust is known only if the holder waited for the mutex before. Such
    holds count by the call site where they end.
    """
    for fact in trace.facts("hold-asleep"):
        if fact.value < _LONG_NS and fact.total < _LONG_SUM_NS:
            continue
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    often = f", and {duration(fact.total)} in {fact.count} sleeps" if fact.count > 1 else ""
    held, other = fact.steps[0], fact.steps[-1]
    call = fact.first("slept")
    how = f"{call.text}{call.at}" if call else "slept"
    return (
        f"{held.thread} {how} while it held {held.object}{held.taken}, and {other.thread} "
        f"waited {duration(fact.value)} for it meanwhile{often}"
    )
