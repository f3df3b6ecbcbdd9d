"""POSIX tracing in Python: controller, traced process and analyzer of `<trace.h>`.

A controller and an analyzer:

    from nptltrace import posix

    with posix.create(pid, log="run.log") as stream:
        stream.start()
        input("Enter ends the tracing")

    with posix.open_log("run.log") as log:
        for event in log:
            print(event.time_ns, event.name, event.data)

A program with trace points of its own:

    order = posix.event_type("order taken")
    posix.event(order, b"17")

A call that waits lets other Python threads run. A call that fails raises `PosixTraceError`, an
`OSError`; its `errno` is the error number of the C function. After `os.fork()`, the streams belong
to the parent only.
"""

from __future__ import annotations

from nptltrace._binding.libposixtrace import PosixTraceError
from nptltrace.posix.attributes import Attributes
from nptltrace.posix.constants import (
    FilterChange,
    LogFullPolicy,
    StreamFullPolicy,
    SystemEvent,
    Truncation,
)
from nptltrace.posix.events import Event, EventSet, EventType, event, event_type
from nptltrace.posix.streams import Log, Status, Stream, create, open_log

__all__ = [
    "Attributes",
    "Event",
    "EventSet",
    "EventType",
    "FilterChange",
    "Log",
    "LogFullPolicy",
    "PosixTraceError",
    "Status",
    "Stream",
    "StreamFullPolicy",
    "SystemEvent",
    "Truncation",
    "create",
    "event",
    "event_type",
    "open_log",
]
