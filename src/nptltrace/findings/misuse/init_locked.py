"""Locks that are initialized while they are held."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("init-locked", severity="error")
def init_locked(trace: Trace) -> Iterator[Found]:
    """A thread initialized a lock that a thread held.

    The lock is free from then on. So two threads can be in the critical section, and a thread that
    waits for the lock may never wake up. If memory is freed while a lock in it is held, and another
    lock is initialized there, that counts as well.
    """
    for fact in trace.facts("init-in-use"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    held, last, wait = fact.steps[0], fact.steps[-1], fact.first("waits")
    own = held.thread_id == last.thread_id
    holder = f"that thread held the {held.kind}" if own else f"{held.thread} held it"
    waited = f", and {wait.thread} waited for it{wait.at}" if wait is not None else ""
    return f"{last.thread} initialized {last.object}{last.at} while {holder}{held.taken}{waited}"
