"""Objects that are destroyed while they are in use."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("destroy-locked", severity="error")
def destroy_locked(trace: Trace) -> Iterator[Found]:
    """A thread destroyed an object that was in use.

    The object was one of these:

    - a lock that a thread held
    - a condition with a waiting thread that no other thread had woken
    - a semaphore with a thread that waits for it to the end of the trace

    If the library refused with `EBUSY`, that is a warning: the object can be used as before.
    """
    for fact in trace.facts("destroy-in-use"):
        yield fact.found(_message, severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    last = fact.steps[-1]
    held, wait = fact.first("took"), fact.first("cond", "waits")
    if held is not None:
        own = held.thread_id == last.thread_id
        holder = f"that thread held the {held.kind}" if own else f"{held.thread} held it"
        why = f"while {holder}{held.taken}"
    elif wait is not None:
        why = f"while {wait.thread} was waiting on it{wait.at}"
    else:
        why = "while it was in use"
    return f"{last.thread} destroyed {last.object}{last.at} {why}{fact.refusal}"
