"""Time limits of waits that belong to another clock, or were over before the wait began."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_OFTEN = 100


@finding("wrong-clock", severity="warning")
def wrong_clock(trace: Trace) -> Iterator[Found]:
    """A wait for a condition had a time limit that belongs to another clock.

    A condition uses `CLOCK_REALTIME` unless its attributes or the call say `CLOCK_MONOTONIC`. If a
    time of `CLOCK_REALTIME` is given to `CLOCK_MONOTONIC`, it lies decades ahead: the wait does not
    end by itself. The other way round, the limit was over decades ago: the wait ends at once, and a
    loop around it keeps a processor busy. A limit is reported if it is 10 ms to one day ahead by
    the other clock.

    A limit of any clock that was over for more than a day is reported if 100 waits at one place had
    such a limit. A limit in the first second of a clock is a deliberate way not to wait.
    """
    for fact in trace.facts("limit-of-other-clock"):
        yield fact.found(_far_message)
    for fact in trace.facts("limit-over"):
        if fact.value or fact.count >= _OFTEN:
            yield fact.found(_over_message)


def _far_message(fact: Fact) -> str:
    wait = fact.steps[0]
    return (
        f"{wait.thread} waits on {wait.object}{wait.at} until a time of CLOCK_MONOTONIC that "
        f"is decades ahead; by CLOCK_REALTIME, the limit is {duration(fact.value)} ahead"
    )


def _over_message(fact: Fact) -> str:
    wait = fact.steps[0]
    text = f"{wait.thread} waited on {wait.object}{wait.at}"
    if not fact.value:
        return f"{text} with a time limit that was over before the wait began"
    return (
        f"{text} until a time of CLOCK_REALTIME that was over decades ago; by CLOCK_MONOTONIC, "
        f"the limit was {duration(fact.value)} ahead"
    )
