"""Constants of `<trace.h>`, with their names in the header but without the prefix."""

from __future__ import annotations

from enum import IntEnum

from nptltrace._binding.headers import trace as c

__all__ = [
    "EventFill",
    "FilterChange",
    "Inheritance",
    "LogFullPolicy",
    "StreamFullPolicy",
    "StreamState",
    "SystemEvent",
    "Truncation",
]


class StreamFullPolicy(IntEnum):
    """The policy for a full stream (`posix_trace_attr_setstreamfullpolicy()`)."""

    LOOP = c.POSIX_TRACE_LOOP
    UNTIL_FULL = c.POSIX_TRACE_UNTIL_FULL
    FLUSH = c.POSIX_TRACE_FLUSH


class LogFullPolicy(IntEnum):
    """The policy for a full log (`posix_trace_attr_setlogfullpolicy()`)."""

    LOOP = c.POSIX_TRACE_LOOP
    UNTIL_FULL = c.POSIX_TRACE_UNTIL_FULL
    APPEND = c.POSIX_TRACE_APPEND


class Inheritance(IntEnum):
    """Whether children of a traced process are traced."""

    CLOSE_FOR_CHILD = c.POSIX_TRACE_CLOSE_FOR_CHILD
    INHERITED = c.POSIX_TRACE_INHERITED


class EventFill(IntEnum):
    """Predefined sets of event types (`posix_trace_eventset_fill()`)."""

    WOPID_EVENTS = c.POSIX_TRACE_WOPID_EVENTS
    SYSTEM_EVENTS = c.POSIX_TRACE_SYSTEM_EVENTS
    ALL_EVENTS = c.POSIX_TRACE_ALL_EVENTS


class FilterChange(IntEnum):
    """How a set changes a filter (`posix_trace_set_filter()`)."""

    SET_EVENTSET = c.POSIX_TRACE_SET_EVENTSET
    ADD_EVENTSET = c.POSIX_TRACE_ADD_EVENTSET
    SUB_EVENTSET = c.POSIX_TRACE_SUB_EVENTSET


class Truncation(IntEnum):
    """Whether the data of an event are complete, or who cut them: the stream or the reader."""

    NOT_TRUNCATED = c.POSIX_TRACE_NOT_TRUNCATED
    TRUNCATED_RECORD = c.POSIX_TRACE_TRUNCATED_RECORD
    TRUNCATED_READ = c.POSIX_TRACE_TRUNCATED_READ


class StreamState(IntEnum):
    """The members of `struct posix_trace_status_info`, each with its non-zero value."""

    RUNNING = c.POSIX_TRACE_RUNNING
    FULL = c.POSIX_TRACE_FULL
    OVERRUN = c.POSIX_TRACE_OVERRUN
    FLUSHING = c.POSIX_TRACE_FLUSHING


class SystemEvent(IntEnum):
    """Identifiers of the event types of POSIX, which every stream has."""

    ERROR = c.POSIX_TRACE_ERROR
    START = c.POSIX_TRACE_START
    STOP = c.POSIX_TRACE_STOP
    FILTER = c.POSIX_TRACE_FILTER
    OVERFLOW = c.POSIX_TRACE_OVERFLOW
    RESUME = c.POSIX_TRACE_RESUME
    FLUSH_START = c.POSIX_TRACE_FLUSH_START
    FLUSH_STOP = c.POSIX_TRACE_FLUSH_STOP
    UNNAMED_USEREVENT = c.POSIX_TRACE_UNNAMED_USEREVENT
