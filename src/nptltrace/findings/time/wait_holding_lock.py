"""Threads that wait while they hold a lock that others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_LONG_NS = 10**9


@finding("wait-holding-lock", severity="warning")
def wait_holding_lock(trace: Trace) -> Iterator[Found]:
    """A thread kept a lock while it waited for something else, and others waited for the lock.

    The thread waited on a condition with another mutex, for a semaphore, at a barrier or for the
    end of a thread. Meanwhile, at least one thread waited a second or longer for the lock. The wait
    did end: a wait that never ends is a deadlock or a stuck process.

    A recursive mutex that a thread has taken twice stays locked while the thread waits on a
    condition with it. So no thread that needs the mutex can signal the condition. If a thread
    waited for the mutex meanwhile, this is reported however short the wait is.
    """
    for fact in trace.facts("wait-with-hold"):
        if _takes_back(fact) or fact.value >= _LONG_NS:
            yield fact.found(_message)


def _takes_back(fact: Fact) -> bool:
    """Return whether the thread waited on a condition with the lock itself."""
    held, wait, _ = fact.steps
    return wait.what == "cond" and wait.mutex_address == held.address


def _message(fact: Fact) -> str:
    held, wait, other = fact.steps
    waited = f"{wait.text.replace('waits', 'waited', 1)}{wait.at}"
    meanwhile = f"{other.thread} waited {duration(fact.value)} for it meanwhile"
    if _takes_back(fact):
        first = f", the first time{held.at}" if held.site else ""
        return (
            f"{wait.thread} {waited}, which it had taken more than once{first}: it kept the mutex, "
            f"and {meanwhile}"
        )
    return f"{held.thread} kept {held.object}{held.taken}, while it {waited}, and {meanwhile}"
