"""Constants of `<trace.h>`, by their names there without the prefix."""

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
    """What becomes of a stream that is full."""

    LOOP = c.POSIX_TRACE_LOOP
    UNTIL_FULL = c.POSIX_TRACE_UNTIL_FULL
    FLUSH = c.POSIX_TRACE_FLUSH


class LogFullPolicy(IntEnum):
    """What becomes of a log that is full."""

    LOOP = c.POSIX_TRACE_LOOP
    UNTIL_FULL = c.POSIX_TRACE_UNTIL_FULL
    APPEND = c.POSIX_TRACE_APPEND


class Inheritance(IntEnum):
    """Whether children of a traced process are traced."""

    CLOSE_FOR_CHILD = c.POSIX_TRACE_CLOSE_FOR_CHILD
    INHERITED = c.POSIX_TRACE_INHERITED


class EventFill(IntEnum):
    """Sets that exist by themselves."""

    WOPID_EVENTS = c.POSIX_TRACE_WOPID_EVENTS
    SYSTEM_EVENTS = c.POSIX_TRACE_SYSTEM_EVENTS
    ALL_EVENTS = c.POSIX_TRACE_ALL_EVENTS


class FilterChange(IntEnum):
    """How a set changes a filter."""

    SET_EVENTSET = c.POSIX_TRACE_SET_EVENTSET
    ADD_EVENTSET = c.POSIX_TRACE_ADD_EVENTSET
    SUB_EVENTSET = c.POSIX_TRACE_SUB_EVENTSET


class Truncation(IntEnum):
    """Whether the data of an event is all there was."""

    NOT_TRUNCATED = c.POSIX_TRACE_NOT_TRUNCATED
    TRUNCATED_RECORD = c.POSIX_TRACE_TRUNCATED_RECORD
    TRUNCATED_READ = c.POSIX_TRACE_TRUNCATED_READ


class StreamState(IntEnum):
    """Values of a status that are not zero."""

    RUNNING = c.POSIX_TRACE_RUNNING
    FULL = c.POSIX_TRACE_FULL
    OVERRUN = c.POSIX_TRACE_OVERRUN
    FLUSHING = c.POSIX_TRACE_FLUSHING


class SystemEvent(IntEnum):
    """Identifiers of the event types that every stream has."""

    ERROR = c.POSIX_TRACE_ERROR
    START = c.POSIX_TRACE_START
    STOP = c.POSIX_TRACE_STOP
    FILTER = c.POSIX_TRACE_FILTER
    OVERFLOW = c.POSIX_TRACE_OVERFLOW
    RESUME = c.POSIX_TRACE_RESUME
    FLUSH_START = c.POSIX_TRACE_FLUSH_START
    FLUSH_STOP = c.POSIX_TRACE_FLUSH_STOP
    UNNAMED_USEREVENT = c.POSIX_TRACE_UNNAMED_USEREVENT
