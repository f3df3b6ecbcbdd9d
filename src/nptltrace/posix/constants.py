"""Constants of `<trace.h>`, by their names there without the prefix."""

from __future__ import annotations

from enum import IntEnum

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

    LOOP = 32
    UNTIL_FULL = 33
    FLUSH = 34


class LogFullPolicy(IntEnum):
    """What becomes of a log that is full."""

    LOOP = 32
    UNTIL_FULL = 33
    APPEND = 35


class Inheritance(IntEnum):
    """Whether children of a traced process are traced."""

    CLOSE_FOR_CHILD = 36
    INHERITED = 37


class EventFill(IntEnum):
    """Sets that exist by themselves."""

    WOPID_EVENTS = 48
    SYSTEM_EVENTS = 49
    ALL_EVENTS = 50


class FilterChange(IntEnum):
    """How a set changes a filter."""

    SET_EVENTSET = 51
    ADD_EVENTSET = 52
    SUB_EVENTSET = 53


class Truncation(IntEnum):
    """Whether the data of an event is all there was."""

    NOT_TRUNCATED = 16
    TRUNCATED_RECORD = 17
    TRUNCATED_READ = 18


class StreamState(IntEnum):
    """Values of a status that are not zero."""

    RUNNING = 1
    FULL = 3
    OVERRUN = 4
    FLUSHING = 5


class SystemEvent(IntEnum):
    """Identifiers of the event types that every stream has."""

    ERROR = 1
    START = 2
    STOP = 3
    FILTER = 4
    OVERFLOW = 5
    RESUME = 6
    FLUSH_START = 7
    FLUSH_STOP = 8
    UNNAMED_USEREVENT = 9
