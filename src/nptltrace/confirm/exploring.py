"""Runs a program many times with random delays at synchronization, and collects the findings."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace._files.trace_directories import free_name
from nptltrace.analysis.findings import find
from nptltrace.confirm.plan import Plan
from nptltrace.confirm.steered_run import private_folder, run_steered
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from pathlib import Path

    from nptltrace.analysis.finding_rules import Rules
    from nptltrace.analysis.findings import Finding
    from nptltrace.confirm.plan import Delays

__all__ = ["Exploration", "Seen", "explore"]


@dataclass(slots=True)
class Seen:
    """A finding of one or more runs.

    Attributes:
        finding: The finding, as the first of these runs shows it.
        seeds: The seeds of the runs.
        trace: The trace of the first of these runs, or None for a warning.
    """

    finding: Finding
    seeds: list[int]
    trace: Path | None


@dataclass(slots=True)
class Exploration:
    """What runs with random delays have shown.

    Attributes:
        seeds: The seed of each run.
        seen: The findings: errors first, then the findings of the most runs.
        failed: By exit status other than 0, the seeds of the runs that ended by themselves with it.
        hung: The seeds of the runs that hung, each with the reason.
        delays: The number of delays in all runs.
        spent_ns: The time of all delays, in ns.
    """

    seeds: list[int] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    failed: dict[int, list[int]] = field(default_factory=dict)
    hung: dict[int, str] = field(default_factory=dict)
    delays: int = 0
    spent_ns: int = 0


def explore(
    command: Sequence[str], seeds: Sequence[int], delays: Delays, *, until_s: float | None,
    limit_s: float, kept: Path, rules: Rules, say: Callable[[str], None],
) -> Exploration:  # fmt: skip
    """Run a program once for each seed, until a time is over, but at least once.

    Args:
        command: The program with its arguments.
        seeds: The seed of each run.
        delays: How long threads are delayed.
        until_s: Begin no further run after this time of `time.monotonic()`; None for no limit.
        limit_s: A run is ended after this time, in s.
        kept: Where the trace of the first run with an error goes; for further errors, a number is
            added.
        rules: The findings to collect.
        say: Called with remarks for the user.

    Raises:
        PttError: The program cannot be recorded.
    """
    result = Exploration()
    found: dict[Hashable, Seen] = {}
    for seed in seeds:
        if result.seeds and until_s is not None and time.monotonic() >= until_s:
            break
        with private_folder() as folder:
            trace = folder / "run.ptt"
            with Plan(folder, delays, seed=seed) as plan:
                ended = run_steered(command, trace, plan, limit_s=limit_s, say=say)
                result.delays += plan.delays
                result.spent_ns += plan.spent_ns
            result.seeds.append(seed)
            if ended.hang:
                result.hung[seed] = ended.hang
            elif ended.status:
                result.failed.setdefault(ended.status, []).append(seed)
            place: Path | None = None
            for finding in _findings(trace, rules):
                seen = found.setdefault(_key(finding), Seen(finding, [], None))
                if not seen.seeds and finding.severity == "error":
                    place = place or free_name(str(kept), force=False)
                    seen.trace = place
                if seed not in seen.seeds:
                    seen.seeds.append(seed)
            if place is not None:
                shutil.move(trace, place)
    result.seen = sorted(found.values(), key=_rank)
    return result


def _findings(trace: Path, rules: Rules) -> list[Finding]:
    with closing(Traceset(trace)) as source:
        return rules.chosen(find(source, Symbols(source), wanted=rules.kinds).findings)


def _key(finding: Finding) -> Hashable:
    """Return what is the same for a finding in several runs. Addresses and threads differ."""
    return finding.kind, finding.severity, tuple(sorted(finding.sites))


def _rank(seen: Seen) -> tuple[bool, int]:
    return seen.finding.severity != "error", -len(seen.seeds)
