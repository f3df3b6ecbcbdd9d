"""Joins of threads that cannot be joined."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("join-refused", severity="warning")
def join_refused(trace: Trace) -> Iterator[Found]:
    """A join was refused with `EINVAL`.

    The thread is detached, or another thread waits for its end already. The caller continues at
    once, whether the thread has ended or not.
    """
    for fact in trace.facts("join-refused"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    last, created = fact.steps[-1], fact.first("created")
    other = last.other if last.other_id else "a thread"
    made = f", created{created.at}," if created is not None and created.site else ""
    return (
        f"{last.thread} asked for the end of {other}{made}{last.at}, and was refused: {last.error}"
    )
