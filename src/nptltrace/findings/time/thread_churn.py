"""Threads with less work than the cost of their creation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nptltrace.findings import Event, Found, Trace, finding
from nptltrace.findings.facts import duration

_MANY = 5_000
_SHORT_NS = 100_000
_KEYS = ["process", "pid", "creator_tid", "create_stack"]


@finding("thread-churn", severity="warning", tables=True)
def thread_churn(trace: Trace) -> Iterator[Found]:
    """A thread created many threads, each for less work than a thread costs.

    At one call site, it created 5,000 threads or more that lived for less than 100 us each, and at
    most as many threads that lived longer. Threads that stay and take their work from a queue would
    save the time to create threads and to wait for their end.
    """
    if trace.thread_count < _MANY:
        return
    if all((ns < _SHORT_NS).sum() < _MANY for ns in trace.lifetimes().values()):
        return
    for row in _created_together(trace):
        created, short = row["short_count"], row["short_sum"]
        if short < _MANY or 2 * short < created:
            continue
        tid, ts_ns, site = row["creator_tid"], row["create_ns_min"], _site(trace, row)
        creator = f"thread {tid}"
        made = f"{creator} created {created} threads"
        why = (
            f"{short} lived for less than {duration(_SHORT_NS)}, so threads that stay would be "
            "cheaper"
        )
        yield Found(
            f"{made}{site and f' at {site}'}: {why}",
            ts_ns,
            row["process"],
            threads=[tid],
            sites=[site] if site else [],
            events=[Event(ts_ns, row["pid"], tid, creator, "created the first of them", site)],
            title=f"{made}: {why}",
        )


def _created_together(trace: Trace) -> list[dict[str, Any]]:
    """Return the number of threads of each creator and call site, and of short-lived threads."""
    import pyarrow.compute as pc

    threads = trace.table("threads", [*_KEYS, "create_ns", "start_ns", "end_ns"])
    known = pc.and_(pc.is_valid(threads["end_ns"]), pc.is_valid(threads["create_stack"]))
    threads = threads.filter(known)
    short = pc.less(pc.subtract(threads["end_ns"], threads["start_ns"]), _SHORT_NS)
    threads = threads.append_column("short", pc.cast(short, "uint32"))
    sums = [("short", "count"), ("short", "sum"), ("create_ns", "min")]
    rows: list[dict[str, Any]] = threads.group_by(_KEYS).aggregate(sums).to_pylist()
    return rows


def _site(trace: Trace, row: Mapping[str, Any]) -> str:
    """Return the call site of the creation of threads, as text; empty if unknown."""
    stacks = trace.table("stacks", ["stack_id", "site_id"]).to_pylist()
    sites = trace.table("sites", ["site_id", "site"]).to_pylist()
    site_of = {stack["stack_id"]: stack["site_id"] for stack in stacks}
    names: dict[str, str] = {site["site_id"]: site["site"] for site in sites}
    return names.get(site_of.get(row["create_stack"], ""), "")
