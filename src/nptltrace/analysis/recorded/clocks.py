"""What the clocks of a machine showed when a traceset begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["monotonic_ns"]

_NS = 1_000_000_000


def monotonic_ns(source: Traceset, trace: TraceFiles) -> int | None:
    """Return CLOCK_MONOTONIC at time 0, None where the trace does not say.

    Args:
        source: The opened traces.
        trace: One of them.
    """
    place, session = source.alignment.placements[trace.number], trace.info.session
    start, at = session.number("clock", "start"), session.number("clock", "start_monotonic_ns")
    if session.string("clock", "name") == "monotonic" and place.frequency == _NS:
        start = at = 0
    elif "derived_from" in session.raw:
        at = None  # a part of a trace says when it starts itself
    if start is None or at is None:
        return None
    return at + (place.origin - start) * _NS // place.frequency - place.shift_ns
