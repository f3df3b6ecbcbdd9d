"""Compares a trace with the promises of POSIX for the thread library itself.

docs/explanation/verify.md has the rules: what a violation of each rule proves, and when a rule is
not applied. Times are ns since the traceset's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding import libpttread, libptttrack_promises
from nptltrace._binding.headers.pttread import PTT_CPU_UNKNOWN
from nptltrace._binding.libptttrack_sums import KINDS
from nptltrace._dataclasses import dataclass, replace
from nptltrace._units import plural
from nptltrace.analysis.model import Window, event_buffers
from nptltrace.analysis.recording_state import monotonic_ns
from nptltrace.catalog import BY_ID
from nptltrace.errors import error_name
from nptltrace.trace.printing import Printer
from nptltrace.trace.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.analysis.question_scope import Scope
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["PATIENCE_NS", "Evidence", "Verdict", "Violation", "gaps", "verify"]

PATIENCE_NS = 10 * 10**9
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event that proves a violation.

    Attributes:
        ts_ns: Time of the event.
        pid: Process id.
        tid: Kernel thread id.
        event: Name of the event type.
        object: Address of the object.
        site: Call site as text; empty if unknown.
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
    """A broken promise.

    Attributes:
        rule: Name of the rule.
        severity: `error` if the trace proves the violation, `warning` if only the time suggests it.
        process: Number of the process in the traceset.
        pid: Process id.
        kind: Kind of the object.
        object: Address of the object.
        name: Variable or alias of the object, or empty.
        message: The violation as a sentence.
        count: Number of times. The events are the events of the first time.
        ts_ns: Time of the violation.
        events: The events that prove the violation, in the order of time.
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
        """The call sites of the events, each once, as text."""
        return list(dict.fromkeys(event.site for event in self.events if event.site))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification.

    Attributes:
        violations: The broken promises, in the order of time.
        checked: How often each rule was applied.
        skipped: How often a rule was not applied, by reason; without reasons that did not occur.
        gaps: Why events may be missing, a sentence each. With gaps, only single calls are judged.
    """

    violations: list[Violation]
    checked: dict[str, int]
    skipped: dict[str, int]
    gaps: list[str]

    def within(self, scope: Scope) -> Verdict:
        """Return the verdict with only the violations that concern a scope."""
        chosen = [
            violation
            for violation in self.violations
            if scope.includes(
                violation.ts_ns,
                violation.process,
                violation.threads,
                [(violation.object, violation.ts_ns)],
                violation.sites,
            )
        ]
        return replace(self, violations=chosen)


def verify(
    source: Traceset,
    symbols: Symbols,
    *,
    window: Window | None = None,
    patience_ns: int = PATIENCE_NS,
) -> Verdict:
    """Apply the rules to a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        window: The part to read.
        patience_ns: If a thread could have continued this long before its process ended, and did
            not, then nothing woke the thread.

    Raises:
        NativeError: Memory is out.
    """
    window = window or Window()
    source.reader.verify()
    missing = [gaps(source, trace) for trace in source.traces]
    verifier = libptttrack_promises.Verifier()
    alive = _alive_ns(source, window)
    for number, (trace, _, _) in enumerate(source.reader.processes()):
        monotonic = monotonic_ns(source, source.traces[trace])
        facts = libptttrack_promises.VerifyProcess(
            alive=alive[number],
            monotonic=libptttrack_promises.NEVER if monotonic is None else monotonic,
            realtime=source.start_unix_ns,
            incomplete=bool(missing[trace]),
        )
        verifier.process(number, facts)
        for part in source.processes[number].shared:
            verifier.share(number, part.start, part.end, 0, 0)
    for number, (process, tid) in enumerate(source.thread_ids):
        verifier.thread(number, process, tid)
    for buffer in event_buffers(source, window):
        verifier.feed(buffer)
    verifier.finish(patience_ns)
    rows = verifier.violations()
    sentences = _Sentences(source, symbols) if rows else None
    violations = [sentences.violation(row) for row in rows] if sentences else []
    return Verdict(
        violations=sorted(violations, key=lambda v: (v.ts_ns, v.rule, v.object)),
        checked=verifier.checks(),
        skipped={reason: n for reason, n in verifier.skipped().items() if n},
        gaps=[gap for several in missing for gap in several],
    )


# ---- missing events ----


def gaps(source: Traceset, trace: TraceFiles) -> list[str]:
    """Return why events of a trace may be missing, a sentence each.

    Args:
        source: The opened traces. Their packets have been checked.
        trace: A trace of `source`.
    """
    session, name = trace.info.session, str(trace.path)
    lost = sum(source.losses(trace).values())
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
        "files are missing or empty": source.missing_events(trace),
        "modules of the program went past the tracer": session.uncovered,
        "levels were changed meanwhile": session.raw.get("level_changed"),
        f"it was recorded with --filter {session.filter}": session.filter,
        f"it holds the events of some {session.raw.get('part')}s only": session.raw.get("part"),
    }
    return [f"{name}: {reason}" for reason, applies in reasons.items() if applies]


def _alive_ns(source: Traceset, window: Window) -> list[int]:
    """Return for each process the last time when it was alive; `NEVER` if unknown."""
    alive_ns = []
    for process, (trace, _, _) in zip(source.processes, source.reader.processes(), strict=True):
        # A part of a trace may end long before the process did.
        derived = "derived_from" in source.traces[trace].info.session.raw
        unix_ns = None if derived else process.alive_unix_ns
        ns = libptttrack_promises.NEVER if unix_ns is None else unix_ns - source.start_unix_ns
        alive_ns.append(ns if window.end_ns is None else min(ns, window.end_ns))
    return alive_ns


# ---- in words ----


class _Sentences:
    """Puts violations into words.

    Args:
        source: The opened traces.
        symbols: Names addresses.
    """

    def __init__(self, source: Traceset, symbols: Symbols) -> None:
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
        name = self._symbols.object_name(row.process, row.object, row.kind)
        events = tuple(self._evidence(event) for event in rows)
        what = f"{kind} {name or hex(row.object)}"
        message = _SENTENCES[rule](_Case(what, events, (row.number[0], row.number[1])))
        return Violation(
            rule=rule,
            severity=libptttrack_promises.SEVERITIES[row.severity],
            process=row.process,
            pid=self._source.processes[row.process].pid,
            kind=kind,
            object=row.object,
            name=name,
            message=message,
            count=row.count,
            ts_ns=row.ts,
            events=events,
        )

    def _evidence(self, event: libptttrack_promises.VerifyEvent) -> Evidence:
        process, tid = self._source.thread_ids[event.thread]
        return Evidence(
            ts_ns=event.ts,
            pid=self._source.processes[process].pid,
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
class _Case:
    """The parts of a sentence: the object, the events and up to two numbers."""

    what: str
    events: tuple[Evidence, ...]
    numbers: tuple[int, int]

    def by(self, at: int) -> str:
        """Return the thread of an event."""
        return f"thread {self.events[at].tid}"

    def when(self, at: int) -> str:
        """Return the time of an event."""
        return f"at {self.events[at].ts_ns / _NS:.9f} s"


def _overlap(case: _Case) -> str:
    return (
        f"{case.by(0)} took {case.what} {case.when(0)} and had it until it released it "
        f"{case.when(-1)}, but {case.by(1)} was given it {case.when(1)}"
    )


def _recursion(case: _Case) -> str:
    if len(case.events) > 2:  # noqa: PLR2004 -- with another thread's event in the middle
        return f"{_overlap(case)}: it was not yet released as often as it had been taken"
    return (
        f"{case.by(0)} was given {case.what} {case.when(0)} although it had it already: "
        "its type promises an error"
    )


def _owner(case: _Case) -> str:
    if case.events[-1].event == "MUTEX_ERROR":
        return (
            f"{case.by(0)} took {case.what} {case.when(0)}, and was refused to release it "
            f"{case.when(-1)}"
        )
    if case.events[0].event == "MUTEX_INIT":
        return (
            f"{case.by(-1)} released {case.what} {case.when(-1)} without owning it: its type "
            "promises an error"
        )
    return (
        f"{case.by(1)} released {case.what} {case.when(1)} without an error, but "
        f"{case.by(0)} owned it from {case.when(0)[3:]} until {case.when(-1)[3:]}"
    )


def _robust(case: _Case) -> str:
    if case.events[-1].event == "THREAD_END":
        return (
            f"{case.what} said {case.when(1)} that its owner had ended, but {case.by(0)}, "
            f"which had taken it {case.when(0)}, ended {case.when(-1)}"
        )
    return (
        f"{case.what} said to {case.by(-1)} {case.when(-1)} that its owner had ended, although "
        "it is not robust"
    )


def _cond_mutex(case: _Case) -> str:
    if len(case.events) > 2:  # noqa: PLR2004 -- taken, taken, released
        return f"{_overlap(case)}: one of them had waited for a condition"
    return f"{case.by(-1)} left the wait for {case.what} {case.when(-1)} without its mutex"


def _cond_wakeup(case: _Case) -> str:
    woken, waiting = case.numbers
    last = f"signal by {case.by(-1)} {case.when(-1)}"
    if waiting == 1:
        return (
            f"{case.by(0)} has waited for {case.what} since {case.when(0)[3:]} and never came "
            f"back, although the last {last} could wake no other thread"
        )
    return (
        f"{case.by(0)} and {waiting - 1} more wait for {case.what} and never came back, although "
        f"the signals up to the {last} must wake at least {woken} of them"
    )


def _once_twice(case: _Case) -> str:
    if case.events[-1].event == "ONCE_END":
        return (
            f"{case.by(0)} ran the routine of {case.what} until {case.when(-1)[3:]}, and "
            f"{case.by(1)} began to run it {case.when(1)}"
        )
    return (
        f"{case.by(-1)} ran the routine of {case.what} {case.when(-1)} once more: its call had "
        f"begun {case.when(0)}, and {case.by(1)} had finished the routine {case.when(1)}"
    )


def _result(case: _Case) -> str:
    number = case.numbers[0]
    name = error_name(number)
    return (
        f"{case.by(-1)} was given {number} ({name if name != str(number) else 'no error number'}) "
        f"for {case.what} {case.when(-1)}, which is not among the errors of that routine"
    )


def _not_woken(case: _Case) -> str:
    if case.events[0].event == "BARRIER_INIT":
        return (
            f"threads still wait at {case.what}, although all threads had reached it "
            f"{case.when(-1)}, {case.numbers[0] / _NS:.3f} s before the end"
        )
    at = next((n for n, e in enumerate(case.events) if e.event.endswith(("WAIT", "_IN"))), 0)
    return (
        f"{case.by(at)} waits for {case.what} since {case.when(at)[3:]}, although it could have "
        f"gone on {case.numbers[0] / _NS:.3f} s before the end"
    )


_SENTENCES: dict[str, Callable[[_Case], str]] = {
    "mutex-exclusion": _overlap,
    "mutex-recursion": _recursion,
    "mutex-owner": _owner,
    "mutex-robust": _robust,
    "rwlock-exclusion": _overlap,
    "rwlock-preference": lambda case: (
        f"{case.by(0)} waited to write {case.what} since {case.when(0)[3:]} and was queued "
        f"{case.when(1)}, but {case.by(2)} came later and was let in to read {case.when(2)}"
    ),
    "spin-exclusion": _overlap,
    "cond-mutex": _cond_mutex,
    "cond-wakeup": _cond_wakeup,
    "barrier-early": lambda case: (
        f"{case.by(-1)} left {case.what} {case.when(-1)} when {case.numbers[0]} of "
        f"{case.numbers[1]} threads had reached it"
    ),
    "barrier-serial": lambda case: (
        f"{case.what} has had {case.numbers[0]} serial {plural(case.numbers[0], 'thread')} in "
        f"{case.numbers[1]} {plural(case.numbers[1], 'round')} until {case.when(-1)[3:]}: it must "
        "be one in each round"
    ),
    "sem-value": lambda case: (
        f"{case.by(-1)} took a unit of {case.what} {case.when(-1)}: with it, {case.numbers[0]} "
        f"units were taken, but there had been only {case.numbers[1]}"
    ),
    "once-twice": _once_twice,
    "once-early": lambda case: (
        f"{case.by(1)} went on {case.when(1)}, but {case.by(0)} was running the routine of "
        f"{case.what} until {case.when(-1)[3:]}"
    ),
    "join-end": lambda case: (
        f"{case.by(0)} joined {case.by(-1)} {case.when(0)}, which ended {case.when(-1)}"
    ),
    "create-begin": lambda case: (
        f"{case.by(0)} began {case.when(0)}, before {case.by(1)} called for it to be created "
        f"{case.when(1)}"
    ),
    "try-busy": lambda case: (
        f"{case.by(-1)} was refused {case.what} {case.when(-1)}, although it was free and nobody "
        "else was at it"
    ),
    "timeout-early": lambda case: (
        f"{case.by(-1)} got {case.when(-1)} the result that the time for {case.what} was over, "
        f"{case.numbers[0] / 10**6:.3f} ms before it was"
    ),
    "result": _result,
    "not-woken": _not_woken,
}
