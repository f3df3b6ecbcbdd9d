"""Of which kinds of objects a recording has all changes of state, by the level it was made at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nptltrace.catalog import DOMAINS
from nptltrace.errors import UsageError
from nptltrace.recording.settings.levels import parse_levels
from nptltrace.trace.filtered import levels_left_out

if TYPE_CHECKING:
    from nptltrace.trace.info import Session
    from nptltrace.trace.traceset import Traceset

__all__ = ["add_levels"]

# From this level on it is recorded who takes a lock, and not only who waits.
_STATES = 2


class Leveled(Protocol):
    """What follows the events of processes."""

    def level(self, process: int, kinds: int) -> None:
        """Take in of which kinds of objects, a bit each, a process has all changes of state."""


def add_levels(consumer: Leveled, source: Traceset) -> None:
    """Say of which kinds of objects each process has what changes their state.

    Where the levels changed meanwhile, the events must show it.

    Args:
        consumer: What follows the events.
        source: The opened traces.
    """
    left_out = levels_left_out(source)
    sessions = [trace.info.session for trace in source.traces]
    kinds = [_kinds(session, left_out) for session in sessions]
    for number, (trace, _, _) in enumerate(source.reader.processes(0)):
        if kinds[trace]:
            consumer.level(number, kinds[trace])


def _kinds(session: Session, left_out: dict[str, int]) -> int:
    """Return the kinds of which a trace has all changes of state, a bit each."""
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
