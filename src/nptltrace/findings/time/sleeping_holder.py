"""Threads that sleep with a lock in hand that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding
from nptltrace.findings.words import duration

_LONG_NS = 10_000_000
_LONG_SUM_NS = 100_000_000


@finding("sleeping-holder", severity="warning")
def sleeping_holder(trace: Trace) -> Iterator[Found]:
    """A thread slept while it held a lock, and others waited for the lock meanwhile.

    They waited 10 ms or longer at a time, or 100 ms in all for holds that began at one call site.

    It slept in a system call, such as `nanosleep`, `poll` or `read`, or for a page of a file: not
    in a wait for another lock, a condition or a thread. Calls of the domain `sys` are named;
    of others the trace says that its thread slept only if it has readings of the scheduler
    (`"sched"` of `ptt stat`). Of all holds that began at one call site the longest sleep is
    reported. Waits of less than 1 ms do not count. A semaphore that is used as a lock counts as a
    lock, and so do those of Python up to 3.13.
    Who holds a `Mutex` of Rust is known only of threads that waited for the mutex before. Such
    holds count by the call site where they end.
    """
    for fact in trace.facts("hold-asleep"):
        if fact.value < _LONG_NS and fact.total < _LONG_SUM_NS:
            continue
        often = f", and {duration(fact.total)} in {fact.count} sleeps" if fact.count > 1 else ""
        held, other = fact.steps[0], fact.steps[-1]
        call = fact.first("slept")
        how = f"{call.text}{call.at}" if call else "slept"
        yield fact.found(
            f"{held.thread} {how} while it held {held.object}{held.taken}, and {other.thread} "
            f"waited {duration(fact.value)} for it meanwhile{often}"
        )
