"""Objects that are used after they were destroyed."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("use-after-destroy", severity="error")
def use_after_destroy(trace: Trace) -> Iterator[Found]:
    """A thread used an object that had been destroyed.

    A destroyed mutex refuses to be used (`EINVAL`). Other objects do not refuse. For them, a use is
    reported only in static data, where no other object can lie. A condition, a rwlock or a barrier
    there may have been initialized again without a call, as C++ constructs a
    `std::condition_variable`. Such uses are left out and counted on standard error; `--suspects`
    shows them.
    """
    for fact in trace.facts("use-of-destroyed"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    last, gone = fact.steps[-1], fact.first("destroyed")
    by = f", which {gone.thread} had destroyed{gone.at}" if gone is not None else ""
    return f"{last.thread} used {last.object}{last.at}{by or ' once destroyed'}"
