"""The event catalogue: what every event type is called, carries and means."""

from __future__ import annotations

from importlib.resources import files

from nptltrace.catalog._events import DOMAINS, EVENTS
from nptltrace.catalog.types import EventType, Field

__all__ = ["BY_ID", "DOMAINS", "EVENTS", "EventType", "Field", "event_classes_tsdl"]

BY_ID: dict[int, EventType] = {event.id: event for event in EVENTS}


def event_classes_tsdl(stream_class: int) -> str:
    """Return the CTF event classes of a stream class (0: slots, 1: records) as TSDL text."""
    name = ("slot_events.tsdl", "record_events.tsdl")[stream_class]
    return files("nptltrace.catalog").joinpath(name).read_text(encoding="utf-8")
