"""Which of the objects that lay at one address, one after the other, is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.model import run_model
from nptltrace.trace.objects.chosen import BEGIN, END, Chosen

if TYPE_CHECKING:
    from nptltrace.trace.source import Source

__all__ = ["generation_at"]


def generation_at(source: Source, address: int, number: int) -> list[Chosen]:
    """Return the objects of an address that have a number, of all processes and kinds.

    This reads all events.

    Args:
        source: The opened traces.
        address: The address.
        number: What the table `objects` has in its column `gen`.
    """
    objects = run_model(source).table("objects")
    at = objects[objects["address"] == address]
    names = ("process", "kind", "generation", "first_ns")
    rows = list(zip(*(at[name].tolist() for name in names), strict=True))
    begins = {(process, kind, turn): first_ns for process, kind, turn, first_ns in rows}
    # What events say of the address before it is used is about the first object.
    begins |= {place: BEGIN for place in begins if place[2] == 1}
    return [
        Chosen(process, address, kind, begin_ns, begins.get((process, kind, turn + 1), END))
        for (process, kind, turn), begin_ns in begins.items()
        if turn == number
    ]
