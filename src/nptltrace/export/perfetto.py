"""Perfetto: track events for https://ui.perfetto.dev and its trace processor.

A thread has a row of waits and rows of holds below. An object has a row that shows its holder, and
a counter of its waiters. A flow leads from a waker to the woken thread, and from the holder of a
lock to the wait for the lock. Recorded context switches are written as events of ftrace, so that
Perfetto draws processors and states of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._escaping import readable
from nptltrace.analysis.question_scope import Scope
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.export.writing import records as rec
from nptltrace.export.writing import timeline as tl
from nptltrace.export.writing.processors import switches
from nptltrace.export.writing.protobuf import Rows, message, number, text
from nptltrace.export.writing.timeline import Timeline, chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

OPTIONS = ()
# Fields of the messages, as perfetto_trace.proto numbers them.
_PACKET = 1
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_TRACK = 60
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_CATEGORY_IID, _NOTES, _TYPE, _NAME_IID, _TRACK_UUID, _VALUE = 3, 4, 9, 10, 11, 30
_FLOW, _FLOW_END = 47, 48
_NOTE_NAME, _NOTE_TRUE, _NOTE_NUMBER, _NOTE_TEXT = 1, 2, 4, 17
_CATEGORIES, _NAMES, _NOTE_NAMES, _NOTE_TEXTS = 1, 2, 3, 29
_BEGIN, _END, _INSTANT, _COUNTED = 1, 2, 3, 4
_CLEARED, _NEEDED = 1, 2  # of the interned names
_BOOTTIME, _REALTIME = 6, 1
_FTRACE, _FTRACE_CPU, _FTRACE_EVENT, _FTRACE_TIME, _FTRACE_PID, _SWITCH = 1, 1, 2, 1, 2, 4
_BEFORE, _BEFORE_PRIO, _BEFORE_STATE, _AFTER, _AFTER_PRIO = 2, 3, 4, 6, 7
_TASK_RUNNING, _TASK_INTERRUPTIBLE, _DEFAULT_PRIO = 0, 1, 120

# Tracks are numbered row << 3 | kind.
_OF_PROCESS, _OF_THREAD, _OF_OBJECT, _OF_LANE, _OF_QUEUE, _OF_OBJECTS = range(1, 7)
_UUID_BYTES, _TIME_BYTES, _IID_BYTES, _TEXT_BYTES, _COUNT_BYTES = 5, 9, 6, 5, 5
_NEGATIVE_BYTES = 10

# The categories of events. The category of a wait is its class.
_CATEGORY = (*WAIT_CLASSES, "hold", "owner", "wakeup", "life", "blocks")
_NOTE = ("site", "owner_name", "owner_site", "waker_name", "waker_site", "release_site",
         "queue_depth", "max_waiters", "result", "mode", "open", "wait_id", "stack",
         "owner_stack")  # fmt: skip
_NOTE_IID = {name: iid for iid, name in enumerate(_NOTE, 1)}
# Texts are numbered: row of the site or thread, or place of the stack, << 2 | kind of text.
_SITE, _OTHER_THREAD, _STACK, _MODE = range(4)

# Names of events are numbered: the verb key; for a name with a thread, this bit | thread << 3 |
# kind of name.
_OF_A_THREAD = 1 << 36
_ABOUT = ("wakes {}", "woken by {}", "creates {}", "blocks {}", "{}", "begins", "ends", "joined")
_WAKES, _WOKEN_BY, _CREATES, _BLOCKS, _IS, _BEGINS, _ENDS, _JOINED = range(8)

_ROWS = 1 << 16  # records to encode at once


def write(what: Export, out: Target) -> str:
    """Write a trace for Perfetto."""
    timeline = what.timeline
    with out.file() as file:
        for packet in _heading(timeline):
            file.write(packet)
        events = _Events(timeline)
        for records in timeline.records(_ROWS):
            file.writelines(events.encoded(records))
        file.write(_switches(switches(what.traceset, what.scope or Scope())))
    return timeline.summary()


# ---- the head of the file ----


def _packet(*parts: bytes, flags: int = _NEEDED) -> bytes:
    return message(_PACKET, number(_SEQUENCE, 1), *parts, number(_FLAGS, flags))


def _uuid(kind: int, row: int) -> int:
    """Return the number of a track; `_uuids` does this for many rows."""
    return row << 3 | kind


def _heading(timeline: Timeline) -> Iterator[bytes]:
    """Yield the clocks, all tracks, and all names."""
    clocks = ((_BOOTTIME, 0), (_REALTIME, max(timeline.start_unix_ns, 0)))
    snapshot = [message(1, number(1, clock), number(2, time)) for clock, time in clocks]
    yield _packet(
        number(_TIMESTAMP, 0), message(_CLOCK_SNAPSHOT, *snapshot), flags=_CLEARED | _NEEDED
    )
    for uuid, parent, *parts in _tracks(timeline):
        above = [number(_PARENT, parent)] if parent else []
        yield _packet(message(_TRACK, number(_UUID, uuid), *above, *parts))
    for field, iid, name in _names(timeline):
        yield _packet(message(_INTERNED, message(field, number(1, iid), text(2, name))))


def _tracks(timeline: Timeline) -> Iterator[tuple[Any, ...]]:
    """Yield the number, parent (or 0) and fields of each track."""
    for row, process in enumerate(timeline.processes):
        command = [text(2, argument) for argument in process.cmdline]
        about = message(_PROCESS, number(1, process.pid), *command, text(6, readable(process.exe)))
        yield _uuid(_OF_PROCESS, row), 0, about
        yield _uuid(_OF_OBJECTS, row), _uuid(_OF_PROCESS, row), text(_NAME, "Locks and the like")
    for row in timeline.lived():
        thread = timeline.thread_name(row)
        about = message(
            _THREAD, number(1, thread.pid), number(2, thread.tid), text(5, thread.name or "thread")
        )
        parent = _uuid(_OF_PROCESS, int(timeline.threads["process"][row]))
        yield _uuid(_OF_THREAD, row), parent, about
    for row in timeline.used:
        parent = _uuid(_OF_OBJECTS, int(timeline.objects["process"][row]))
        yield _uuid(_OF_OBJECT, row), parent, text(_NAME, timeline.object(row))
        counter = message(_COUNTER, text(6, "threads"))
        yield _uuid(_OF_QUEUE, row), _uuid(_OF_OBJECT, row), text(_NAME, "waiting"), counter
    for lane_number, lane in enumerate(timeline.lanes):
        # Perfetto draws lanes of the same name as one row with several levels.
        if lane.what == rec.OWNERS:
            above, name = _uuid(_OF_OBJECT, lane.row), "held by"
        else:
            above = _uuid(_OF_THREAD, lane.row)
            name = "holds" if lane.what == rec.HOLDS else "more waits"
        yield _uuid(_OF_LANE, lane_number), above, text(_NAME, name)


def _names(timeline: Timeline) -> Iterator[tuple[int, int, str]]:
    """Yield the interned names: the field of the name, its number, and the text."""
    for iid, name in enumerate(_CATEGORY, 1):
        yield _CATEGORIES, iid, name
    for iid, name in enumerate(_NOTE, 1):
        yield _NOTE_NAMES, iid, name
    yield _NOTE_TEXTS, _MODE, "shared"
    for key in timeline.verb_keys.tolist():
        yield _NAMES, key, timeline.verb(key)
    for row in timeline.lived():
        name = timeline.thread(row)
        for what, about in enumerate(_ABOUT):
            yield _NAMES, _OF_A_THREAD | row << 3 | what, about.format(name)
        yield _NOTE_TEXTS, row << 2 | _OTHER_THREAD, name
    for row in range(1, len(timeline.sites)):
        yield _NOTE_TEXTS, row << 2 | _SITE, timeline.site(row)
    for place, key in enumerate(timeline.stack_keys.tolist(), 1):
        yield _NOTE_TEXTS, place << 2 | _STACK, "\n".join(timeline.stack(key))


# ---- events ----


class _Events:
    """Encodes records in the order of time."""

    def __init__(self, timeline: Timeline) -> None:
        self._depths = tl.Depths(len(timeline.objects))
        self._timeline = timeline
        # Waits are drawn in the row of the thread. Waits that overlap have a row below.
        self._wait_track = np.array(
            [
                _uuid(_OF_LANE, lane_number) if lane.place else _uuid(_OF_THREAD, lane.row)
                for lane_number, lane in enumerate(timeline.lanes)
            ],
            np.uint64,
        )

    def encoded(self, records: NDArray[Any]) -> Iterator[bytes]:
        """Yield the packets of some records.

        Perfetto keeps the order of packets with equal times. So ends come before begins in a row,
        a slice without duration begins and ends in sequence, and a flow begins before it ends.
        """
        what, lasting = records["what"], records["dur"] > 0
        waited = chosen(records, (what == rec.WAIT_END) & lasting)
        held = chosen(records, (what == rec.HOLD_END) & lasting)
        yield self._ends(waited, self._wait_track[waited["lane"]])
        yield self._ends(held, _uuids(_OF_LANE, held["lane"]))
        yield self._ends(held, _uuids(_OF_LANE, held["owner_lane"]))
        waits, holds = chosen(records, what == rec.WAIT), chosen(records, what == rec.HOLD)
        blocked = rec.are_blocked(waits)
        yield self._blocks(chosen(waits, blocked))
        yield self._waits(waits, blocked)
        yield self._holds(holds)
        yield self._owners(holds)
        for kind, about in ((rec.WAKE, _WAKES), (rec.WOKEN, _WOKEN_BY)):
            yield self._wakeups(chosen(records, what == kind), about)
        for kind, about in (
            (rec.CREATED, _CREATES), (rec.BEGUN, _BEGINS),
            (rec.ENDED, _ENDS), (rec.JOINED, _JOINED),
        ):  # fmt: skip
            yield self._life(chosen(records, what == kind), about)
        yield self._counts(*self._depths.changes(records))

    @staticmethod
    def _ends(records: NDArray[Any], tracks: NDArray[np.uint64]) -> bytes:
        return _packets(records, _end(tracks))

    def _waits(self, records: NDArray[Any], blocked: NDArray[np.bool_]) -> bytes:
        tracks = self._wait_track[records["lane"]]
        event = _begin(tracks, Timeline.verb_key(records))
        event.numbers(_CATEGORY_IID, records["verb"] + np.uint8(1), 1)
        event.fixed64(_FLOW_END, records["id"] << np.uint64(1) | np.uint64(1), blocked)
        _note_text(event, "site", records["site"], _SITE)
        _note_text(event, "owner_name", records["other"], _OTHER_THREAD)
        _note_text(event, "owner_site", records["other_site"], _SITE)
        _note_text(event, "waker_name", records["waker"], _OTHER_THREAD)
        _note_text(event, "waker_site", records["waker_site"], _SITE)
        _note_number(event, "queue_depth", records["depth"], _COUNT_BYTES)
        _note_number(event, "result", records["result"], _NEGATIVE_BYTES, zero=False)
        _note_number(event, "wait_id", records["id"], _TIME_BYTES)
        self._note_stack(event, records, "stack", "stack")
        self._note_stack(event, records, "owner_stack", "other_stack")
        _note_flags(event, records)
        return self._slices(records, event, tracks)

    def _holds(self, records: NDArray[Any]) -> bytes:
        tracks = _uuids(_OF_LANE, records["lane"])
        event = _begin(tracks, Timeline.verb_key(records))
        event.same(number(_CATEGORY_IID, _CATEGORY.index("hold") + 1))
        _note_text(event, "site", records["site"], _SITE)
        _note_text(event, "release_site", records["other_site"], _SITE)
        _note_number(event, "max_waiters", records["depth"], _COUNT_BYTES)
        self._note_stack(event, records, "stack", "stack")
        _note_flags(event, records)
        return self._slices(records, event, tracks)

    def _note_stack(self, event: Rows, records: NDArray[Any], name: str, column: str) -> None:
        _note_text(event, name, self._timeline.stack_places(records[column]), _STACK)

    def _owners(self, records: NDArray[Any]) -> bytes:
        tracks = _uuids(_OF_LANE, records["owner_lane"])
        event = _begin(tracks, _about(records["thread"], _IS))
        event.same(number(_CATEGORY_IID, _CATEGORY.index("owner") + 1))
        return self._slices(records, event, tracks)

    @staticmethod
    def _slices(records: NDArray[Any], begin: Rows, tracks: NDArray[np.uint64]) -> bytes:
        """Return packets with the begins, and with the ends of slices without duration."""
        instant = records["dur"] == 0
        rows = Rows(len(records)).messages(_PACKET, _stamped(records, begin))
        if instant.any():
            rows.messages(_PACKET, _stamped(records, _end(tracks)), instant)
        return rows.encoded()

    @staticmethod
    def _blocks(records: NDArray[Any]) -> bytes:
        """Return marks in the rows of the owners: another thread begins to wait."""
        about = _about(records["thread"], _BLOCKS)
        event = _mark(_uuids(_OF_THREAD, records["other"]), about, "blocks")
        event.fixed64(_FLOW, records["id"] << np.uint64(1) | np.uint64(1))
        return _packets(records, event)

    @staticmethod
    def _wakeups(records: NDArray[Any], about: int) -> bytes:
        name = _about(records["other"], about)
        event = _mark(_uuids(_OF_THREAD, records["thread"]), name, "wakeup")
        event.fixed64(_FLOW if about == _WAKES else _FLOW_END, records["id"] << np.uint64(1))
        _note_text(event, "site", records["site"], _SITE)
        return _packets(records, event)

    @staticmethod
    def _life(records: NDArray[Any], about: int) -> bytes:
        whom = records["other"] if about == _CREATES else records["thread"]
        event = _mark(_uuids(_OF_THREAD, records["thread"]), _about(whom, about), "life")
        _note_text(event, "site", records["site"], _SITE)
        return _packets(records, event)

    @staticmethod
    def _counts(records: NDArray[Any], depth: NDArray[np.int64]) -> bytes:
        """Return the new numbers of waiters."""
        event = Rows(len(records)).same(number(_TYPE, _COUNTED))
        event.numbers(_TRACK_UUID, _uuids(_OF_QUEUE, records["object"]), _UUID_BYTES)
        event.numbers(_VALUE, depth, _COUNT_BYTES)
        return _packets(records, event)


def _switches(rows: NDArray[Any]) -> bytes:
    """Return context switches (see `SWITCH`) as ftrace's events `sched_switch`."""
    state = np.where(rows["ready"], _TASK_RUNNING, _TASK_INTERRUPTIBLE)
    switch = Rows(len(rows)).numbers(_BEFORE, rows["before"], _TEXT_BYTES)
    switch.same(number(_BEFORE_PRIO, _DEFAULT_PRIO)).numbers(_BEFORE_STATE, state, 1)
    switch.numbers(_AFTER, rows["after"], _TEXT_BYTES).same(number(_AFTER_PRIO, _DEFAULT_PRIO))
    event = Rows(len(rows)).numbers(_FTRACE_TIME, rows["ts"], _TIME_BYTES)
    event.numbers(_FTRACE_PID, rows["before"], _TEXT_BYTES).messages(_SWITCH, switch)
    bundle = Rows(len(rows)).numbers(_FTRACE_CPU, rows["cpu"], 3)
    bundle.messages(_FTRACE_EVENT, event)
    packet = Rows(len(rows)).same(number(_SEQUENCE, 2)).messages(_FTRACE, bundle)
    return Rows(len(rows)).messages(_PACKET, packet).encoded()


# ---- parts of events ----


def _begin(tracks: NDArray[np.uint64], name: NDArray[np.uint64]) -> Rows:
    """Return events that begin a slice."""
    event = Rows(len(tracks)).same(number(_TYPE, _BEGIN))
    return event.numbers(_TRACK_UUID, tracks, _UUID_BYTES).numbers(_NAME_IID, name, _IID_BYTES)


def _end(tracks: NDArray[np.uint64]) -> Rows:
    """Return events that end a slice."""
    event = Rows(len(tracks)).same(number(_TYPE, _END))
    return event.numbers(_TRACK_UUID, tracks, _UUID_BYTES)


def _mark(tracks: NDArray[np.uint64], name: NDArray[np.uint64], category: str) -> Rows:
    """Return events without a duration."""
    event = Rows(len(tracks)).same(number(_TYPE, _INSTANT))
    event.numbers(_TRACK_UUID, tracks, _UUID_BYTES).numbers(_NAME_IID, name, _IID_BYTES)
    return event.same(number(_CATEGORY_IID, _CATEGORY.index(category) + 1))


def _note_text(event: Rows, name: str, rows: NDArray[Any], what: int) -> None:
    """Add the name of a site or thread, or the text of a stack. Row 0 stands for none."""
    value = rows.astype(np.uint64) << np.uint64(2) | np.uint64(what)
    note = Rows(len(rows)).same(number(_NOTE_NAME, _NOTE_IID[name]))
    event.messages(_NOTES, note.numbers(_NOTE_TEXT, value, _TEXT_BYTES), rows != 0)


def _note_number(
    event: Rows, name: str, values: NDArray[Any], width: int, *, zero: bool = True
) -> None:
    note = Rows(len(values)).same(number(_NOTE_NAME, _NOTE_IID[name]))
    where = None if zero else values != 0
    event.messages(_NOTES, note.numbers(_NOTE_NUMBER, values.astype(np.int64), width), where)


def _note_flags(event: Rows, records: NDArray[Any]) -> None:
    for name, flag, value in (
        ("mode", rec.SHARED, number(_NOTE_TEXT, _MODE)), ("open", rec.OPEN, number(_NOTE_TRUE, 1)),
    ):  # fmt: skip
        note = number(_NOTE_NAME, _NOTE_IID[name]) + value
        event.same(message(_NOTES, note), records["flags"] & flag != 0)


def _uuids(kind: int, rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the numbers of tracks; see `_uuid`."""
    return rows.astype(np.uint64) << np.uint64(3) | np.uint64(kind)


def _about(threads: NDArray[Any], what: int) -> NDArray[np.uint64]:
    """Return the numbers of names with a thread; see `_OF_A_THREAD`."""
    return _uuids(what, threads) | np.uint64(_OF_A_THREAD)


def _stamped(records: NDArray[Any], event: Rows) -> Rows:
    """Return packets with a time and an event each."""
    packet = Rows(len(records)).numbers(_TIMESTAMP, records["ts"], _TIME_BYTES)
    packet.same(number(_SEQUENCE, 1) + number(_FLAGS, _NEEDED))
    return packet.messages(_TRACK_EVENT, event)


def _packets(records: NDArray[Any], event: Rows) -> bytes:
    """Return a packet for each record."""
    return Rows(len(records)).messages(_PACKET, _stamped(records, event)).encoded()
