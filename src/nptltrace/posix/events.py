"""Event types, sets of event types, events, and the trace point."""

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
    """An event type.

    Attributes:
        id: The identifier of the type. It is valid in its process, stream or log only.
        name: The name of the type.
    """

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream or a log.

    Attributes:
        type: The event type.
        time_ns: When the event happened, in nanoseconds since 1970 (`CLOCK_REALTIME`).
        pid: The process of the event; 0 if no process caused it.
        thread_id: The `pthread_t` of the thread in that process.
        address: The address of the trace point in the program.
        data: The data of the event, as bytes.
        truncation: Whether the data are complete.
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
        """The name of the event type."""
        return self.type.name

    @property
    def is_user(self) -> bool:
        """Whether a program recorded the event at a trace point."""
        return self.type not in _system_events()


class EventSet:
    """A set of event types, for example for a filter.

    Args:
        types: Event types or their identifiers.

    Example:
        >>> quiet = EventSet([posix.event_type("tick")])
        >>> stream.set_filter(quiet)
    """

    __slots__ = ("native",)
    __hash__ = None  # type: ignore[assignment]  # a set is mutable

    def __init__(self, types: Iterable[EventType | int] = ()) -> None:
        self.native = TraceEventSet()
        call("eventset_empty", self.native)
        for each in types:
            self.add(each)

    @classmethod
    def _filled(cls, what: EventFill) -> EventSet:
        types = cls()
        call("eventset_fill", types.native, what)
        return types

    @classmethod
    def all(cls) -> EventSet:
        """Return the set of all types, also of types that programs will name later."""
        return cls._filled(EventFill.ALL_EVENTS)

    @classmethod
    def system(cls) -> EventSet:
        """Return the set of all system event types."""
        return cls._filled(EventFill.SYSTEM_EVENTS)

    @classmethod
    def process_independent(cls) -> EventSet:
        """Return the set of the system event types that belong to no process."""
        return cls._filled(EventFill.WOPID_EVENTS)

    def add(self, event_type: EventType | int) -> None:
        """Add a type, if it is not in the set.

        Raises:
            PosixTraceError: EINVAL, the identifier is not valid.
        """
        call("eventset_add", _id(event_type), self.native)

    def discard(self, event_type: EventType | int) -> None:
        """Remove a type, if it is in the set.

        Raises:
            PosixTraceError: EINVAL, the identifier is not valid.
        """
        call("eventset_del", _id(event_type), self.native)

    def __contains__(self, event_type: EventType | int) -> bool:
        """Return whether a type is in the set."""
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
    """Return the event type of this process with a name, and make it if there is none.

    If the process has the largest number of types, every further name gives the type of events
    without a name, `SystemEvent.UNNAMED_USEREVENT`.

    Raises:
        PosixTraceError: ENAMETOOLONG, the name has more than 63 bytes.
    """
    number = ctypes.c_uint()
    call("eventid_open", name.encode(), number)
    return EventType(number.value, name)


def event(event_type: EventType | int, data: bytes = b"") -> None:
    """Record an event in every stream that traces this process and does not filter the event out.

    Args:
        event_type: The event type.
        data: The data of the event; a stream may cut the data.
    """
    library().posix_trace_event(_id(event_type), data, len(data))
