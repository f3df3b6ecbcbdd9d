"""The state of a recording: whether it is still running, its clocks, and its levels.

If a recorder is killed, its trace still says that it is running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.catalog import DOMAINS
from nptltrace.errors import UsageError
from nptltrace.recording.files.session import is_killed
from nptltrace.recording.settings.levels import parse_levels
from nptltrace.trace.filtered import levels_left_out
from nptltrace.trace.reading.watermark import Settled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nptltrace._binding.libptttrack_facts import Check
    from nptltrace._binding.libptttrack_sums import Model
    from nptltrace.trace.info import Session
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = [
    "add_levels", "ended_ns", "is_recorded", "killed", "monotonic_ns", "refuse_unfinished",
    "remarks",
]  # fmt: skip

_NS = 1_000_000_000
# From this level on, a trace has all acquisitions of locks, and not only the waits.
_STATES = 2


def killed(source: Traceset) -> list[Path]:
    """Return the traces with a killed recorder that nobody has recovered."""
    return [trace.path for trace in source.traces if trace.running and is_killed(trace.path)]


def remarks(paths: Iterable[Path]) -> list[str]:
    """Return a sentence for each trace with a killed recorder: how to recover the trace."""
    return [
        f"{path}: its recorder was killed: `ptt recover {path}` finishes the trace"
        for path in paths
    ]


def refuse_unfinished(source: Traceset) -> None:
    """Refuse traces that a recorder writes, or that nobody has recovered.

    Raises:
        UsageError: There is such a trace.
    """
    for trace in source.traces:
        if trace.running:
            dead = is_killed(trace.path)
            raise UsageError(
                remarks([trace.path])[0] if dead else f"{trace.path} is being recorded"
            )


def is_recorded(source: Traceset) -> bool:
    """Return whether a recorder still writes one of the traces."""
    return any(map(_grows, source.traces))


def _grows(trace: TraceFiles) -> bool:
    return trace.running and not is_killed(trace.path)


def ended_ns(source: Traceset) -> list[int | None]:
    """Return the end of each process, or the last time when the process is known to run.

    While a trace grows, the known time ends where the complete events on disk end.

    Returns:
        A time for each process by its number, in ns since the traceset's start; None if unknown.
    """
    settled = Settled(source)
    return source.ended_ns(lambda trace: settled.until_ns() if _grows(trace) else None)


def monotonic_ns(source: Traceset, trace: TraceFiles) -> int | None:
    """Return CLOCK_MONOTONIC at time 0 of the traceset in ns, None if the trace does not say.

    Args:
        source: The opened traces.
        trace: A trace among them.
    """
    place, session = source.alignment.placements[trace.number], trace.info.session
    start, at = session.number("clock", "start"), session.number("clock", "start_monotonic_ns")
    if session.string("clock", "name") == "monotonic" and place.frequency == _NS:
        start = at = 0
    elif "derived_from" in session.raw:
        at = None  # of a part of a trace, `start` is the start of the part itself
    if start is None or at is None:
        return None
    return at + (place.origin - start) * _NS // place.frequency - place.shift_ns


def add_levels(consumer: Model | Check, source: Traceset) -> None:
    """Tell a model or checker the kinds of objects with all changes of state, by process.

    If the levels changed during the recording, the events must show it.

    Args:
        consumer: The model or checker.
        source: The opened traces.
    """
    left_out = levels_left_out(source)
    sessions = [trace.info.session for trace in source.traces]
    kinds = [_kinds(session, left_out) for session in sessions]
    for number, (trace, _, _) in enumerate(source.reader.processes(0)):
        if kinds[trace]:
            consumer.level(number, kinds[trace])


def _kinds(session: Session, left_out: dict[str, int]) -> int:
    """Return the kinds of objects with all changes of state in a trace, as bits by `DOMAINS`."""
    if not session.level or session.raw.get("level_changed"):
        return 0
    try:
        levels = parse_levels(session.level)
    except UsageError:
        return 0
    return sum(
        1 << number
        for name, number in DOMAINS.items()
        if min(levels.of(name) or 0, left_out.get(name, _STATES + 1) - 1) >= _STATES
    )
