"""Objects that are destroyed while they are in use."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


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
        last = fact.steps[-1]
        held, wait = fact.first("took"), fact.first("cond", "waits")
        if held is not None:
            holder = "it" if held.thread_id == last.thread_id else held.thread
            why = f"while {holder} held it{held.taken}"
        elif wait is not None:
            why = f"while {wait.thread} was waiting on it{wait.at}"
        else:
            why = "while it was in use"
        yield fact.found(
            f"{last.thread} destroyed {last.object}{last.at} {why}{fact.refusal}",
            severity="warning" if fact.harmless else None,
        )
