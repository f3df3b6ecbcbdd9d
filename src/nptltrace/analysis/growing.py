"""Whether traces still grow: one whose recorder was killed does not, though it says so itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.recording.files.session import is_killed
from nptltrace.trace.reading.watermark import Settled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["ended_ns", "is_recorded", "killed", "remarks"]


def killed(source: Traceset) -> list[Path]:
    """Return the traces whose recorder was killed, and which nobody has finished."""
    return [trace.path for trace in source.traces if trace.running and is_killed(trace.path)]


def is_recorded(source: Traceset) -> bool:
    """Return whether one of the traces still grows."""
    return any(map(_grows, source.traces))


def _grows(trace: TraceFiles) -> bool:
    return trace.running and not is_killed(trace.path)


def ended_ns(source: Traceset) -> list[int | None]:
    """Return when each process was seen to have ended, or until when it is known to have gone on.

    While a trace grows, that is the time up to which all events are on disk.
    """
    settled = Settled(source)
    return source.ended_ns(lambda trace: settled.until_ns() if _grows(trace) else None)


def remarks(paths: Iterable[Path]) -> list[str]:
    """Return what is to be done about such traces, a sentence each."""
    return [
        f"{path}: its recorder was killed: `ptt recover {path}` finishes the trace"
        for path in paths
    ]
