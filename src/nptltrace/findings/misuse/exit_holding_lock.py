"""Threads that end while they hold a lock."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("exit-holding-lock", severity="error")
def exit_holding_lock(trace: Trace) -> Iterator[Found]:
    """A thread ended while it held a lock, or its process did, and others ask for the lock.

    Robust mutexes are not reported: the library informs their next owner. A *program* may end while
    its threads hold locks, unless a thread of another process waits for such a lock ever after. A
    detached thread may keep an object to the end that other threads used before it and no thread
    asks for any more: virtual machines stop their threads in this way when they end.

    A semaphore that begins with one unit counts as a lock if the threads that took it before have
    posted it, and no other thread has. It also counts if no thread is left that could post it.
    """
    for fact in trace.facts("end-with-hold"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    held, _, *waits = fact.steps
    text = f"{held.thread} ended while it held {held.object}{held.taken}"
    return text + "".join(f"; {wait.thread} waits for it{wait.at} ever after" for wait in waits)
