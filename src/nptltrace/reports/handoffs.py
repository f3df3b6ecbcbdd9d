"""Locks that threads hand to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.reports import report

if TYPE_CHECKING:
    import pyarrow as pa

    from nptltrace.findings.facts import Trace


@report("handoffs", title="Locks that one thread gave to another, the most often first")
def handoffs(trace: Trace) -> pa.Table:
    """Count contended waits by lock, by the thread that ended the wait, and by the waiting thread.

    `wait_ns` is the time of these waits. `wake_ns` is the part after the hand-over: the lock was
    free, and the thread not yet awake.
    """
    return trace.sql("""
        select object_name as lock, waker_name as "from", waker_tid as from_tid,
               thread_name as "to", tid as to_tid, count(*) as times,
               sum(dur_ns)::bigint as wait_ns, sum(wake_ns)::bigint as wake_ns
        from named_waits
        where class = 'contended' and waker_tid is not null
        group by all order by times desc, wait_ns desc, lock, from_tid, to_tid""")
