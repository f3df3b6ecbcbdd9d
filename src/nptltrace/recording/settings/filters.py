"""The language of `ptt record --filter`: which types of events are recorded.

    EXPR = ITEM { "," ITEM }
    ITEM = [ "!" ] ( DOMAIN | PREFIX | "*" SUFFIX )

An event is recorded if one of the plain items says so, or if there is none, and no item with `!`
does. DOMAIN is a domain of the catalogue, PREFIX and SUFFIX are beginning and end of an event's
name, as for `ptt view --event` and `--suffix`; upper and lower case do not matter.
"""

from __future__ import annotations

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nptltrace.catalog import EventType

__all__ = ["EventFilter", "parse_filter"]

_NUMBER_BITS = 6
# What the tracer passes on whatever the filter, besides all of these domains: see filter.c.
_ALWAYS = frozenset({"NEW_THREAD_CREATED", "THREAD_BEGIN", "THREAD_END", "THREAD_NAME"})
_ALWAYS_DOMAINS = frozenset({"process", "handler"})


@dataclass(frozen=True)
class EventFilter:
    """A choice of event types.

    Attributes:
        text: What the user wrote.
        ids: The types that are recorded. The life of processes and threads always is.
    """

    text: str
    ids: frozenset[int]

    @property
    def argument(self) -> str:
        """What the tracer gets, as `mutex=3f,cond=18`: by domain, a bit for each number."""
        from nptltrace.catalog import DOMAINS

        masks = dict.fromkeys(DOMAINS.values(), 0)
        for event in self.ids:
            masks[event >> _NUMBER_BITS] |= 1 << (event & (1 << _NUMBER_BITS) - 1)
        return ",".join(f"{name}={masks[number]:x}" for name, number in DOMAINS.items())

    def facts(self) -> dict[str, Any]:
        """Return what a trace says of it: the text, and the names of what is left out."""
        from nptltrace.catalog import EVENTS

        left = {event.name for event in EVENTS if event.id not in self.ids}
        there = {event.name for event in EVENTS if event.domain in _ALWAYS_DOMAINS}
        return {"filter": self.text, "filtered_out": sorted(left - there - _ALWAYS)}


def parse_filter(text: str) -> EventFilter:
    """Read an EXPR.

    Raises:
        UsageError: An item matches no type of event.

    Example:
        >>> from nptltrace.catalog import BY_ID
        >>> sorted({BY_ID[event].name for event in parse_filter("spin,!*_IN,!*_OUT").ids})
        ['SPIN_DESTROY', 'SPIN_FREE', 'SPIN_INIT', 'SPIN_TAKEN', 'SPIN_WAIT']
    """
    from nptltrace.catalog import EVENTS

    wanted: set[int] = set()
    unwanted: set[int] = set()
    words = [word.strip() for word in text.split(",")]
    for word in words:
        item = word.removeprefix("!").strip()
        chosen = {event.id for event in EVENTS if item and _matches(event, item)}
        if not chosen:
            raise UsageError(
                f"--filter: no event matches {item!r} in {text!r} (ptt stat -l lists them)"
            )
        (unwanted if word.startswith("!") else wanted).update(chosen)
    if all(word.startswith("!") for word in words):
        wanted = {event.id for event in EVENTS}
    return EventFilter(text.strip(), frozenset(wanted - unwanted))


def _matches(event: EventType, item: str) -> bool:
    """Does an item speak of this type of event?"""
    if item.startswith("*"):
        return len(item) > 1 and event.name.endswith(item[1:].upper())
    return event.domain == item.lower() or event.name.startswith(item.upper())
