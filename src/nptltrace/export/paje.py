"""Pajé: the self-describing format that ViTE, pajeng and StarVZ read.

The containers are processes, with threads and objects inside. A thread has a state, and rows of
holds below. An object has a state that names its holder, and a number of waiters. A link leads
from a waker to the woken thread, and from the holder of a lock to a waiter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._dataclasses import dataclass
from nptltrace._escaping import readable
from nptltrace.export.writing import records as rec
from nptltrace.export.writing import timeline as tl
from nptltrace.export.writing.lines import Ordered, Words, decimals, digits
from nptltrace.export.writing.timeline import chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target
    from nptltrace.export.writing.timeline import Timeline

__all__ = ["OPTIONS", "write"]

OPTIONS = ()
_ROWS = 1 << 14

# The events of the file: their numbers, names and fields.
(_CONTAINER_TYPE, _STATE_TYPE, _VARIABLE_TYPE, _LINK_TYPE, _EVENT_TYPE, _VALUE, _CREATE, _DESTROY,
 _SET, _PUSH, _POP, _ADD, _SUB, _START, _END, _NEW, _HOLD, _COUNT) = range(18)  # fmt: skip
_TYPED = (("Alias", "string"), ("Type", "string"), ("Name", "string"))
_TIMED = (("Time", "date"), ("Type", "string"), ("Container", "string"))
_DEFINITIONS: dict[int, tuple[str, tuple[tuple[str, str], ...]]] = {
    _CONTAINER_TYPE: ("PajeDefineContainerType", _TYPED),
    _STATE_TYPE: ("PajeDefineStateType", _TYPED),
    _VARIABLE_TYPE: ("PajeDefineVariableType", (*_TYPED, ("Color", "color"))),
    _LINK_TYPE: ("PajeDefineLinkType", (
        ("Alias", "string"), ("Type", "string"), ("StartContainerType", "string"),
        ("EndContainerType", "string"), ("Name", "string"),
    )),
    _EVENT_TYPE: ("PajeDefineEventType", _TYPED),
    _VALUE: ("PajeDefineEntityValue", (*_TYPED, ("Color", "color"))),
    _CREATE: ("PajeCreateContainer", (
        ("Time", "date"), ("Alias", "string"), ("Type", "string"), ("Container", "string"),
        ("Name", "string"),
    )),
    _DESTROY: ("PajeDestroyContainer", (
        ("Time", "date"), ("Type", "string"), ("Name", "string"),
    )),
    _SET: ("PajeSetState", (*_TIMED, ("Value", "string"))),
    _PUSH: ("PajePushState", (
        *_TIMED, ("Value", "string"), ("WaitId", "string"), ("QueueDepth", "int"),
        ("Result", "int"), ("Open", "string"), ("Site", "string"), ("OwnerName", "string"),
        ("OwnerSite", "string"), ("WakerName", "string"), ("WakerSite", "string"),
    )),
    _POP: ("PajePopState", _TIMED),
    _COUNT: ("PajeSetVariable", (*_TIMED, ("Value", "double"))),
    _ADD: ("PajeAddVariable", (*_TIMED, ("Value", "double"))),
    _SUB: ("PajeSubVariable", (*_TIMED, ("Value", "double"))),
    _START: ("PajeStartLink", (
        *_TIMED, ("StartContainer", "string"), ("Value", "string"), ("Key", "string"),
    )),
    _END: ("PajeEndLink", (
        *_TIMED, ("EndContainer", "string"), ("Value", "string"), ("Key", "string"),
    )),
    _NEW: ("PajeNewEvent", (*_TIMED, ("Value", "string"))),
    _HOLD: ("PajePushState", (
        *_TIMED, ("Value", "string"), ("MaxWaiters", "int"), ("Open", "string"),
        ("Site", "string"), ("ReleaseSite", "string"),
    )),
}  # fmt: skip

# Types of containers: alias, alias of the outer container's type, name.
_CONTAINERS = (
    ("P", "0", "Process"), ("T", "P", "Thread"), ("W", "T", "More waits"), ("H", "T", "Holds"),
    ("O", "P", "Object"), ("Q", "O", "More owners"),
)  # fmt: skip
# Types of states: alias, container, name.
_STATES = (
    ("ST", "T", "State"), ("SW", "W", "Waiting"), ("SH", "H", "Holding"), ("SO", "O", "Held by"),
    ("SQ", "Q", "Held also by"),
)  # fmt: skip
_LIFE = ("running", "ended", "joined")

# Colours that are distinct for any colour vision (Okabe and Ito), by verb.
_VERB_COLOR = ("0.84 0.37 0.0", "0.34 0.71 0.91", "0.8 0.47 0.65", "0.94 0.89 0.26", "0.6 0.6 0.6",
               "0.9 0.62 0.0", "0.2 0.2 0.2", "0.0 0.45 0.7")  # fmt: skip
_LIFE_COLOR = ("0.0 0.62 0.45", "0.3 0.3 0.3", "0.1 0.1 0.1")
_OWNER_COLOR = "0.0 0.45 0.7"


def write(what: Export, out: Target) -> str:
    """Write a trace for Pajé."""
    timeline = what.timeline
    with out.file() as file:
        for line in (*_definitions(), *_types(), *_values(timeline)):
            file.write((line + "\n").encode("utf-8", "replace"))
        containers = list(_containers(timeline))
        for item in containers:
            file.write(f"{_CREATE} 0.000000000 {item.line()}\n".encode("utf-8", "replace"))
        for row in timeline.used:
            file.write(f"{_COUNT} 0.000000000 V O{row} 0\n".encode())
        events = _Events(timeline)
        last = 0
        for records in timeline.records(_ROWS):
            last = int(records["ts"][-1])
            file.write(events.encoded(records))
        for item in reversed(containers):
            time = f"{last // 10**9}.{last % 10**9:09d}"
            file.write(f"{_DESTROY} {time} {item.type} {item.alias}\n".encode())
    return timeline.summary()


# ---- the head of the file ----


def _quoted(name: str) -> str:
    """Return a name as a field. The format cannot express quotes and line ends in a field."""
    plain = "".join(c if c.isprintable() else " " for c in name).replace('"', "'")
    return f'"{plain.strip() or "-"}"'  # pajeng fails on an empty field


def _definitions() -> Iterator[str]:
    for number, (name, fields) in _DEFINITIONS.items():
        yield f"%EventDef {name} {number}"
        for field, kind in fields:
            yield f"%       {field} {kind}"
        yield "%EndEventDef"


def _types() -> Iterator[str]:
    for alias, above, name in _CONTAINERS:
        yield f"{_CONTAINER_TYPE} {alias} {above} {_quoted(name)}"
    for alias, container, name in _STATES:
        yield f"{_STATE_TYPE} {alias} {container} {_quoted(name)}"
    yield f'{_VARIABLE_TYPE} V O "Waiting threads" "{_VERB_COLOR[0]}"'
    yield f'{_LINK_TYPE} LW 0 T T "Wakes"'
    yield f'{_LINK_TYPE} LB 0 T T "Blocks"'
    yield f'{_EVENT_TYPE} E T "Does"'


def _values(timeline: Timeline) -> Iterator[str]:
    """Yield the values of states, links and events."""
    for number, (name, color) in enumerate(zip(_LIFE, _LIFE_COLOR, strict=True)):
        yield f'{_VALUE} L{number} ST {_quoted(name)} "{color}"'
    for number, key in enumerate(timeline.verb_keys.tolist()):
        verb = key & 7
        types = ("SH",) if verb == rec.VERBS.index("holds") else ("ST", "SW")
        for kind in types:
            name, color = _quoted(timeline.verb(key)), _VERB_COLOR[verb]
            yield f'{_VALUE} {kind}{number} {kind} {name} "{color}"'
    for row in timeline.lived():
        for kind in ("SO", "SQ"):
            yield f'{_VALUE} {kind}{row} {kind} {_quoted(timeline.thread(row))} "{_OWNER_COLOR}"'
    for alias, kind, name in (
        ("LW0", "LW", "wakes"), ("LB0", "LB", "blocks"), ("E0", "E", "wakes another"),
        ("E1", "E", "was woken"), ("E2", "E", "creates another"),
    ):  # fmt: skip
        yield f'{_VALUE} {alias} {kind} {_quoted(name)} "{_LIFE_COLOR[0]}"'


@dataclass(frozen=True, slots=True)
class _Container:
    """A process, a thread, an object or a row.

    Attributes:
        alias: The name in events.
        type: The alias of its type.
        above: The alias of the outer container.
        name: The name for people, different for each container.
    """

    alias: str
    type: str
    above: str
    name: str

    def line(self) -> str:
        """Return the fields of the event that creates the container."""
        return f"{self.alias} {self.type} {self.above} {_quoted(self.name)}"


def _containers(timeline: Timeline) -> Iterator[_Container]:
    """Yield all containers. An outer container comes before its inner containers."""
    for row, process in enumerate(timeline.processes):
        name = f"{readable(process.exe.rpartition('/')[2]) or 'process'} {process.pid}"
        yield _Container(f"P{row}", "P", "0", name + (f" #{row}" if row else ""))
    for row in timeline.lived():
        above = f"P{int(timeline.threads['process'][row])}"
        yield _Container(f"T{row}", "T", above, f"{timeline.thread(row)} #{row}")
    for row in timeline.used:
        above = f"P{int(timeline.objects['process'][row])}"
        yield _Container(f"O{row}", "O", above, f"{timeline.object(row)} #{row}")
    for number, lane in enumerate(timeline.lanes):
        if lane.what == rec.HOLDS:
            yield _Container(f"R{number}", "H", f"T{lane.row}", f"holds #{number}")
        elif lane.place:
            kind, above = ("W", "T") if lane.what == rec.WAITS else ("Q", "O")
            yield _Container(f"R{number}", kind, f"{above}{lane.row}", f"also #{number}")


# ---- events ----


class _Events:
    """Encodes records in the order of time."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._thread = Words(map(_quoted, timeline.thread_texts()))
        self._site = Words(_quoted(timeline.site(row)) for row in range(len(timeline.sites)))
        self._open = Words(("false", "true"))
        lanes = timeline.lanes or [tl.Lane(rec.WAITS, 0, 0)]
        own = {rec.WAITS: "T", rec.OWNERS: "O"}
        more = {rec.WAITS: "SW", rec.OWNERS: "SQ", rec.HOLDS: "SH"}
        first = {rec.WAITS: "ST", rec.OWNERS: "SO"}
        states, containers = [], []
        for number, lane in enumerate(lanes):
            has_row = lane.place or lane.what == rec.HOLDS
            states.append(more[lane.what] if has_row else first[lane.what])
            containers.append(f"R{number}" if has_row else f"{own[lane.what]}{lane.row}")
        self._state = Words(states)
        # The type of the state and its container: `ST T12`.
        self._row = Words(map(" ".join, zip(states, containers, strict=True)))

    def encoded(self, records: NDArray[Any]) -> Any:
        """Return the lines of some records, in the order of the records."""
        lines = Ordered()
        what = records["what"]
        for kind, encode in (
            (rec.WAIT, self._wait), (rec.WAIT_END, self._wait_end), (rec.HOLD, self._hold),
            (rec.HOLD_END, self._hold_end), (rec.WAKE, self._wakeup), (rec.WOKEN, self._wakeup),
            (rec.CREATED, self._life), (rec.BEGUN, self._life), (rec.ENDED, self._life),
            (rec.JOINED, self._life),
        ):  # fmt: skip
            where = np.flatnonzero(what == kind)
            if len(where):
                encode(lines, where, records.take(where))
        return lines.text()

    @staticmethod
    def _time(records: NDArray[Any]) -> tuple[Any, ...]:
        return (" ", *decimals(records["ts"], 9), " ")

    def _wait(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        time = self._time(records)
        key = digits(self._timeline.verb_places(records))
        lane = records["lane"]
        lines.add(
            where, f"{_PUSH}", *time, self._row.of(lane), " ", self._state.of(lane), key,
            " W", digits(records["id"]), " ", digits(records["depth"]), " ",
            digits(records["result"]), " ", self._open.of(records["flags"] & rec.OPEN != 0), " ",
            self._site.of(records["site"]), " ", self._thread.of(records["other"]), " ",
            self._site.of(records["other_site"]), " ", self._thread.of(records["waker"]), " ",
            self._site.of(records["waker_site"]), "\n",
        )  # fmt: skip
        self._waiters(lines, where, records, _ADD)
        blocked = rec.are_blocked(records)
        where, records = where[blocked], chosen(records, blocked)
        if len(where):
            time, wait = self._time(records), digits(records["id"])
            for event, thread in ((_START, records["other"]), (_END, records["thread"])):
                lines.add(where, f"{event}", *time, "LB 0 T", digits(thread), " LB0 B", wait, "\n")

    def _wait_end(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        lines.add(where, f"{_POP}", *self._time(records), self._row.of(records["lane"]), "\n")
        self._waiters(lines, where, records, _SUB)

    def _waiters(
        self, lines: Ordered, where: NDArray[Any], records: NDArray[Any], event: int
    ) -> None:
        of_object = records["kind"] != 1
        where, records = where[of_object], chosen(records, of_object)
        if len(where):
            lines.add(
                where, f"{event}", *self._time(records), "V O", digits(records["object"]), " 1\n"
            )

    def _hold(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        time = self._time(records)
        key = digits(self._timeline.verb_places(records))
        still = self._open.of(records["flags"] & rec.OPEN != 0)
        more = (
            " ", digits(records["depth"]), " ", still, " ",
            self._site.of(records["site"]), " ", self._site.of(records["other_site"]), "\n",
        )  # fmt: skip
        lines.add(where, f"{_HOLD}", *time, self._row.of(records["lane"]), " SH", key, *more)
        owner = records["owner_lane"]
        owned = (" ", self._state.of(owner), digits(records["thread"]))
        lines.add(where, f"{_HOLD}", *time, self._row.of(owner), *owned, *more)

    def _hold_end(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        time = self._time(records)
        for lane in ("lane", "owner_lane"):
            lines.add(where, f"{_POP}", *time, self._row.of(records[lane]), "\n")

    def _wakeup(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        time, thread = self._time(records), digits(records["thread"])
        link, value = (_START, "E0") if records["what"][0] == rec.WAKE else (_END, "E1")
        wait = digits(records["id"])
        lines.add(where, f"{link}", *time, "LW 0 T", thread, " LW0 W", wait, "\n")
        lines.add(where, f"{_NEW}", *time, "E T", thread, f" {value}\n")

    def _life(self, lines: Ordered, where: NDArray[Any], records: NDArray[Any]) -> None:
        event, type_, value = {
            rec.CREATED: (_NEW, "E", "E2"), rec.BEGUN: (_SET, "ST", "L0"),
            rec.ENDED: (_SET, "ST", "L1"), rec.JOINED: (_SET, "ST", "L2"),
        }[int(records["what"][0])]  # fmt: skip
        thread = digits(records["thread"])
        lines.add(where, f"{event}", *self._time(records), f"{type_} T", thread, f" {value}\n")
