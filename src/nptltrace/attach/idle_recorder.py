"""A recording by a recorder that already runs with level 0: the level is raised for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nptltrace.errors import UsageError
from nptltrace.recording.control import ControlPage, trace_of
from nptltrace.recording.files.session import start_time
from nptltrace.recording.settings.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.attach.recording import AttachOptions

__all__ = ["control_page_of", "record_with_idle_recorder"]

# After this time the recorder has written all events to disk.
_WRITTEN_S = 2.5
_LOOK_S = 0.05
# The system clock and the trace's clock differ by less than this.
_MARGIN_NS = 2_000_000


def control_page_of(pid: int) -> ControlPage | None:
    """Return the control page of a process, None if the process has no recorder.

    Raises:
        UsageError: There is no such process, or its recorder records already.
    """
    try:
        page = ControlPage.of(pid)
    except UsageError as error:
        if "no process" in str(error):
            raise
        return None
    if any(page.read().values()):
        raise UsageError(
            f"process {pid} is being recorded already, into {trace_of(pid)}; "
            "ptt level changes its detail level"
        )
    return page


def record_with_idle_recorder(
    page: ControlPage, options: AttachOptions, ended: Callable[[], bool]
) -> tuple[int, Path]:
    """Raise the levels of a process for a while, and write the part of its trace.

    Args:
        page: The control page of the process, with all levels 0.
        options: The options of the recording.
        ended: Called many times a second; returns whether the recording should end.

    Returns:
        The number of events, and the trace directory.

    Raises:
        PttError: The trace cannot be read or written.
    """
    from nptltrace._binding import libpttread
    from nptltrace.analysis.cutting import write_cut
    from nptltrace.trace.copying import Part
    from nptltrace.trace.selection import Selection
    from nptltrace.trace.traceset import Traceset

    trace = trace_of(page.pid)
    begin = time.time_ns() - _MARGIN_NS
    until = None if options.duration_ns is None else time.monotonic_ns() + options.duration_ns
    page.write(options.levels)
    try:
        while (
            not ended()
            and start_time(page.pid) is not None
            and (until is None or time.monotonic_ns() < until)
        ):
            time.sleep(_LOOK_S)
    finally:
        page.write(Levels(0))
    end = time.time_ns() + _MARGIN_NS
    time.sleep(_WRITTEN_S)
    source = Traceset(trace)
    first = max(0, begin - source.start_unix_ns)
    last = max(first, end - source.start_unix_ns)
    cursor = libpttread.Cursor(source.reader)
    cursor.seek_key(source.reader.key_of_time(first))
    stop = libpttread.Position(source.reader.key_of_time(last), 0, 0, 0, 0)
    numbers = Selection(pids=[str(page.pid)]).thread_numbers(source)
    part = Part(
        cursor.place(), stop, None if numbers is None else frozenset(numbers),
        begin_ns=first, end_ns=last,
    )  # fmt: skip
    written = write_cut(source, options.output, part, force=options.force)
    return written.events, written.path
