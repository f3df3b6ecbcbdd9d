"""The event catalogue: the name, the fields and the meaning of every event type.

The first access builds the table of events. A recorder never needs the table, so it starts sooner.
"""

from __future__ import annotations

from pathlib import Path

from nptltrace.catalog._domains import DOMAINS, FUTEX_KINDS, LLL_PURPOSES, LOCK_TYPES, SYS_CALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nptltrace.catalog._events import EVENTS
    from nptltrace.catalog.types import EventType, Field

    BY_ID: dict[int, EventType]

__all__ = [
    "BY_ID", "DOMAINS", "EVENTS", "FUTEX_KINDS", "LLL_PURPOSES", "LOCK_TYPES", "SYS_CALLS",
    "EventType", "Field", "event_classes_tsdl",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("EVENTS", "BY_ID"):
        from nptltrace.catalog._events import EVENTS

        globals()["EVENTS"] = EVENTS
        globals()["BY_ID"] = {event.id: event for event in EVENTS}
        return globals()[name]
    if name in ("EventType", "Field"):
        from nptltrace.catalog import types

        return getattr(types, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def event_classes_tsdl(stream_class: int) -> str:
    """Return the CTF event classes of a stream class (0: slots, 1: records) as TSDL text."""
    name = ("slot_events.tsdl", "record_events.tsdl")[stream_class]
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
