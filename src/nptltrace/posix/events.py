"""Event types, sets of them, events; and the trace point."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from nptltrace._binding.headers.trace import TraceEventSet
from nptltrace._binding.libposixtrace import call, library
from nptltrace._dataclasses import dataclass
from nptltrace.posix.constants import EventFill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.posix.constants import Truncation

__all__ = ["Event", "EventSet", "EventType", "event", "event_type"]


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of events.

    Attributes:
        id: Its identifier, which means something in the process, stream or log it comes from.
        name: Its name.
    """

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it was read.

    Attributes:
        type: Its type.
        time_ns: When it happened, in nanoseconds of the clock of the stream.
        pid: The process that it happened in; 0 if it has to do with none.
        thread_id: Its `pthread_t` there.
        address: Where in the program the trace point is.
        data: What the program gave with it.
        truncation: Whether that is all.
    """

    type: EventType
    time_ns: int
    pid: int
    thread_id: int
    address: int
    data: bytes
    truncation: Truncation

    @property
    def name(self) -> str:
        """Name of the type."""
        return self.type.name

    @property
    def is_user(self) -> bool:
        """Whether a program recorded it at a trace point of its own."""
        return self.type not in _system_events()


class EventSet:
    """A set of event types, as filters are.

    Args:
        types: Event types, or identifiers of them.

    Example:
        >>> quiet = EventSet([posix.event_type("tick")])
        >>> stream.set_filter(quiet)
    """

    __slots__ = ("native",)
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, types: Iterable[EventType | int] = ()) -> None:
        self.native = TraceEventSet()
        call("eventset_empty", self.native)
        for each in types:
            self.add(each)

    @classmethod
    def _filled(cls, what: EventFill) -> EventSet:
        made = cls()
        call("eventset_fill", made.native, what)
        return made

    @classmethod
    def all(cls) -> EventSet:
        """Return the set of all types, those that are yet to come included."""
        return cls._filled(EventFill.ALL_EVENTS)

    @classmethod
    def system(cls) -> EventSet:
        """Return the set of the types that are not the programs'."""
        return cls._filled(EventFill.SYSTEM_EVENTS)

    @classmethod
    def process_independent(cls) -> EventSet:
        """Return the set of the system types that have to do with no process."""
        return cls._filled(EventFill.WOPID_EVENTS)

    def add(self, event_type: EventType | int) -> None:
        """Put a type in, if it is not there."""
        call("eventset_add", _id(event_type), self.native)

    def discard(self, event_type: EventType | int) -> None:
        """Take a type out, if it is there."""
        call("eventset_del", _id(event_type), self.native)

    def __contains__(self, event_type: EventType | int) -> bool:
        """Return whether a type is there."""
        answer = ctypes.c_int()
        call("eventset_ismember", _id(event_type), self.native, answer)
        return answer.value != 0

    def __eq__(self, other: object) -> bool:
        """Return whether two sets hold the same types."""
        if not isinstance(other, EventSet):
            return NotImplemented
        return bytes(self.native) == bytes(other.native)


@cache
def _system_events() -> EventSet:
    return EventSet.system()


def _id(event_type: EventType | int) -> int:
    return event_type.id if isinstance(event_type, EventType) else event_type


def event_type(name: str) -> EventType:
    """Return an event type of this process; it is made on first use, and stays.

    Where a process has as many types as it may have, all further names give one type, that of
    events without a name.

    Raises:
        PosixTraceError: ENAMETOOLONG.
    """
    number = ctypes.c_uint()
    call("eventid_open", name.encode(), number)
    return EventType(number.value, name)


def event(event_type: EventType | int, data: bytes = b"") -> None:
    """Record an event in every stream that traces this process and wants it; else do nothing.

    Args:
        event_type: The type.
        data: What to say with it; a stream may cut it.
    """
    library().posix_trace_event(_id(event_type), data, len(data))
