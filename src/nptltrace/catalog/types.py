"""Types of the event catalogue."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """A field of an event.

    Attributes:
        name: Name as in the catalogue; a name that ends in ``_pieces`` only counts the slots of the
            variable field after it.
        type: One of ``u8 u16 u32 u64 s32 s64 tid ptr ns bytes``.
        offset: Bytes from the start of the event's first slot.
    """

    name: str
    type: str
    offset: int


class EventType(NamedTuple):
    """An event type; two may share a name (``variant`` distinguishes them).

    Attributes:
        id: Flat id, ``domain << 6 | number``.
        domain: Name of the domain.
        name: Name that users see.
        variant: Empty, or a word that distinguishes two layouts with the same name.
        level: The lowest detail level that records the event.
        role: The meaning of the event for an analysis.
        object_kind: The kind of its object.
        slots: Number of fixed continuation slots.
        fields: Its fields in order.
        text: Sentence template.
    """

    id: int
    domain: str
    name: str
    variant: str
    level: int
    role: str
    object_kind: str
    slots: int
    fields: tuple[Field, ...]
    text: str
