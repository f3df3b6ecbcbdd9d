"""Threads that are created for less work than it takes to create them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nptltrace.findings import Event, Found, Trace, finding
from nptltrace.findings.words import duration

_MANY = 5_000
_SHORT_NS = 100_000
_KEYS = ["process", "pid", "creator_tid", "create_stack"]


@finding("thread-churn", severity="warning", tables=True)
def thread_churn(trace: Trace) -> Iterator[Found]:
    """A thread created thread after thread, each of them for less work than a thread costs.

    It created 5,000 or more at one call site that lived for less than 100 us each, and no more than
    that many there that lived longer. Threads that stay and take their work from a queue would
    save the time that it takes to create them and to wait for their end.
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
        yield Found(
            f"{creator} created {created} threads{site and f' at {site}'}, {short} of which lived "
            f"for less than {duration(_SHORT_NS)}: threads that stay would be cheaper",
            ts_ns,
            row["process"],
            threads=[tid],
            sites=[site] if site else [],
            events=[Event(ts_ns, row["pid"], tid, creator, "created the first of them", site)],
        )


def _created_together(trace: Trace) -> list[dict[str, Any]]:
    """Return how many threads came from each call site, and how many of them lived briefly."""
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
    """Return where threads were created, as text; empty when that is not known."""
    stacks = trace.table("stacks", ["stack_id", "site_id"]).to_pylist()
    sites = trace.table("sites", ["site_id", "site"]).to_pylist()
    site_of = {stack["stack_id"]: stack["site_id"] for stack in stacks}
    names: dict[str, str] = {site["site_id"]: site["site"] for site in sites}
    return names.get(site_of.get(row["create_stack"], ""), "")
