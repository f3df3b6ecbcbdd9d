"""Findings: what is wrong with what threads did, with the few events that prove it.

The rules are told in the documentation, under "What ptt check accuses".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nptltrace._binding import libptttrack_facts
from nptltrace.analysis._sentences import Teller
from nptltrace.analysis.checker import LONG_HOLD_NS, Checker
from nptltrace.trace.filtered import knows_orders
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from nptltrace.analysis._sentences import Event, Told
    from nptltrace.trace.source import Source
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["KINDS", "SCHEMA", "Finding", "Findings", "find", "findings", "findings_of"]

_KIND_OF = {
    "wait-cycle": "deadlock", "wait-for-self": "self-deadlock",
    "order-cycle": "lock-order-inversion", "signal-missed": "lost-wakeup",
    "release-of-others": "unlock-not-owner", "release-of-free": "unlock-unlocked",
    "destroy-in-use": "destroy-locked", "use-of-destroyed": "use-after-destroy",
    "cond-mutex-not-held": "cond-wait-unlocked-mutex", "cond-two-mutexes": "cond-two-mutexes",
    "end-with-hold": "exit-holding-lock", "end-unjoined": "thread-leak",
    "barrier-incomplete": "barrier-stuck", "long-hold": "long-hold",
    "wait-for-lower": "priority-inversion", "all-blocked": "stuck",
}  # fmt: skip
KINDS = tuple(_KIND_OF.values())
_WARNINGS = {"lock-order-inversion", "thread-leak", "long-hold", "priority-inversion"}

SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("ts_ns", pa.int64(), nullable=False),
        pa.field("process", pa.uint32(), nullable=False),
        pa.field("threads", pa.list_(pa.uint32()), nullable=False),
        pa.field("objects", pa.list_(pa.string()), nullable=False),
        pa.field("sites", pa.list_(pa.string()), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("count", pa.uint64(), nullable=False),
        pa.field(
            "events",
            pa.list_(
                pa.struct(
                    [
                        pa.field("ts_ns", pa.int64()),
                        pa.field("tid", pa.uint32()),
                        pa.field("text", pa.string()),
                        pa.field("site", pa.string()),
                    ]
                )
            ),
            nullable=False,
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: One of `KINDS`.
        severity: `error`, or `warning` for what has done no harm yet.
        ts_ns: When it showed.
        process: Number of the process in the traceset.
        pid: Its process id.
        threads: Kernel thread ids of those who take part.
        objects: Addresses of what it is about.
        names: What those are called.
        sites: Where it happened.
        message: The whole of it in a sentence.
        events: What proves it, in the order of the sentence.
        count: How often it was seen.
        suspect: It may be explained by memory that was used again for another object.
    """

    kind: str
    severity: str
    ts_ns: int
    process: int
    pid: int
    threads: list[int]
    objects: list[int]
    names: list[str]
    sites: list[str]
    message: str
    events: list[Event]
    count: int
    suspect: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check found.

    Attributes:
        findings: The findings, the earliest first.
        lost: Events that are missing.
        partial: What does not stand without the missing ones was left out.
        futex_waits: Waits by system call, for locks of other libraries: they are not judged.
        crowded: How often a lock was asked for while so many were held that orders are not judged.
    """

    findings: list[Finding]
    lost: int
    partial: bool
    futex_waits: int
    crowded: int


def find(
    source: Source, symbols: Symbols | None = None, *, long_hold_ns: int = LONG_HOLD_NS
) -> Findings:
    """Return what is wrong with a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        long_hold_ns: From which time on a lock is held for too long.

    Raises:
        NativeError: Memory is out.
    """
    checker = Checker(source, long_hold_ns)
    checker.read()
    checker.finish()
    source.learn_threads()
    found = findings_of(source, symbols, checker)
    check = checker.check
    return Findings(found, checker.lost, checker.partial, check.futex_waits, check.crowded)


def findings_of(source: Source, symbols: Symbols | None, checker: Checker) -> list[Finding]:
    """Return what a checker has found so far, the earliest first.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        checker: The checker.
    """
    rows = checker.check.table("facts")[1:]
    teller = Teller(source, symbols, checker.check)
    ordered = knows_orders(source)
    found = []
    for row in rows:
        if int(row["flags"]) & libptttrack_facts.DROPPED:
            continue
        kind = _KIND_OF.get(libptttrack_facts.FACTS[int(row["kind"])])
        if kind is None or (kind == "lock-order-inversion" and not ordered):
            continue
        told = teller.tell(kind, row)
        found.append(
            Finding(
                kind=kind,
                severity=_severity(kind, row, told),
                ts_ns=int(row["ts"]),
                process=int(row["process"]),
                pid=teller.pid(int(row["process"])),
                threads=told.threads,
                objects=told.objects,
                names=told.names,
                sites=told.sites,
                message=told.message,
                events=told.events,
                count=int(row["count"]),
                suspect=bool(int(row["flags"]) & libptttrack_facts.SUSPECT),
            )
        )
    found.sort(key=lambda finding: (finding.ts_ns, KINDS.index(finding.kind)))
    # What has happened need not be called possible.
    happened = [finding for finding in found if finding.kind == "deadlock"]
    return [f for f in found if f.kind != "lock-order-inversion" or not _among(f, happened)]


def _severity(kind: str, row: Any, told: Told) -> str:
    """Return how bad a finding is: what a lock refused has done no harm, as the program knows."""
    refused = (
        int(row["flags"]) & libptttrack_facts.REFUSED and told.objects and kind != "destroy-locked"
    )
    return "warning" if refused or kind in _WARNINGS else "error"


def _among(finding: Finding, others: list[Finding]) -> bool:
    """Return whether all its locks are those of one of the others."""
    return any(
        finding.process == other.process and set(finding.objects) <= set(other.objects)
        for other in others
    )


def findings(traces: Source | Traceset, symbols: Symbols | None = None) -> pa.Table:
    """Return the bugs that a traceset shows, the earliest first.

    Args:
        traces: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.

    Raises:
        NativeError: Memory is out.
    """
    source = traces.source if isinstance(traces, Traceset) else traces
    rows = [
        {
            "kind": found.kind,
            "severity": found.severity,
            "ts_ns": found.ts_ns,
            "process": found.process,
            "threads": found.threads,
            "objects": [f"{address:#x}" for address in found.objects],
            "sites": found.sites,
            "message": found.message,
            "count": found.count,
            "events": [
                {"ts_ns": e.ts_ns, "tid": e.tid, "text": e.text, "site": e.site}
                for e in found.events
            ],
        }
        for found in find(source, symbols).findings
        if not found.suspect
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
