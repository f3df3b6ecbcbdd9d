"""Lost events that handlers and the tracer report in events of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding import libpttread
from nptltrace.catalog import EVENTS
from nptltrace.trace.threads import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

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
        causes, counts = _field(buffer, "cause"), _field(buffer, "count")
        for i in range(buffer.count):
            cause = int(causes[i])
            yield ReportedLoss(
                int(buffer.arrays["thread"][i]),
                int(buffer.arrays["ts"][i]),
                _CAUSES.get(cause, f"cause {cause}"),
                int(counts[i]),
            )


def _field(buffer: libpttread.Buffer, name: str) -> NDArray[np.int64]:
    """Return a field of events, 0 for events without the field."""
    import numpy as np

    values, valid = np.zeros(buffer.count, np.int64), np.zeros(buffer.count, np.uint8)
    libpttread.field_column(buffer, name, values.ctypes.data, valid.ctypes.data)
    return values
