"""Findings: what is wrong with what threads did, with the few events that prove it.

What is a finding, and of which kind, the modules of `nptltrace.findings` say; here they are run.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from nptltrace._dataclasses import dataclass, replace
from nptltrace.analysis.checking.checker import LONG_HOLD_NS, checked
from nptltrace.analysis.checking.named_facts import Facts
from nptltrace.analysis.checking.silent_threads import silent
from nptltrace.analysis.event_stacks import Evidence
from nptltrace.analysis.question_scope import places_of
from nptltrace.analysis.trace_data import TraceData
from nptltrace.errors import PttError
from nptltrace.findings.facts import Found, Severity
from nptltrace.findings.kind import kinds, load_installed
from nptltrace.scripts import place_of, what_failed

if TYPE_CHECKING:
    from collections.abc import Collection

    from nptltrace.analysis.checking.checker import Checker
    from nptltrace.analysis.checking.silent_threads import Life
    from nptltrace.findings.facts import Event
    from nptltrace.findings.kind import Kind
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Finding", "Findings", "find", "findings", "findings_of", "schema"]

_UNJUDGED = "semaphores are locks in it: in which order they are taken is not judged"
_UNSEEN = (
    "who takes a free mutex of Python is not seen: deadlocks and orders of these are not judged"
)


@cache
def schema() -> pa.Schema:
    """Return the columns of the table of findings."""
    return pa.schema(
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
                            pa.field("object", pa.string()),
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
        kind: Name of its kind.
        severity: `error`, or `warning` for what has done no harm yet.
        ts_ns: When it showed.
        process: Number of the process in the traceset.
        pid: Its process id.
        threads: Kernel thread ids of the threads that take part.
        objects: Addresses of what it is about.
        names: What those are called.
        sites: Where it happened.
        message: The whole of it in a sentence.
        events: What proves it, in the order of the sentence.
        count: How often it was seen.
        suspect: It may be explained by memory that was used again for another object.
    """

    kind: str
    severity: Severity
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

    @property
    def places(self) -> list[tuple[int, int]]:
        """The objects, each with the times at which something happened to it."""
        return places_of(self.objects, self.ts_ns, ((e.object, e.ts_ns) for e in self.events))


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a check.

    Attributes:
        findings: The findings, the earliest first.
        lost: Events that are missing.
        partial: What does not stand without the missing ones was left out.
        futex_waits: Waits for futexes that belong to no lock that is known: they are not judged.
        uncovered: Modules of which not all is judged, and why, as `Traceset.uncovered` has them.
        crowded: How often a lock was asked for while so many were held that orders are not judged.
        failures: Kinds that users added and that could not be looked for, each with the reason.
        silent: The threads that have no event and no wait for most of their life.
        left_alone: Processes in which nothing happened since a thread forked them beside others,
            each with its parent.
    """

    findings: list[Finding]
    lost: int
    partial: bool
    futex_waits: int
    uncovered: list[dict[str, Any]]
    crowded: int
    failures: list[str]
    silent: list[Life]
    left_alone: list[tuple[int, int]]


def find(
    source: Traceset,
    symbols: Symbols | None = None,
    *,
    long_hold_ns: int = LONG_HOLD_NS,
    wanted: Collection[str] = (),
) -> Findings:
    """Return what is wrong with a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        long_hold_ns: A lock that is held for this time, in ns, is held for too long.
        wanted: Of the kinds that users added, only these; empty for all.

    Raises:
        NativeError: Memory is out.
    """
    return findings_of(source, symbols, checked(source, long_hold_ns), wanted=wanted)


def findings_of(
    source: Traceset,
    symbols: Symbols | None,
    checker: Checker,
    *,
    wanted: Collection[str] = (),
    tables: bool = True,
) -> Findings:
    """Return what a checker has found so far.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        checker: The checker.
        wanted: Of the kinds that users added, only these; empty for all.
        tables: Whether to look for kinds that read tables at all.
    """
    facts = Facts(source, symbols, checker.check)
    trace = TraceData(source, symbols, facts)
    found: list[Finding] = []
    failures = [f"findings of an installed package: {text}" for text in load_installed()]
    order = {name: number for number, name in enumerate(kinds())}
    for kind in kinds().values():
        if kind.tables and not tables:
            continue
        if kind.group:
            found += _findings(kind, trace, facts)
        elif not wanted or kind.name in wanted:
            try:
                found += _findings(kind, trace, facts)
            except (Exception, SystemExit) as error:  # noqa: BLE001 -- whatever the user's code raises
                place = place_of(error, kind.file)
                failures.append(f"{kind.name} ({place}): {what_failed(error)}")
    trace.close()
    evidence = Evidence(source, symbols)
    found = [replace(one, events=evidence.of(one.process, one.events)) for one in found]
    found.sort(key=lambda finding: (finding.ts_ns, order[finding.kind]))
    return Findings(
        findings=found,
        lost=checker.lost,
        partial=checker.partial,
        futex_waits=checker.check.futex_waits,
        uncovered=[*source.uncovered(), *_unjudged(source, checker)],
        crowded=checker.check.crowded,
        failures=failures,
        silent=silent(checker.lives(), checker.awaited()),
        left_alone=checker.left_alone(),
    )


def _unjudged(source: Traceset, checker: Checker) -> list[dict[str, Any]]:
    """Return the programs that take semaphores as locks, one while they have another.

    And those whose threads waited for mutexes of Python.
    """
    known = source.python.semaphores()
    unseen = known.parked if known else frozenset()
    found = dict.fromkeys(
        (process.exe, why)
        for number, process in enumerate(source.processes)
        for why, so in (
            (_UNJUDGED, checker.check.nested_semaphores(number)),
            (_UNSEEN, number in unseen),
        )
        if so
    )
    return [{"module": program, "why": why} for program, why in found]


def _findings(kind: Kind, trace: TraceData, facts: Facts) -> list[Finding]:
    """Return the findings of one kind, all of them or none."""
    return [_finding(kind, found, facts) for found in kind.find(trace)]


def _finding(kind: Kind, found: object, facts: Facts) -> Finding:
    """Return a finding with names, and with plain numbers where a table had others."""
    if not isinstance(found, Found):
        raise PttError(f"yielded a {type(found).__name__}, and not a Found")
    process, severity = int(found.process), found.severity or kind.severity
    if not 0 <= process < facts.processes:
        raise PttError(f"there is no process {process} in this traceset")
    if severity not in get_args(Severity):
        raise PttError(f"severity is 'error' or 'warning', not {severity!r}")
    objects = [int(one, 16) if isinstance(one, str) else int(one) for one in found.objects]
    return Finding(
        kind=kind.name,
        severity=severity,
        ts_ns=int(found.ts_ns),
        process=process,
        pid=facts.pid(process),
        threads=[int(tid) for tid in found.threads],
        objects=objects,
        names=[facts.object_name(process, address) for address in objects],
        sites=[str(site) for site in found.sites],
        message=str(found.message),
        events=list(found.events),
        count=int(found.count),
        suspect=bool(found.suspect),
    )


def findings(
    source: Traceset, symbols: Symbols | None = None, checker: Checker | None = None
) -> pa.Table:
    """Return the bugs that a traceset shows, the earliest first.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        checker: One that has seen all of them; None to read them.

    Raises:
        NativeError: Memory is out.
        PttError: A kind that a user added cannot be looked for.
    """
    result = findings_of(source, symbols, checker or checked(source))
    if result.failures:
        raise PttError(result.failures[0])
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
                {
                    "ts_ns": e.ts_ns,
                    "tid": e.tid,
                    "text": e.text,
                    "site": e.site,
                    "object": f"{e.object:#x}" if e.object else None,
                }
                for e in found.events
            ],
        }
        for found in result.findings
        if not found.suspect
    ]
    return pa.Table.from_pylist(rows, schema=schema())
