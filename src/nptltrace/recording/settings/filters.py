"""The language of `ptt record --filter`, which selects event types.

    EXPR = ITEM { "," ITEM }
    ITEM = [ "!" ] ( DOMAIN | PREFIX | "*" SUFFIX )

An event is recorded if it matches a plain item, or if there is no plain item. An event that matches
an item with `!` is not recorded. DOMAIN is a domain of the catalogue. PREFIX and SUFFIX are the
beginning and the end of an event's name, in upper or lower case, like in `ptt view --event` and
`--suffix`.
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
# The tracer passes these events and domains on, whatever the filter; see filter.c.
_ALWAYS = frozenset({"NEW_THREAD_CREATED", "THREAD_BEGIN", "THREAD_END", "THREAD_NAME"})
_ALWAYS_DOMAINS = frozenset({"process", "handler"})


@dataclass(frozen=True)
class EventFilter:
    """A choice of event types.

    Attributes:
        text: The text of the user.
        ids: The recorded types. Begin and end of processes and threads are always recorded.
    """

    text: str
    ids: frozenset[int]

    @property
    def argument(self) -> str:
        """The form for the tracer, such as `mutex=3f,cond=18`: a bit mask for each domain."""
        from nptltrace.catalog import DOMAINS

        masks = dict.fromkeys(DOMAINS.values(), 0)
        for event in self.ids:
            masks[event >> _NUMBER_BITS] |= 1 << (event & (1 << _NUMBER_BITS) - 1)
        return ",".join(f"{name}={masks[number]:x}" for name, number in DOMAINS.items())

    def facts(self) -> dict[str, Any]:
        """Return the facts for `info/session.json`: the text, and the names of filtered types."""
        from nptltrace.catalog import EVENTS

        unselected = {event.name for event in EVENTS if event.id not in self.ids}
        always = {event.name for event in EVENTS if event.domain in _ALWAYS_DOMAINS} | _ALWAYS
        return {"filter": self.text, "filtered_out": sorted(unselected - always)}


def parse_filter(text: str) -> EventFilter:
    """Parse an EXPR.

    Raises:
        UsageError: An item matches no event type.

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
    """Return whether an item matches an event type."""
    if item.startswith("*"):
        return len(item) > 1 and event.name.endswith(item[1:].upper())
    return event.domain == item.lower() or event.name.startswith(item.upper())
