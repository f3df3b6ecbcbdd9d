"""Chrome's trace event format, as JSON: for chrome://tracing, Perfetto, and many other viewers.

A thread has a row of waits and rows of holds. An object has a row that shows its holder, and a
counter of its waiters. A flow leads from a waker to the woken thread, and from the holder of a lock
to the wait for the lock.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._escaping import readable
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.export.writing import records as rec
from nptltrace.export.writing import timeline as tl
from nptltrace.export.writing.lines import Words, decimals, digits, joined
from nptltrace.export.writing.timeline import chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target
    from nptltrace.export.writing.timeline import Timeline

__all__ = ["OPTIONS", "write"]

OPTIONS = ()
# Rows of holds and objects are numbered from here on. The kernel's thread ids are all smaller.
_LANE_TID = 10_000_000
_ROWS = 1 << 14


def write(what: Export, out: Target) -> str:
    """Write a trace as JSON."""
    timeline = what.timeline
    with out.file() as file:
        about = {"start_unix_ns": timeline.start_unix_ns, "tool": "ptt"}
        file.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},'.encode())
        file.write(b'"traceEvents":[\n')
        first, *others = _metadata(timeline)
        for line in others:
            file.write((json.dumps(line) + ",\n").encode())
        events = _Events(timeline)
        for records in timeline.records(_ROWS):
            file.writelines(events.encoded(records))
        # The one line without a comma after it.
        file.write((json.dumps(first) + "\n]}\n").encode())
    return timeline.summary()


def _metadata(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield the label of the trace, the names of processes and rows, and the order of the rows."""
    pid = timeline.processes[0].pid if timeline.processes else 0
    yield {"ph": "M", "pid": pid, "name": "process_labels", "args": {"labels": "ptt"}}
    for process in timeline.processes:
        name = " ".join(process.cmdline) or readable(process.exe) or "process"
        yield {"ph": "M", "pid": process.pid, "name": "process_name", "args": {"name": name}}
    order = 0
    beneath: dict[tuple[int, int], list[int]] = {}
    for number, lane in enumerate(timeline.lanes):
        if lane.what != rec.WAITS or lane.place:
            beneath.setdefault((lane.what == rec.OWNERS, lane.row), []).append(number)
    rows = [(False, row) for row in timeline.lived()] + [(True, row) for row in timeline.used]
    for is_object, row in rows:
        rows_of = [] if is_object else [(timeline.thread_name(row).tid, timeline.thread(row))]
        rows_of += [
            (_LANE_TID + number, _lane_name(timeline, number))
            for number in beneath.get((is_object, row), [])
        ]
        pid = _pid(timeline, timeline.objects if is_object else timeline.threads, row)
        for tid, name in rows_of:
            order += 1
            key = {"ph": "M", "pid": pid, "tid": tid}
            yield {**key, "name": "thread_name", "args": {"name": name}}
            yield {**key, "name": "thread_sort_index", "args": {"sort_index": order}}


def _pid(timeline: Timeline, table: NDArray[Any], row: int) -> int:
    processes, number = timeline.processes, int(table["process"][row])
    return processes[number].pid if number < len(processes) else 0


def _lane_name(timeline: Timeline, number: int) -> str:
    lane = timeline.lanes[number]
    if lane.what == rec.OWNERS:
        return f"{timeline.object(lane.row)} is held by"
    return f"{timeline.thread(lane.row)} {'holds' if lane.what == rec.HOLDS else 'waits as well'}"


def _texts(names: list[str], key: str = "") -> Words:
    """Return names as JSON strings. With a key, names become members of an object, "" nothing."""
    if key:
        return Words(f',"{key}":{json.dumps(name)}' if name else "" for name in names)
    return Words(json.dumps(name) for name in names)


def _stack_texts(timeline: Timeline, key: str) -> Words:
    """Return the text of each stack as a member of a JSON object. Stack 0 is empty."""
    stacks = map(timeline.stack, timeline.stack_keys.tolist())
    return Words(["", *(f',"{key}":{json.dumps(frames)}' for frames in stacks)])


class _Events:
    """Encodes records in the order of time."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._depths = tl.Depths(len(timeline.objects))
        threads = timeline.thread_texts()
        sites = [timeline.site(row) for row in range(len(timeline.sites))]
        self._thread = _texts(threads)
        self._wakes = _texts([f"wakes {name}" for name in threads])
        self._woken = _texts([f"woken by {name}" for name in threads])
        self._creates = _texts([f"creates {name}" for name in threads])
        self._blocks = _texts([f"blocks {name}" for name in threads])
        self._owner, self._waker = _texts(threads, "owner_name"), _texts(threads, "waker_name")
        self._site, self._owner_site = _texts(sites, "site"), _texts(sites, "owner_site")
        self._waker_site, self._release = _texts(sites, "waker_site"), _texts(sites, "release_site")
        self._stack = _stack_texts(timeline, "stack")
        self._owner_stack = _stack_texts(timeline, "owner_stack")
        self._verb = _texts([timeline.verb(key) for key in timeline.verb_keys.tolist()])
        used = set(timeline.used)
        self._object = _texts(
            [
                f"waiting for {timeline.object(row)}" if row in used else ""
                for row in range(len(timeline.objects))
            ]
        )
        self._class = Words((*WAIT_CLASSES, "hold"))
        self._flags = Words(("", ',"mode":"shared"', ',"open":true',
                             ',"mode":"shared","open":true'))  # fmt: skip
        pids = np.array([process.pid for process in timeline.processes] + [0], np.int64)

        def pid(table: NDArray[Any]) -> NDArray[np.int64]:
            return np.asarray(pids[np.minimum(table["process"], len(pids) - 1)])

        self._pid_of_thread, self._pid_of_object = pid(timeline.threads), pid(timeline.objects)
        self._tid = timeline.threads["tid"].astype(np.int64)
        self._lane_tid = np.array(
            [
                int(self._tid[lane.row])
                if lane.what == rec.WAITS and not lane.place
                else _LANE_TID + number
                for number, lane in enumerate(timeline.lanes)
            ]
            or [0],
            np.int64,
        )

    def encoded(self, records: NDArray[Any]) -> Iterator[Any]:
        """Yield the lines of some records."""
        what = records["what"]
        yield from self._waits(chosen(records, what == rec.WAIT))
        yield from self._holds(chosen(records, what == rec.HOLD))
        for kind, names, flow in (
            (rec.WAKE, self._wakes, "s"), (rec.WOKEN, self._woken, "f"),
        ):  # fmt: skip
            wakeups = chosen(records, what == kind)
            name = names.of(wakeups["other"])
            yield self._slices(wakeups, wakeups["thread"], name, "wakeup", self._site)
            yield self._flows(wakeups, wakeups["thread"], flow, "wake-up")
        for kind, text in ((rec.BEGUN, "begins"), (rec.ENDED, "ends"), (rec.JOINED, "joined")):
            yield self._instants(chosen(records, what == kind), json.dumps(text))
        created = chosen(records, what == rec.CREATED)
        yield self._instants(created, self._creates.of(created["other"]))
        yield self._counts(*self._depths.changes(records))

    def _at(self, records: NDArray[Any], phase: str, pid: NDArray[Any], tid: NDArray[Any]) -> Any:
        """Return the columns at the begin of each event."""
        time = decimals(records["ts"], 3)
        return f'{{"ph":"{phase}","pid":', digits(pid), ',"tid":', digits(tid), ',"ts":', *time

    def _waits(self, records: NDArray[Any]) -> Iterator[Any]:
        """Yield waits, and flows to the waits from the owners."""
        if not len(records):
            return
        key, places = self._timeline.verb_places(records), self._timeline.stack_places
        pid = self._pid_of_thread[records["thread"]]
        yield joined(
            len(records),
            *self._at(records, "X", pid, self._lane_tid[records["lane"]]),
            ',"dur":', *decimals(records["dur"], 3),
            ',"cat":"', self._class.of(records["verb"]), '","name":', self._verb.of(key),
            ',"args":{"wait_id":', digits(records["id"]),
            ',"queue_depth":', digits(records["depth"]),
            ',"result":', digits(records["result"]), self._flags.of(records["flags"]),
            self._site.of(records["site"]), self._owner.of(records["other"]),
            self._owner_site.of(records["other_site"]), self._waker.of(records["waker"]),
            self._waker_site.of(records["waker_site"]),
            self._stack.of(places(records["stack"])),
            self._owner_stack.of(places(records["other_stack"])), "}},\n",
        )  # fmt: skip
        blocked = chosen(records, rec.are_blocked(records))
        name = self._blocks.of(blocked["thread"])
        yield self._slices(blocked, blocked["other"], name, "blocks", None)
        yield self._flows(blocked, blocked["other"], "s", "blocked by")
        yield self._flows(blocked, blocked["thread"], "f", "blocked by")

    def _holds(self, records: NDArray[Any]) -> Iterator[Any]:
        """Yield holds, in the rows of the threads and in the rows of the objects."""
        if not len(records):
            return
        key, places = self._timeline.verb_places(records), self._timeline.stack_places
        duration = decimals(records["dur"], 3)
        arguments = (
            ',"args":{"max_waiters":', digits(records["depth"]), self._flags.of(records["flags"]),
            self._site.of(records["site"]), self._release.of(records["other_site"]),
            self._stack.of(places(records["stack"])), "}},\n",
        )  # fmt: skip
        for category, tid, pid, name in (
            ("hold", "lane", self._pid_of_thread[records["thread"]], self._verb.of(key)),
            ("owner", "owner_lane", self._pid_of_object[records["object"]],
             self._thread.of(records["thread"])),
        ):  # fmt: skip
            yield joined(
                len(records), *self._at(records, "X", pid, self._lane_tid[records[tid]]),
                ',"dur":', *duration, f',"cat":"{category}","name":', name, *arguments,
            )  # fmt: skip

    def _slices(
        self, records: NDArray[Any], threads: NDArray[Any], name: Any, category: str,
        site: Words | None,
    ) -> Any:  # fmt: skip
        """Return marks in rows of threads. Flows begin and end at these marks."""
        head = self._at(records, "X", self._pid_of_thread[threads], self._tid[threads])
        where = (',"args":{"wait_id":', digits(records["id"]),
                 site.of(records["site"]) if site else "", "}},\n")  # fmt: skip
        return joined(len(records), *head, f',"dur":0,"cat":"{category}","name":', name, *where)

    def _flows(self, records: NDArray[Any], threads: NDArray[Any], phase: str, name: str) -> Any:
        """Return the starts (phase `s`) or the ends (phase `f`) of flows."""
        head = self._at(records, phase, self._pid_of_thread[threads], self._tid[threads])
        binding = ',"bp":"e"' if phase == "f" else ""
        rest = f',"cat":"{name}","name":"{name}"{binding},"id":'
        return joined(len(records), *head, rest, digits(records["id"]), "},\n")

    def _instants(self, records: NDArray[Any], name: Any) -> Any:
        threads = records["thread"]
        head = self._at(records, "i", self._pid_of_thread[threads], self._tid[threads])
        where = (',"args":{"tid":', digits(self._tid[threads]), self._site.of(records["site"]))
        return joined(len(records), *head, ',"s":"t","cat":"life","name":', name, *where, "}},\n")

    def _counts(self, records: NDArray[Any], depth: NDArray[np.int64]) -> Any:
        pid = self._pid_of_object[records["object"]]
        return joined(
            len(records),
            '{"ph":"C","pid":', digits(pid), ',"ts":', *decimals(records["ts"], 3),
            ',"name":', self._object.of(records["object"]), ',"id":', digits(records["object"]),
            ',"args":{"threads":', digits(depth), "}},\n",
        )  # fmt: skip
