"""Information about traces: the state of the recording, remarks, lost events, processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from nptltrace._escaping import readable
from nptltrace.analysis import recording_state

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from nptltrace.trace.traceset import Traceset
    from nptltrace.ui import protocol

__all__ = ["losses", "processes", "remarks", "state"]


def state(
    source: Traceset, killed: Collection[Path]
) -> Literal["running", "complete", "killed", "recovered"]:
    """Return the state of the recording; of several recordings, the least finished state.

    Args:
        source: The opened traces.
        killed: Paths of unfinished traces with a dead recorder.
    """
    states = {
        "killed" if trace.path in killed else trace.info.session.state for trace in source.traces
    }
    if "running" in states:
        return "running"
    if "killed" in states:
        return "killed"
    return "recovered" if "recovered" in states else "complete"


def remarks(source: Traceset, killed: Collection[Path]) -> list[str]:
    """Return remarks about the traces for the user, a sentence each.

    Args:
        source: The opened traces.
        killed: Paths of unfinished traces with a dead recorder.
    """
    return recording_state.remarks(killed) + source.remarks()


def losses(source: Traceset) -> list[protocol.Loss]:
    """Return the numbers of lost events, by trace and cause."""
    return [
        {"path": str(trace.path), "cause": cause, "count": count}
        for trace in source.traces
        for cause, count in source.losses(trace).items()
    ]


def processes(source: Traceset) -> list[protocol.Process]:
    """Return the processes, in the order of their numbers."""

    def since(unix_ns: int | None) -> int | None:
        return None if unix_ns is None else unix_ns - source.start_unix_ns

    return [
        {
            "process": number,
            "pid": process.pid,
            "ppid": process.ppid,
            "name": readable(process.exe.rpartition("/")[2]) or f"process {process.pid}",
            "exe": readable(process.exe),
            "cmdline": [str(word) for word in process.cmdline],
            "start_ns": since(process.start_unix_ns),
            "end_ns": since(process.end_unix_ns),
        }
        for number, process in enumerate(source.processes)
    ]
