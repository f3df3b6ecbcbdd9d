"""Writers that wait for a read-write lock while readers keep taking it."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import duration

_LONG_NS = 20_000_000


@finding("writer-starvation", severity="warning")
def writer_starvation(trace: Trace) -> Iterator[Found]:
    """Readers kept a writer from a read-write lock, although they asked for the lock later.

    The writer waited 20 ms or longer. Meanwhile, other threads took the lock for reading 100 times
    or more, each at once. By default, read-write locks of glibc prefer readers: as long as readers
    overlap, a writer has no turn. If a lock is initialized with
    `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, readers wait behind the writer; see
    `pthread_rwlockattr_setkind_np(3)`. For each lock and call site of a writer, the wait with the
    most reads is reported. A reader that takes the lock again does not count.
    """
    for fact in trace.facts("writer-overtaken"):
        if fact.ts_ns - fact.steps[1].ts_ns >= _LONG_NS:
            yield fact.found(_message)


def _message(fact: Fact) -> str:
    reader, writer = fact.steps
    return (
        f"{writer.thread} waited {duration(fact.ts_ns - writer.ts_ns)} for {writer.object}"
        f"{writer.at}, while readers took it {fact.value} times, the last time {reader.thread}"
        f"{reader.at}"
    )
