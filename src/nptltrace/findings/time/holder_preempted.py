"""Threads that lose the processor while they hold a lock that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_LONG_NS = 50_000_000
_OFTEN = 20
# A thread that waits for a spin lock takes a processor from threads that could run.
_SPINNING_NS = 10_000_000
_SPINNING_OFTEN = 5


@finding("holder-preempted", severity="warning")
def holder_preempted(trace: Trace) -> Iterator[Found]:
    """A thread held a lock and could have run, had no processor, and others waited for the lock.

    They waited 50 ms or longer at a time, or 20 times for 1 ms or longer. A shorter hold, threads
    pinned to other processors, or a longer time slice would help; another lock would not. For a
    spin lock, the bound is 10 ms, or 5 times: there, a lock with sleeping waiters would help. The
    trace must have readings of the scheduler (`"sched"` of `ptt stat`). Of all holds that began at
    one call site, the longest time is reported.
    """
    for fact in trace.facts("hold-preempted"):
        spins = fact.steps[0].kind == "spin lock"
        long_ns = _SPINNING_NS if spins else _LONG_NS
        if fact.value < long_ns and fact.count < (_SPINNING_OFTEN if spins else _OFTEN):
            continue
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    held, other = fact.steps
    waited = "spun" if held.kind == "spin lock" else "waited"
    often = f", {fact.count} times for 1 ms or longer" if fact.count > 1 else ""
    return (
        f"{held.thread} held {held.object}{held.taken}, and had no processor, although it "
        f"could have run, while {other.thread} {waited} {duration(fact.value)} for it{often}"
    )
