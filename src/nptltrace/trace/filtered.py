"""Analysis of a recording that left out types of events (`ptt record --filter`).

An analysis would be wrong if it saw locks that are taken and never released. So it sees each domain
up to the last complete detail level. A level is complete if no event that changes a state is
missing. The trace then looks like a trace that was recorded at that level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from nptltrace.trace.traceset import Traceset

__all__ = ["always_kept", "knows_orders", "levels_left_out", "whole_filter"]

# Roles of events that neither begin nor end a state.
_ASIDE = frozenset({"note", "error", "name"})
# A filter never leaves out events with these roles, and events of these domains.
_ALWAYS_ROLES = frozenset({"create", "begin", "end", "name"})
_ALWAYS = frozenset({"process", "handler"})
# Events of these domains order the events of different threads.
_ORDERING = frozenset({"thread", "barrier"})


def levels_left_out(source: Traceset) -> dict[str, int]:
    """Return by domain the lowest incomplete level; complete domains are not in it."""
    left_out = {name for trace in source.traces for name in trace.info.session.filtered_out}
    levels: dict[str, int] = {}
    for event in EVENTS:
        if event.name in left_out and event.role not in _ASIDE:
            levels[event.domain] = min(event.level, levels.get(event.domain, event.level))
    return levels


def whole_filter(source: Traceset) -> libpttread.Filter | None:
    """Return a filter that passes the events that an analysis can rely on; None for all events."""
    incomplete = levels_left_out(source)
    if not incomplete:
        return None
    made = libpttread.Filter()
    made.allow_events(
        event.id for event in EVENTS if event.level < incomplete.get(event.domain, event.level + 1)
    )
    made.allow_events(always_kept())
    return made


def always_kept() -> list[int]:
    """Return the ids of the events that no filter leaves out."""
    return [e.id for e in EVENTS if e.role in _ALWAYS_ROLES or e.domain in _ALWAYS]


def knows_orders(source: Traceset) -> bool:
    """Return whether the traces have all events that order the events of threads."""
    return not _ORDERING & set(levels_left_out(source))
