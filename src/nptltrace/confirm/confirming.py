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

__all__ = ["Confirmer", "Outcome", "Result"]

Outcome = Literal["confirmed", "refuted", "not-reached"]

# The facts that prove a suspicion, with the kinds of findings that report these facts.
_PROOFS = {
    "lock-order-inversion": {"wait-cycle": "deadlock"},
    "lost-wakeup": {"signal-missed": "lost-wakeup", "all-blocked": "stuck"},
}
# A short delay suits a short program, a long delay a slow program: runs take turns. After them, a
# run holds threads back early.
_EACH_NS = (100_000_000, 400_000_000, 1_500_000_000)
_TOTAL_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a suspicion.

    Attributes:
        candidate: The suspicion.
        outcome: `confirmed`: a run shows the deadlock. `refuted`: in none of these runs did the
            threads close the cycle. `not-reached`: in each run, a thread never came to a place of
            the suspicion.
        runs: The number of runs.
        trace: The trace of the run that shows the deadlock, or None.
        findings: The errors of that run that show it.
        delays: The delays of that run.
        roles: The roles whose threads were held back in that run.
        met: How often the threads came together in all runs.
        missed: The places that no run has passed.
        over_time: The number of runs that were ended because their time was over.
        others: Errors that runs have shown instead, each once by its sentence.
    """

    candidate: Candidate
    outcome: Outcome
    runs: int
    trace: Path | None
    findings: tuple[Finding, ...]
    delays: Delays | None
    roles: tuple[Role, ...]
    met: int
    missed: tuple[Place, ...]
    over_time: int
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
        roles: Sequence[Role] | None = None, keep: bool = True,
    ) -> Result:  # fmt: skip
        """Run the program until the suspicion is confirmed, at most `runs` times.

        Args:
            candidate: The suspicion.
            runs: The number of runs at most.
            delays: The delays of all runs; None: the runs take turns.
            roles: The roles whose threads are held back; None for all.
            keep: Keep the trace of the run that confirms the suspicion.

        Raises:
            PttError: The program cannot be recorded.
        """
        held = tuple(candidate.roles if roles is None else roles)
        met = over_time = 0
        missed: set[Place] | None = None
        unasked = False
        others: dict[str, Finding] = {}
        for number in range(runs):
            each = delays or _delays(number, early=unasked)
            with private_folder() as folder:
                trace = folder / "run.ptt"
                with Plan(folder, each, candidate, roles=held) as plan:
                    ended = run_steered(
                        self._command, trace, plan, limit_s=self._limit_s, say=self._say
                    )
                    met += plan.met
                    # All places were passed, but nobody was seen to ask for a lock there.
                    unasked = unasked or not (each.early or plan.came or plan.missed)
                    missed = set(plan.missed) & (set(plan.missed) if missed is None else missed)
                over_time += ended.over_time
                proofs, errors = _judge(trace, candidate)
                if proofs:
                    place = self._keep(trace) if keep else None
                    return Result(
                        candidate, "confirmed", number + 1, place, tuple(proofs), each, held, met,
                        (), over_time, tuple(others.values()),
                    )  # fmt: skip
                others.update((error.message, error) for error in errors)
        lacking = [place for place in candidate.places if place in (missed or set())]
        return Result(
            candidate, "not-reached" if lacking else "refuted", runs, None, (), None, held, met,
            tuple(lacking), over_time, tuple(others.values()),
        )  # fmt: skip

    def _keep(self, trace: Path) -> Path:
        """Move a trace out of the folder of its run, and return its new path."""
        place = free_name(str(self._kept), force=False)
        shutil.move(trace, place)
        return place


def _delays(number: int, *, early: bool) -> Delays:
    """Return the delays of a run by its number.

    Args:
        number: The number of the run, from 0.
        early: Hold threads back early in all runs.
    """
    turn = number % (len(_EACH_NS) + 1)
    each_ns = _EACH_NS[turn % len(_EACH_NS)]
    return Delays(each_ns, _TOTAL_NS, early=early or turn == len(_EACH_NS))


def _judge(trace: Path, candidate: Candidate) -> tuple[list[Finding], list[Finding]]:
    """Return the errors of a run that prove a suspicion, and the other errors."""
    with closing(Traceset(trace)) as source:
        # The tracer knows call sites without a choice from their stacks.
        symbols = Symbols(source, sites=False)
        checker = checked(source)
        errors = [
            finding
            for finding in findings_of(source, symbols, checker).findings
            if finding.severity == "error" and not finding.suspect
        ]
        times = set(_proofs(source, symbols, checker.check, candidate))
        kinds = _PROOFS[candidate.kind].values()
        proofs = [f for f in errors if f.kind in kinds and (f.process, f.ts_ns) in times]
        return proofs, [finding for finding in errors if finding not in proofs]


def _proofs(
    source: Traceset, symbols: Symbols, check: libptttrack_facts.Check, candidate: Candidate
) -> Iterator[tuple[int, int]]:
    """Yield process and time of facts whose threads wait for ever where a suspicion says."""
    stuck = {role.stuck.key for role in candidate.roles}
    facts, steps, threads = (check.table(name) for name in ("facts", "steps", "threads"))
    kinds = [FACTS.index(kind) for kind in _PROOFS[candidate.kind]]
    waits = [STEPS.index(what) for what in ("waits", "cond")]
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
