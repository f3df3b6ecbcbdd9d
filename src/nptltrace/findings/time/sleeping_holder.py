"""Threads that sleep with a lock in hand that others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.findings.kind import finding
from nptltrace.findings.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.findings.facts import Found, Trace

_LONG_NS = 10_000_000


@finding("sleeping-holder", severity="warning")
def sleeping_holder(trace: Trace) -> Iterator[Found]:
    """A thread slept while it held a lock, and others waited 10 ms or longer for it meanwhile.

    It slept in a system call, such as `nanosleep`, `poll` or `read`, or for a page of a file: not
    in a wait for another lock, a condition or a thread. Calls of the domain `sys` are named;
    of others the trace says that its thread slept only if it has readings of the scheduler
    (`"sched"` of `ptt stat`). Of all holds that began at one call site the longest sleep is
    reported.
    """
    for fact in trace.facts("hold-asleep"):
        if fact.value < _LONG_NS:
            continue
        held, other = fact.steps[0], fact.steps[-1]
        call = fact.first("slept")
        how = f"{call.text}{call.at}" if call else "slept"
        yield fact.found(
            f"{held.thread} {how} while it held {held.object}, taken{held.at}, and {other.thread} "
            f"waited {duration(fact.value)} for it meanwhile"
        )
