"""Suspicions, and what became of them, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli.output.text import check_text
from nptltrace.cli.output.text.table import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.confirm.candidates import Candidate
    from nptltrace.confirm.confirming import Result
    from nptltrace.confirm.exploring import Exploration

__all__ = ["explored", "listed", "result"]

_SEEDS_SHOWN = 5

# Why a cycle of lock orders cannot close. The finding lock-order-inversion explains the reasons.
_REASONS = {
    "gate": "the threads hold another lock in common",
    "one-thread": "one thread has two of the orders",
    "shared": "all threads only read",
    "try": "a thread only tries to take its lock",
    "apart": "a creation, join or barrier puts the orders one after the other",
    "covered": "its orders are part of other warnings",
    "semaphore": "a semaphore keeps one of the threads out",
}


def listed(candidates: Sequence[Candidate]) -> Iterator[str]:
    """Yield the lines of `ptt confirm --list`."""
    if not candidates:
        yield "no warnings"
    number = 0
    for candidate in candidates:
        number += not candidate.impossible
        yield f"{'-' if candidate.impossible else number}  {_title(candidate)}"
        yield from _roles(candidate)
        for reason in candidate.impossible:
            yield from wrap(f"cannot happen: {_REASONS.get(reason, reason)}", "   ", "   ")
        if candidate.happened:
            yield "   happened in this trace"
        yield ""


def result(found: Result, number: int) -> Iterator[str]:
    """Yield what became of a suspicion.

    Args:
        found: The result.
        number: The number of the suspicion in `ptt confirm --list`.
    """
    candidate = found.candidate
    runs = f"{found.runs} {plural(found.runs, 'run')}"
    yield f"warning {number}: {_title(candidate)}"
    yield from _roles(candidate)
    if found.outcome == "confirmed":
        nth = "the first run" if found.runs == 1 else f"run {found.runs}"
        kept = f"; trace in {found.trace}" if found.trace is not None else ""
        yield f"confirmed in {nth}{kept}"
        yield ""
        for finding in found.findings:
            yield from check_text.finding(finding)
        return
    yield from _unconfirmed(found, runs)
    yield ""
    for finding in found.others:
        yield "The runs have shown another error:"
        yield from check_text.finding(finding)


def _unconfirmed(found: Result, runs: str) -> Iterator[str]:
    """Yield why a suspicion is not confirmed, and how its runs were ended."""
    if found.outcome == "not-reached":
        who = (
            "no thread came to these call sites"
            if found.missed
            else "each run has missed one of the call sites, but not all the same"
        )
        yield from wrap(f"not reached in {runs}: {who}", "", "  ")
        for place in found.missed:
            yield f"  {place.text}"
    elif found.met:
        yield from wrap(
            f"refuted for {runs}: the threads came together {found.met:,} "
            f"{plural(found.met, 'time')}, and no deadlock followed", "", "  ",
        )  # fmt: skip
    elif found.free:
        yield from wrap(f"refuted for {runs}: the threads never came together", "", "  ")
        for role in found.free:
            yield from wrap(f"a thread was not held back: {role.asked.text}", "  ", "    ")
    else:
        yield from wrap(
            f"refuted for {runs}: the threads never came together, although each was held back",
            "", "  ",
        )  # fmt: skip
    ended = {
        "by --time-limit": found.over_time,
        "because no thread ran after the threads had met": found.quiet,
    }
    for why, count in ended.items():
        if count:
            many = f"{count} {plural(count, 'run was', 'runs were')}"
            yield from wrap(f"{many} ended {why}", "  ", "  ")


def explored(found: Exploration, seeds: str) -> Iterator[str]:
    """Yield what runs with random delays have shown.

    Args:
        found: The runs.
        seeds: The seeds of the runs, as text.
    """
    for seen in found.seen:
        yield from check_text.finding(seen.finding)
        runs = f"in {len(seen.seeds)} of {len(found.seeds)} runs"
        kept = f"; trace in {seen.trace}" if seen.trace is not None else ""
        yield from wrap(f"{runs}: {_seeds(seen.seeds)}{kept}", "  ", "  ")
        yield ""
    for status, failed in found.failed.items():
        yield from wrap(f"exit status {status}: {_seeds(failed)}", "", "  ")
    for seed, why in found.hung.items():
        yield from wrap(f"ended with seed {seed}: {why}", "", "  ")
    delays = f"{found.delays:,} {plural(found.delays, 'delay')}, {found.spent_ns / 1e9:.1f} s"
    many = f"{len(found.seeds)} {plural(len(found.seeds), 'run')}"
    what = (
        f"{len(found.seen)} {plural(len(found.seen), 'finding')}" if found.seen else "no findings"
    )
    yield f"{many} with {seeds}: {what} ({delays} in all threads)"


def _seeds(seeds: Sequence[int]) -> str:
    shown = ", ".join(map(str, seeds[:_SEEDS_SHOWN]))
    more = f" and {len(seeds) - _SEEDS_SHOWN} more" if len(seeds) > _SEEDS_SHOWN else ""
    return f"{plural(len(seeds), 'seed', 'seeds')} {shown}{more}"


def _title(candidate: Candidate) -> str:
    if candidate.kind == "lost-wakeup":
        waits = f"{candidate.count:,} {plural(candidate.count, 'wait')}"
        return f"a signal comes before the wait ({waits})"
    if candidate.kind == "wait-holding-lock":
        return "a thread waits with a lock that another thread needs to end the wait"
    count = len(candidate.roles)
    where = " of different processes" if candidate.across else ""
    times = f", {candidate.count} sets of locks" if candidate.count > 1 else ""
    return f"{count} threads{where} ask for locks in a cycle{times}"


def _roles(candidate: Candidate) -> Iterator[str]:
    for role in candidate.roles:
        if candidate.kind == "lost-wakeup" and role.after is not None:
            yield f"   waits at {role.stuck.text}"
            yield f"     with the lock taken at {role.asked.text}"
            yield f"     after the signal at {role.after.text}"
        elif role.after is not None:
            yield f"   {role.after.text} waits with the lock"
            yield f"   {role.asked.text} asks for the lock afterwards"
        else:
            yield f"   {role.asked.text}"
        if role.held is not None:
            yield f"     with the lock taken at {role.held.text}"
