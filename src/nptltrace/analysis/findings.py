"""Runs the kinds of findings over a traceset and names the results.

A finding is a bug or a suspicious pattern, with the few events that prove it. The modules of
`nptltrace.findings` define the kinds.
"""

from __future__ import annotations

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

__all__ = ["Finding", "Findings", "find", "findings", "findings_of"]

_UNJUDGED = "it uses semaphores as locks: PTT does not check their lock orders"
_UNSEEN = (
    "PTT does not see who takes a free mutex of Python: it does not check these mutexes for "
    "deadlocks and lock orders"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A bug or a suspicious pattern.

    Attributes:
        kind: Name of the kind.
        severity: `error`, or `warning` for a pattern that has done no harm yet.
        ts_ns: Time of the finding, in ns since the traceset's start.
        process: Number of the process in the traceset.
        pid: Process id.
        threads: Kernel thread ids of the threads concerned.
        objects: Addresses of the objects concerned.
        names: Names of `objects`, in the same order; the address of an object without a name.
        sites: The call sites concerned, as text.
        message: The finding as a sentence.
        title: The finding as a short sentence without call sites.
        events: The events that prove the finding, in the order of the sentence.
        count: Number of times it was found.
        suspect: The cause may be memory that was reused for another object.
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
    title: str
    events: list[Event]
    count: int
    suspect: bool

    @property
    def places(self) -> list[tuple[int, int]]:
        """(Address, time in ns) of each object at the times of its events."""
        return places_of(self.objects, self.ts_ns, ((e.object, e.ts_ns) for e in self.events))


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a check.

    Attributes:
        findings: The findings, the earliest first.
        lost: Number of lost events.
        partial: Events are missing. Findings that the missing events could refute were left out.
        futex_waits: Waits for futexes of unknown purpose; PTT does not judge them.
        uncovered: Modules that are not judged completely, and why, as in `Traceset.uncovered`.
        crowded: Requests for a lock by threads that held too many locks to judge their order.
        failures: Kinds of users that failed, each with the reason.
        silent: The threads without event and wait for most of their life.
        left_alone: (pid, pid of the parent) of processes without events after a thread forked them
            while the parent had other threads.
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
    """Return the findings of a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        long_hold_ns: A hold of this time or longer, in ns, is too long.
        wanted: The kinds of users to look for; empty for all. PTT's own kinds always run.

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
    """Return the findings of a checker so far.

    Args:
        source: The opened traces.
        symbols: Names addresses, or None.
        checker: The checker.
        wanted: The kinds of users to look for; empty for all. PTT's own kinds always run.
        tables: Whether to run kinds that read tables.
    """
    facts = Facts(source, symbols, checker.check)
    trace = TraceData(source, symbols, facts)
    results: list[Finding] = []
    failures = [f"findings of an installed package: {text}" for text in load_installed()]
    order = {name: number for number, name in enumerate(kinds())}
    for kind in kinds().values():
        if kind.tables and not tables:
            continue
        if not kind.group and wanted and kind.name not in wanted:
            continue
        try:
            # All findings of a kind count, or none.
            results += [_finding(kind, found, facts) for found in kind.find(trace)]
        except (Exception, SystemExit) as error:  # whatever the user's code raises
            if kind.group:
                raise
            place = place_of(error, kind.file)
            failures.append(f"{kind.name} ({place}): {what_failed(error)}")
    trace.close()
    evidence = Evidence(source, symbols)
    results = [replace(item, events=evidence.of(item.process, item.events)) for item in results]
    results.sort(key=lambda finding: (finding.ts_ns, order[finding.kind]))
    return Findings(
        findings=results,
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
    """Return the programs with lock orders that are not judged, and why.

    These are programs that nest semaphores as locks, and programs with threads that waited for
    mutexes of Python.
    """
    semaphores = source.python.semaphores()
    unseen = semaphores.parked if semaphores else frozenset()
    programs = dict.fromkeys(
        (process.exe, why)
        for number, process in enumerate(source.processes)
        for why, applies in (
            (_UNJUDGED, checker.check.nested_semaphores(number)),
            (_UNSEEN, number in unseen),
        )
        if applies
    )
    return [{"module": program, "why": why} for program, why in programs]


def _finding(kind: Kind, found: object, facts: Facts) -> Finding:
    """Return a finding with names; numbers of NumPy and Arrow become plain numbers."""
    if not isinstance(found, Found):
        raise PttError(f"yielded a {type(found).__name__}, and not a Found")
    process, severity = int(found.process), found.severity or kind.severity
    if not 0 <= process < facts.processes:
        raise PttError(f"there is no process {process} in this traceset")
    if severity not in get_args(Severity):
        raise PttError(f"severity is 'error' or 'warning', not {severity!r}")
    objects = [int(item, 16) if isinstance(item, str) else int(item) for item in found.objects]
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
        title=str(found.title or found.message),
        events=list(found.events),
        count=int(found.count),
        suspect=bool(found.suspect),
    )


def findings(
    source: Traceset, symbols: Symbols | None = None, checker: Checker | None = None
) -> pa.Table:
    """Return the findings of a traceset as a table, the earliest first.

    Args:
        source: The opened traces.
        symbols: Names addresses; without them objects and sites are numbers.
        checker: A checker that has seen all events; None to read the events.

    Returns:
        The table `findings` without the columns `run_id` and `pid`.

    Raises:
        NativeError: Memory is out.
        PttError: A kind that a user added failed.
    """
    from nptltrace.analysis.sql.schema import TABLES

    result = findings_of(source, symbols, checker or checked(source))
    if result.failures:
        raise PttError(result.failures[0])
    rows = [
        {
            "process": finding.process,
            "kind": finding.kind,
            "severity": finding.severity,
            "ts_ns": finding.ts_ns,
            "threads": finding.threads,
            "objects": [f"{address:#x}" for address in finding.objects],
            "sites": finding.sites,
            "message": finding.message,
            "count": finding.count,
            "events": [
                {
                    "ts_ns": e.ts_ns,
                    "tid": e.tid,
                    "text": e.text,
                    "site": e.site,
                    "object": f"{e.object:#x}" if e.object else None,
                }
                for e in finding.events
            ],
        }
        for finding in result.findings
        if not finding.suspect
    ]
    columns = [name for name in TABLES["findings"].names if name not in {"run_id", "pid"}]
    return pa.Table.from_pylist(rows, schema=TABLES["findings"].schema(columns))
