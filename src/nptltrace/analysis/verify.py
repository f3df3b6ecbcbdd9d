"""Holds a trace against what POSIX promises of the thread library itself.

The rules, what each of them proves and when it is silent, stand in docs/explanation/verify.md.
Times are ns since the traceset's start.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread, libptttrack_promises
from nptltrace._binding.headers.pttread import PTT_CPU_UNKNOWN
from nptltrace._binding.libptttrack_sums import KINDS
from nptltrace._plural import plural
from nptltrace.analysis.model import Window, event_buffers
from nptltrace.catalog import BY_ID
from nptltrace.trace.printing import Printer
from nptltrace.trace.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.analysis.scope import Scope
    from nptltrace.trace.source import Source, TraceFiles
    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["PATIENCE_NS", "Evidence", "Verdict", "Violation", "gaps", "verify"]

PATIENCE_NS = 10 * 10**9
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event that proves a violation.

    Attributes:
        ts_ns: When.
        pid: Process id.
        tid: Kernel thread id.
        event: Name of its type.
        object: Address of its object.
        site: Where it was called from; empty when unknown.
        text: The event as a sentence, as `ptt view` prints it.
    """

    ts_ns: int
    pid: int
    tid: int
    event: str
    object: int
    site: str
    text: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        rule: Name of the rule.
        severity: `error` where the trace proves it, `warning` where time alone speaks for it.
        process: Number of the process in the traceset.
        pid: Its process id.
        kind: Of the object.
        object: Its address.
        name: Its variable or alias, or empty.
        message: A sentence that says what happened.
        count: How often; the events are those of the first time.
        ts_ns: When it shows.
        events: What proves it, in the order of time.
    """

    rule: str
    severity: str
    process: int
    pid: int
    kind: str
    object: int
    name: str
    message: str
    count: int
    ts_ns: int
    events: tuple[Evidence, ...]

    @property
    def threads(self) -> list[int]:
        """The kernel thread ids in the order of their events."""
        return list(dict.fromkeys(event.tid for event in self.events))

    @property
    def sites(self) -> list[str]:
        """Where the events were called from."""
        return list(dict.fromkeys(event.site for event in self.events if event.site))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of it.

    Attributes:
        violations: The broken promises, in the order of time.
        checked: How often each rule was applied.
        skipped: How often a rule was silent, by reason; reasons that did not occur are left out.
        gaps: Why events may be missing, a sentence each; then only single calls were judged.
    """

    violations: list[Violation]
    checked: dict[str, int]
    skipped: dict[str, int]
    gaps: list[str]

    def within(self, scope: Scope) -> Verdict:
        """Return it with the violations that are about some threads, objects and call sites."""
        chosen = [
            one
            for one in self.violations
            if scope.includes(one.ts_ns, one.process, one.threads, [one.object], one.sites)
        ]
        return replace(self, violations=chosen)


def verify(
    source: Source,
    symbols: Symbols,
    *,
    window: Window | None = None,
    patience_ns: int = PATIENCE_NS,
) -> Verdict:
    """Hold a traceset against the rules.

    Args:
        source: The opened traces.
        symbols: Names of addresses.
        window: The part to read.
        patience_ns: A thread that should have gone on this long before its process ended, and did
            not, has not been woken.

    Raises:
        NativeError: Memory is out.
    """
    window = window or Window()
    source.reader.verify()
    missing = [gaps(source, trace) for trace in source.traces]
    verifier = libptttrack_promises.Verifier()
    alive = _alive_ns(source, window)
    for number, (trace, _, _) in enumerate(source.reader.processes()):
        facts = libptttrack_promises.VerifyProcess(
            alive=alive[number],
            monotonic=_monotonic_ns(source, source.traces[trace]),
            realtime=source.start_unix_ns,
            incomplete=bool(missing[trace]),
        )
        verifier.process(number, facts)
        for part in source.processes()[number].shared:
            verifier.share(number, part.start, part.end)
    for number, (process, tid) in enumerate(source.threads()):
        verifier.thread(number, process, tid)
    for buffer in event_buffers(source, window):
        verifier.feed(buffer)
    verifier.finish(patience_ns)
    rows = verifier.violations()
    telling = _Telling(source, symbols) if rows else None
    found = [telling.violation(row) for row in rows] if telling else []
    return Verdict(
        violations=sorted(found, key=lambda one: (one.ts_ns, one.rule, one.object)),
        checked=verifier.checks(),
        skipped={reason: n for reason, n in verifier.skipped().items() if n},
        gaps=[gap for several in missing for gap in several],
    )


# ---- what a trace does not hold ----


def gaps(source: Source, trace: TraceFiles) -> list[str]:
    """Return why events of a trace may be missing, a sentence each.

    Args:
        source: The opened traces, whose packets have been checked.
        trace: One of them.
    """
    session, name = trace.info.session, str(trace.path)
    lost = sum(session.losses.values()) or source.reader.trace_info(trace.number).discarded
    damaged = any(damage.path.startswith(f"{name}/") for damage in source.damages())
    reasons = {
        "it is still being recorded": trace.running,
        "nobody says that the recording was finished": (
            not trace.running and session.state != "complete"
        ),
        f"{lost} {plural(lost, 'event was', 'events were')} lost": lost,
        "older events were overwritten": session.number("overwritten_bytes"),
        "older files were removed": session.number("removed_events"),
        "parts of it are damaged": damaged,
        "modules of the program went past the tracer": session.uncovered,
        "levels were changed meanwhile": session.raw.get("level_changed"),
        f"it was recorded with --filter {session.filter}": session.filter,
        "it holds some of the threads only": session.raw.get("part"),
    }
    return [f"{name}: {reason}" for reason, there in reasons.items() if there]


def _alive_ns(source: Source, window: Window) -> list[int]:
    """Return when each process was last seen alive, `NEVER` where nobody knows."""
    found = []
    for process, (trace, _, _) in zip(source.processes(), source.reader.processes(), strict=True):
        # A part of a trace may end long before the process did.
        derived = "derived_from" in source.traces[trace].info.session.raw
        seen = None if derived else process.alive_unix_ns
        ns = libptttrack_promises.NEVER if seen is None else seen - source.start_unix_ns
        found.append(ns if window.end_ns is None else min(ns, window.end_ns))
    return found


def _monotonic_ns(source: Source, trace: TraceFiles) -> int:
    """Return CLOCK_MONOTONIC at time 0, `NEVER` where the trace does not tell."""
    place, session = source.alignment.placements[trace.number], trace.info.session
    start, at = session.number("clock", "start"), session.number("clock", "start_monotonic_ns")
    if session.string("clock", "name") == "monotonic" and place.frequency == _NS:
        start = at = 0
    elif "derived_from" in session.raw:
        at = None  # a part of a trace says when it starts itself
    if start is None or at is None:
        return libptttrack_promises.NEVER
    return at + (place.origin - start) * _NS // place.frequency - place.shift_ns


# ---- in words ----


class _Telling:
    """Puts violations into words.

    Args:
        source: The opened traces.
        symbols: Names of addresses.
    """

    def __init__(self, source: Source, symbols: Symbols) -> None:
        self._source, self._symbols = source, symbols
        self._lines: list[bytes] = []
        self._printer = Printer(
            source, symbols, Selection(), style="text", write=lambda m: self._lines.append(bytes(m))
        )
        self._rules = libptttrack_promises.rules()

    def violation(self, row: libptttrack_promises.VerifyViolation) -> Violation:
        """Return a violation with its events and a sentence."""
        rows = sorted(row.event[: row.event_count], key=lambda event: event.ts)
        rule, kind = self._rules[row.rule], KINDS.get(row.kind, "object")
        name = self._symbols.object_name(row.process, row.object)
        events = tuple(self._evidence(event) for event in rows)
        what = f"{kind} {name or hex(row.object)}"
        said = _SENTENCES[rule](_Said(what, events, (row.number[0], row.number[1])))
        return Violation(
            rule=rule,
            severity=libptttrack_promises.SEVERITIES[row.severity],
            process=row.process,
            pid=self._source.processes()[row.process].pid,
            kind=kind,
            object=row.object,
            name=name,
            message=said,
            count=row.count,
            ts_ns=row.ts,
            events=events,
        )

    def _evidence(self, event: libptttrack_promises.VerifyEvent) -> Evidence:
        process, tid = self._source.threads()[event.thread]
        return Evidence(
            ts_ns=event.ts,
            pid=self._source.processes()[process].pid,
            tid=tid,
            event=BY_ID[event.id].name,
            object=event.object,
            site=self._symbols.site_name(process, event.site) if event.site else "",
            text=self._text(event),
        )

    def _text(self, event: libptttrack_promises.VerifyEvent) -> str:
        buffer = libpttread.Buffer(1)
        for name in ("ts", "thread", "id", "object", "site", "payload"):
            buffer.arrays[name][0] = getattr(event, name)
        buffer.arrays["cpu"][0] = PTT_CPU_UNKNOWN
        buffer.count = 1
        self._lines.clear()
        self._printer.print_events(buffer)
        return b"".join(self._lines).decode("utf-8", "replace").rstrip("\n")


@dataclass(frozen=True, slots=True)
class _Said:
    """What a sentence is made of."""

    what: str
    events: tuple[Evidence, ...]
    numbers: tuple[int, int]

    def who(self, at: int) -> str:
        """Return the thread of an event."""
        return f"thread {self.events[at].tid}"

    def when(self, at: int) -> str:
        """Return the time of an event."""
        return f"at {self.events[at].ts_ns / _NS:.9f} s"


def _overlap(said: _Said) -> str:
    return (
        f"{said.who(0)} took {said.what} {said.when(0)} and had it until it released it "
        f"{said.when(-1)}, but {said.who(1)} was given it {said.when(1)}"
    )


def _recursion(said: _Said) -> str:
    if len(said.events) > 2:  # noqa: PLR2004 -- with another thread's event in the middle
        return f"{_overlap(said)}: it was not yet released as often as it had been taken"
    return (
        f"{said.who(0)} was given {said.what} {said.when(0)} although it had it already: "
        "its type promises an error"
    )


def _owner(said: _Said) -> str:
    if said.events[-1].event == "MUTEX_ERROR":
        return (
            f"{said.who(0)} took {said.what} {said.when(0)}, and was refused to release it "
            f"{said.when(-1)}"
        )
    if said.events[0].event == "MUTEX_INIT":
        return (
            f"{said.who(-1)} released {said.what} {said.when(-1)} without owning it: its type "
            "promises an error"
        )
    return (
        f"{said.who(1)} released {said.what} {said.when(1)} without an error, but "
        f"{said.who(0)} owned it from {said.when(0)[3:]} until {said.when(-1)[3:]}"
    )


def _robust(said: _Said) -> str:
    if said.events[-1].event == "THREAD_END":
        return (
            f"{said.what} said {said.when(1)} that its owner had ended, but {said.who(0)}, "
            f"which had taken it {said.when(0)}, ended {said.when(-1)}"
        )
    return (
        f"{said.what} said to {said.who(-1)} {said.when(-1)} that its owner had ended, although "
        "it is not robust"
    )


def _preference(said: _Said) -> str:
    return (
        f"{said.who(0)} waited to write {said.what} since {said.when(0)[3:]} and was queued "
        f"{said.when(1)}, but {said.who(2)} came later and was let in to read {said.when(2)}"
    )


def _cond_mutex(said: _Said) -> str:
    if len(said.events) > 2:  # noqa: PLR2004 -- taken, taken, released
        return f"{_overlap(said)}: one of them had waited for a condition"
    return f"{said.who(-1)} left the wait for {said.what} {said.when(-1)} without its mutex"


def _cond_wakeup(said: _Said) -> str:
    woken, waiting = said.numbers
    last = f"that of {said.who(-1)} {said.when(-1)}"
    if waiting == 1:
        return (
            f"{said.who(0)} waits for {said.what} since {said.when(0)[3:]} and never came back, "
            f"although the last signal, {last}, had nobody else to wake"
        )
    return (
        f"{said.who(0)} and {waiting - 1} more wait for {said.what} and never came back, although "
        f"the signals up to {last} were to wake at least {woken} of them"
    )


def _barrier_early(said: _Said) -> str:
    return (
        f"{said.who(-1)} left {said.what} {said.when(-1)} when {said.numbers[0]} of "
        f"{said.numbers[1]} threads had reached it"
    )


def _barrier_serial(said: _Said) -> str:
    serials, rounds = said.numbers
    return (
        f"{said.what} has had {serials} serial thread{'s'[: serials != 1]} in {rounds} "
        f"round{'s'[: rounds != 1]} until {said.when(-1)[3:]}: it must be one in each round"
    )


def _sem_value(said: _Said) -> str:
    return (
        f"{said.who(-1)} took a unit of {said.what} {said.when(-1)}: with it, {said.numbers[0]} "
        f"were taken of {said.numbers[1]} that there had ever been"
    )


def _once_twice(said: _Said) -> str:
    if said.events[-1].event == "ONCE_END":
        return (
            f"{said.who(0)} ran the routine of {said.what} until {said.when(-1)[3:]}, and "
            f"{said.who(1)} began to run it {said.when(1)}"
        )
    return (
        f"{said.who(-1)} ran the routine of {said.what} {said.when(-1)} once more: its call had "
        f"begun {said.when(0)}, and {said.who(1)} had finished the routine {said.when(1)}"
    )


def _once_early(said: _Said) -> str:
    return (
        f"{said.who(1)} went on {said.when(1)}, but {said.who(0)} was running the routine of "
        f"{said.what} until {said.when(-1)[3:]}"
    )


def _join_end(said: _Said) -> str:
    return f"{said.who(0)} joined {said.who(-1)} {said.when(0)}, which ended {said.when(-1)}"


def _create_begin(said: _Said) -> str:
    return (
        f"{said.who(0)} began {said.when(0)}, before {said.who(1)} called for it to be created "
        f"{said.when(1)}"
    )


def _try_busy(said: _Said) -> str:
    return (
        f"{said.who(-1)} was refused {said.what} {said.when(-1)}, although it was free and nobody "
        "else was at it"
    )


def _timeout_early(said: _Said) -> str:
    return (
        f"{said.who(-1)} was told {said.when(-1)} that the time for {said.what} was over, "
        f"{said.numbers[0] / 10**6:.3f} ms before it was"
    )


def _result(said: _Said) -> str:
    number = said.numbers[0]
    return (
        f"{said.who(-1)} was given {number} ({errno.errorcode.get(number, 'no error number')}) "
        f"for {said.what} {said.when(-1)}, which is not among the errors of that routine"
    )


def _not_woken(said: _Said) -> str:
    if said.events[0].event == "BARRIER_INIT":
        return (
            f"threads still wait at {said.what}, which all had reached {said.when(-1)}, "
            f"{said.numbers[0] / _NS:.3f} s before the end"
        )
    at = next((n for n, e in enumerate(said.events) if e.event.endswith(("WAIT", "_IN"))), 0)
    return (
        f"{said.who(at)} waits for {said.what} since {said.when(at)[3:]}, although it could have "
        f"gone on {said.numbers[0] / _NS:.3f} s before the end"
    )


_SENTENCES: dict[str, Callable[[_Said], str]] = {
    "mutex-exclusion": _overlap,
    "mutex-recursion": _recursion,
    "mutex-owner": _owner,
    "mutex-robust": _robust,
    "rwlock-exclusion": _overlap,
    "rwlock-preference": _preference,
    "spin-exclusion": _overlap,
    "cond-mutex": _cond_mutex,
    "cond-wakeup": _cond_wakeup,
    "barrier-early": _barrier_early,
    "barrier-serial": _barrier_serial,
    "sem-value": _sem_value,
    "once-twice": _once_twice,
    "once-early": _once_early,
    "join-end": _join_end,
    "create-begin": _create_begin,
    "try-busy": _try_busy,
    "timeout-early": _timeout_early,
    "result": _result,
    "not-woken": _not_woken,
}
