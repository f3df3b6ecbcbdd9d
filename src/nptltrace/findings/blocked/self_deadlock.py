"""Threads that wait for themselves."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("self-deadlock", severity="error")
def self_deadlock(trace: Trace) -> Iterator[Found]:
    """A thread waits for something that it has itself.

    The thread asks for a mutex, spin lock or `once` that it has, or asks for writing for a rwlock
    that it holds for reading. If the lock refused with `EDEADLK`, that is a warning, because the
    program knows. Other misuses of an error-checking lock that the lock refused are warnings too.

    A semaphore of value 1 counts as a lock, and so do the locks of Python up to 3.13. It is no
    proof that a thread took the semaphore and waits for it: another thread may be about to post it.
    So the thread must have posted this semaphore before, or every other thread of the process must
    have ended or be blocked. Two cases are not reported. In the first, the stack shows that the
    thread waits for work (`Queue.get`, `Event.wait`). In the second, another thread has posted a
    semaphore that was made at the same line.
    """
    for fact in trace.facts("wait-for-self"):
        yield fact.found(_message, severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    last, taken = fact.steps[-1], fact.first("took")
    where = taken.taken if taken is not None else ""
    if fact.refused and last.address:
        return (
            f"{last.thread} locks {last.object} again{last.at}, which it holds already{where}: "
            f"refused with {last.error}"
        )
    if fact.refused:
        return f"{last.thread} waits for its own end{last.at}: refused with {last.error}"
    if last.kind == "thread":
        return f"{last.thread} waits for its own end{last.at}"
    return f"{last.thread} {last.text}{last.at}, which it holds itself{where}"
