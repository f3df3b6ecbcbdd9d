"""Writers that wait for a read-write lock while readers keep taking it."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding
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
        reader, writer = fact.steps
        waited_ns = fact.ts_ns - writer.ts_ns
        if waited_ns >= _LONG_NS:
            yield fact.found(
                f"{writer.thread} waited {duration(waited_ns)} for {writer.object}{writer.at}, "
                f"while readers took it {fact.value} times, the last time {reader.thread}"
                f"{reader.at}"
            )
