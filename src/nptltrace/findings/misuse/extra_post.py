"""Semaphores that are used as locks and posted once too often."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("extra-post", severity="warning")
def extra_post(trace: Trace) -> Iterator[Found]:
    """A semaphore that is used as a lock was posted by a thread that had not taken it.

    From then on, two threads can have the semaphore at the same time. Typical causes are a post
    after a wait that failed, and a second post on the way out of a function.

    A semaphore counts as a lock if it was initialized with the value 1, and if each thread that
    took the semaphore posted it before it took it again. The finding needs two threads that had the
    semaphore at the same time, and a value above 1. So hand-overs and jobs are not reported: there,
    threads take the units that other threads post. Posts by threads that never wait for the
    semaphore do not count, nor do semaphores of several processes. A pool looks the same if it
    begins with one unit and its users add units.
    """
    for fact in trace.facts("extra-post"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    post, one, other = fact.steps
    return (
        f"{post.thread} posted {post.object}{post.at} without having taken it: later, "
        f"{one.thread}{one.taken} and {other.thread}{other.taken} had it at the same time"
    )
