"""Joins of threads that cannot be joined."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("join-refused", severity="warning")
def join_refused(trace: Trace) -> Iterator[Found]:
    """A join was refused with `EINVAL`.

    The thread is detached, or another thread waits for its end already. The caller continues at
    once, whether the thread has ended or not.
    """
    for fact in trace.facts("join-refused"):
        last, created = fact.steps[-1], fact.first("created")
        other = f" of {last.other}" if last.other_id else ""
        made = f", created{created.at}" if created is not None and created.site else ""
        yield fact.found(
            f"{last.thread} was refused to wait for the end{other}{made}{last.at}: {last.error}"
        )
