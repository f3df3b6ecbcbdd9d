"""Runs a program again and again, until a suspicion is confirmed or the runs are over."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Literal

from nptltrace._binding.libptttrack_facts import DROPPED, FACTS, STEPS
from nptltrace._dataclasses import dataclass
from nptltrace._files.trace_directories import free_name
from nptltrace.analysis.checking.checker import checked
from nptltrace.analysis.findings import findings_of
from nptltrace.confirm.candidates import place_of
from nptltrace.confirm.plan import Delays, Plan
from nptltrace.confirm.steered_run import private_folder, run_steered
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nptltrace._binding import libptttrack_facts
    from nptltrace.analysis.findings import Finding
    from nptltrace.confirm.candidates import Candidate, Place, Role
    from nptltrace.confirm.steered_run import Ended

__all__ = ["Confirmer", "Outcome", "Result"]

Outcome = Literal["confirmed", "refuted", "not-reached"]

# The facts that prove a suspicion, with the kinds of findings that report these facts.
_PROOFS = {
    "lock-order-inversion": {"wait-cycle": "deadlock"},
    "wait-holding-lock": {"wait-cycle": "deadlock", "all-blocked": "stuck"},
    "lost-wakeup": {"signal-missed": "lost-wakeup", "all-blocked": "stuck"},
}
# A short delay suits a short program, a long delay a slow program: runs take turns. After them, a
# run holds threads back early.
_EACH_NS = (100_000_000, 400_000_000, 1_500_000_000)
_TOTAL_NS = 10_000_000_000
# Runs for several suspicions at a time, before each has runs of its own.
_SHARED_RUNS = 4


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a suspicion.

    Attributes:
        candidate: The suspicion.
        outcome: `confirmed`: a run shows the deadlock. `refuted`: in none of these runs did the
            threads close the cycle. `not-reached`: in each run, no thread came to some place of the
            suspicion.
        runs: The number of runs.
        trace: The trace of the run that shows the deadlock, or None.
        findings: The errors of that run that show it.
        delays: The delays of that run.
        held_back: The numbers of the roles whose threads the plan of that run holds back.
        met: How often the threads came together in all runs.
        missed: The places that no run has passed.
        free: The roles without a thread that was held back in any of the runs.
        over_time: The number of runs that were ended because their time was over.
        quiet: The number of runs that were ended because no thread ran after a meeting.
        others: Errors that runs have shown instead, each once by its sentence.
    """

    candidate: Candidate
    outcome: Outcome
    runs: int
    trace: Path | None
    findings: tuple[Finding, ...]
    delays: Delays | None
    held_back: tuple[int, ...]
    met: int
    missed: tuple[Place, ...]
    free: tuple[Role, ...]
    over_time: int
    quiet: int
    others: tuple[Finding, ...]


class Confirmer:
    """Runs a program to confirm suspicions.

    Args:
        command: The program with its arguments.
        limit_s: A run is ended after this time, in s.
        kept: Where the trace of a confirmed suspicion goes. If that exists, a number is added.
        say: Called with remarks for the user.
    """

    def __init__(
        self, command: Sequence[str], *, limit_s: float, kept: Path, say: Callable[[str], None]
    ) -> None:
        self._command, self._limit_s, self._kept, self._say = command, limit_s, kept, say

    def confirm(
        self, candidate: Candidate, runs: int, *, delays: Delays | None = None,
        held_back: Sequence[int] | None = None, keep: bool = True,
    ) -> Result:  # fmt: skip
        """Run the program until the suspicion is confirmed, at most `runs` times.

        Args:
            candidate: The suspicion.
            runs: The number of runs at most.
            delays: The delays of all runs; None: the runs take turns.
            held_back: The numbers of the roles whose threads are held back; None for all.
            keep: Keep the trace of the run that confirms the suspicion.

        Raises:
            PttError: The program cannot be recorded.
        """
        pending = _Pending(candidate, held_back)
        while pending.runs < runs:
            for result in self._run([pending], delays, keep=keep):
                return result
        return pending.refuted()

    def confirm_all(self, candidates: Sequence[Candidate], runs: int) -> Iterator[Result]:
        """Yield what becomes of suspicions, each when it is known.

        In the first runs, threads are held back for several suspicions at a time.

        Args:
            candidates: The suspicions.
            runs: The number of runs for each suspicion at most.

        Raises:
            PttError: The program cannot be recorded.
        """
        waiting = [_Pending(candidate) for candidate in candidates]
        for group in _groups(waiting):
            for _ in range(min(_SHARED_RUNS, runs)):
                shared = [each for each in group if each in waiting]
                if len(shared) > 1:
                    for result in self._run(shared, None, keep=True):
                        waiting = [w for w in waiting if w.candidate is not result.candidate]
                        yield result
        for pending in waiting:
            confirmed = None
            while pending.runs < runs and confirmed is None:
                confirmed = next(self._run([pending], None, keep=True), None)
            yield confirmed or pending.refuted()

    def _run(
        self, together: Sequence[_Pending], delays: Delays | None, *, keep: bool
    ) -> Iterator[Result]:
        """Run the program once, and yield the suspicions that the run confirms."""
        alone = together[0] if len(together) == 1 else None
        each_run = delays or _delays(
            together[0].runs,
            early=None if alone is None else alone.unasked or alone.candidate.early,
        )
        with private_folder() as folder:
            trace = folder / "run.ptt"
            groups = [(each.candidate, each.held_back) for each in together]
            with Plan(folder, each_run, groups) as plan:
                ended = run_steered(
                    self._command, trace, plan, limit_s=self._limit_s, say=self._say
                )
                for number, each in enumerate(together):
                    each.add(plan, number, each_run, ended)
            place: Path | None = None
            with closing(Traceset(trace)) as source:
                judged = _judge(source, [each.candidate for each in together])
            for each, (_, errors) in zip(together, judged, strict=True):
                each.others.update((error.message, error) for error in errors)
            for each, (proofs, _) in zip(together, judged, strict=True):
                if proofs and keep and place is None:
                    place = free_name(str(self._kept), force=False)
                    shutil.move(trace, place)
                if proofs:
                    yield each.confirmed(place, proofs, each_run)


class _Pending:
    """A suspicion that no run has confirmed yet."""

    def __init__(self, candidate: Candidate, held_back: Sequence[int] | None = None) -> None:
        self.candidate = candidate
        self.held_back = tuple(range(len(candidate.roles)) if held_back is None else held_back)
        self.runs = self._met = self._over_time = self._quiet = 0
        # The places that each run has missed, and the roles that had a thread in a run.
        self._missed: list[set[Place]] = []
        self._had: set[int] = set()
        self.unasked = False
        self.others: dict[str, Finding] = {}

    def add(self, plan: Plan, number: int, delays: Delays, ended: Ended) -> None:
        """Add a run.

        Args:
            plan: The plan of the run.
            number: Number of the suspicion in the plan.
            delays: The delays of the run.
            ended: The end of the run.
        """
        missed = set(plan.missed(self.candidate))
        had = {
            role
            for role, count in zip(self.held_back, plan.held_back(number), strict=True)
            if count
        }
        self.runs += 1
        self._met += plan.met_by(number)
        # All places were passed, but no request for a lock there was held back.
        self.unasked = self.unasked or not (delays.early or had or missed)
        self._missed.append(missed)
        self._had |= had
        self._over_time += ended.over_time
        self._quiet += ended.quiet

    def confirmed(self, trace: Path | None, proofs: Sequence[Finding], delays: Delays) -> Result:
        """Return the result if the last run has confirmed the suspicion."""
        return self._result("confirmed", trace, tuple(proofs), delays, ())

    def refuted(self) -> Result:
        """Return the result if no run has confirmed the suspicion."""
        if not all(self._missed):
            return self._result("refuted", None, (), None, ())
        lacking = set.intersection(*self._missed)
        places = [place for place in self.candidate.places if place in lacking]
        return self._result("not-reached", None, (), None, tuple(places))

    def _result(
        self, outcome: Outcome, trace: Path | None, proofs: tuple[Finding, ...],
        delays: Delays | None, lacking: tuple[Place, ...],
    ) -> Result:  # fmt: skip
        free = tuple(
            role for number, role in enumerate(self.candidate.roles) if number not in self._had
        )
        return Result(
            self.candidate, outcome, self.runs, trace, proofs, delays, self.held_back, self._met,
            lacking, free, self._over_time, self._quiet, tuple(self.others.values()),
        )  # fmt: skip


def _groups(waiting: Sequence[_Pending]) -> list[list[_Pending]]:
    """Return suspicions that fit into a plan together.

    Threads of several processes meet by their roles alone, and so do threads that are held back
    early. Such a suspicion has a plan of its own. A thread has one role at a time. So suspicions
    with the same role are in different plans.
    """
    groups: list[list[_Pending]] = []
    for each in waiting:
        if each.candidate.across or each.candidate.early:
            continue
        for group in groups:
            others = [other.candidate for other in group]
            if Plan.fits([*others, each.candidate]) and not any(
                _share_role(each.candidate, other) for other in others
            ):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _share_role(one: Candidate, other: Candidate) -> bool:
    """Return whether a thread may have a role of each of two suspicions at the same place."""
    return any(
        a.asked.key == b.asked.key
        and (a.held is None or b.held is None or a.held.key == b.held.key)
        for a in one.roles
        for b in other.roles
    )


def _delays(number: int, *, early: bool | None) -> Delays:
    """Return the delays of a run by its number.

    Args:
        number: The number of the run, from 0.
        early: Hold threads back early in all runs; None: in no run.
    """
    turn = number % (len(_EACH_NS) + 1)
    each_ns = _EACH_NS[turn % len(_EACH_NS)]
    turned = early is not None and turn == len(_EACH_NS)
    return Delays(each_ns, _TOTAL_NS, early=bool(early) or turned)


def _judge(
    source: Traceset, candidates: Sequence[Candidate]
) -> list[tuple[list[Finding], list[Finding]]]:
    """Return for each suspicion the errors of a run that prove it, and the other errors.

    Args:
        source: The opened trace of the run.
        candidates: The suspicions.
    """
    # The tracer knows call sites without a choice from their stacks, but not in Python.
    python = any(place.python for each in candidates for place in each.places)
    symbols = Symbols(source, sites=python)
    checker = checked(source)
    errors = [
        finding
        for finding in findings_of(source, symbols, checker).findings
        if finding.severity == "error" and not finding.suspect
    ]
    judged = []
    for candidate in candidates:
        times = set(_proofs(source, symbols, checker.check, candidate))
        kinds = _PROOFS[candidate.kind].values()
        proofs = [f for f in errors if f.kind in kinds and (f.process, f.ts_ns) in times]
        judged.append((proofs, [finding for finding in errors if finding not in proofs]))
    return judged


def _proofs(
    source: Traceset, symbols: Symbols, check: libptttrack_facts.Check, candidate: Candidate
) -> Iterator[tuple[int, int]]:
    """Yield process and time of facts whose threads wait for ever where a suspicion says."""
    stuck = {role.stuck.key for role in candidate.roles}
    if candidate.kind == "wait-holding-lock":
        stuck |= {role.after.key for role in candidate.roles if role.after is not None}
    facts, steps, threads = (check.table(name) for name in ("facts", "steps", "threads"))
    kinds = [FACTS.index(kind) for kind in _PROOFS[candidate.kind]]
    waits = [STEPS.index(what) for what in ("waits", "cond", "joins", "barrier")]
    for fact in facts[1:]:
        if int(fact["kind"]) not in kinds or int(fact["flags"]) & DROPPED:
            continue
        first = int(fact["first_step"])
        rows = steps[first : first + int(fact["steps"])]
        places = (
            place_of(source, symbols, int(threads["process"][row["thread"]]), int(row["site"]))
            for row in rows
            if int(row["what"]) in waits
        )
        if stuck <= {place.key for place in places if place is not None}:
            yield int(fact["process"]), int(fact["ts"])
