"""Lost events that handlers and the tracer report in events of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding import libpttread
from nptltrace.catalog import EVENTS
from nptltrace.trace.threads import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ReportedLoss", "reported_losses"]

# Names of the tracer's field `cause`; see native/tracer/process/process.h.
_CAUSES = {1: "shared_storage"}


class ReportedLoss(NamedTuple):
    """A report of lost events.

    Attributes:
        thread: Number of the reporting thread in the traceset.
        t_ns: Time of the report, in ns since the traceset's start.
        cause: The cause as commands print it.
        events: Number of lost events.
    """

    thread: int
    t_ns: int
    cause: str
    events: int


def reported_losses(reader: libpttread.Reader) -> Iterator[ReportedLoss]:
    """Yield all reports in order of time."""
    numbers = [event.id for event in EVENTS if event.role == "lost"]
    for buffer in reader.find(numbers, ALL):
        threads, times = buffer.arrays["thread"], buffer.arrays["ts"]
        fields = (libpttread.numbers(buffer, name) for name in ("cause", "count"))
        for i, (cause, count) in enumerate(zip(*fields, strict=True)):
            name = _CAUSES.get(cause, f"cause {cause}")
            yield ReportedLoss(int(threads[i]), int(times[i]), name, count)
