"""Writes parts of tracesets as traces of their own: for `ptt cut`, `ptt split` and `ptt merge`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass
from nptltrace._files import trace_directories
from nptltrace._files.whole import json_of, read_whole
from nptltrace.errors import UsageError
from nptltrace.trace.bundling.bundle_writer import copy_bundle
from nptltrace.trace.reading.columns import ArrayBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from nptltrace._files.directories import Directory
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["Output", "Part", "check_mergeable", "process_shifts", "write_trace"]

_NS = 10**9
_MOVED = "merged"  # the kind of a clock with a zero that no real clock has
_BATCH = 1 << 16
_SEARCHED = 1 << 20  # events that are searched at a time to pick a batch
_RECORDS = 1  # the layout of the handlers shared and file
_UUID = re.compile(r'(?m)(^\s*trace\s*\{[^}]*?\buuid\s*=\s*")[0-9a-fA-F-]+(")')
_CLOCK_UUID = re.compile(r'(?m)(^\s*clock\s*\{[^}]*?\buuid\s*=\s*")[0-9a-fA-F-]+(")')
_CLOCK_KIND = re.compile(r'(?m)(^\s*env\s*\{[^}]*?\bclock\s*=\s*")[^"]*(")')
_STREAM = re.compile(r"(?m)^\s*stream\s*\{\s*id\s*=\s*(\d+)\s*;")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a traceset that is written as a trace of its own.

    Attributes:
        begin: The first event; None for the start.
        end: The first event not to write; None for the end.
        threads: Write only these threads (numbers in the traceset); None for all.
        passing: Returns a filter of the events to write; None for all events.
        begin_ns: When the part begins, maybe before its first event; None for the start.
        end_ns: When the part ends, maybe after its last event; None for the end.
        events: Write only these events, each as often as its number says; None for all.
        domains: `Session.domains` of the new trace; None to keep those of the leading trace.
        shifts: Numbers to add to the process numbers of each trace; None for `process_shifts`.
    """

    begin: libpttread.Position | None = None
    end: libpttread.Position | None = None
    threads: frozenset[int] | None = None
    passing: Callable[[Traceset], libpttread.Filter] | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    events: Sequence[tuple[libpttread.Position, int]] | None = None
    domains: dict[int, int] | None = None
    shifts: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A trace that was written.

    Attributes:
        path: The trace.
        events: How many events it holds.
        bytes: Size of its streams.
    """

    path: Path
    events: int
    bytes: int


def check_mergeable(source: Traceset) -> None:
    """Refuse traces that cannot share one description in one trace.

    Raises:
        UsageError: The traces cannot become one trace. The message says why.
    """
    described: dict[int, TraceFiles] = {}
    for trace in source.traces:
        for number in _classes(source, trace):
            first = described.setdefault(number, trace)
            if _events_of(first.metadata.text) != _events_of(trace.metadata.text):
                raise UsageError(
                    f"{first.path} and {trace.path} were written by different versions of nptltrace"
                )
    if _RECORDS not in described:
        return
    # Classic records tell processes apart by their ids alone.
    owners: dict[int, TraceFiles] = {}
    for number, _, pid in source.reader.processes():
        trace = source.traces[number]
        owner = owners.setdefault(pid, trace)
        if owner is not trace and _roots(owner) != _roots(trace):
            raise UsageError(
                f"{owner.path} and {trace.path} both have a process {pid}, and the events of their "
                "handler could not be distinguished: read them together instead of merging them"
            )


def _classes(source: Traceset, trace: TraceFiles) -> list[int]:
    """Return the stream classes of a trace: the layouts of its events."""
    infos = [source.reader.stream_info(stream) for stream in trace.streams.values()]
    return sorted({info.stream_class for info in infos if info.packets})


def _events_of(text: str) -> list[str]:
    """Return the event classes of metadata."""
    return sorted(line for line in text.splitlines() if line.startswith("event {"))


def write_trace(source: Traceset, path: Path, part: Part, *, force: bool = False) -> Output:
    """Write a part of a traceset as one trace.

    Args:
        source: The opened traces.
        path: The directory to make.
        part: What to write.
        force: Whether to replace an existing trace.

    Raises:
        UsageError: The traces cannot become one trace, or the directory cannot be used.
        PttError: The directory cannot be made.
    """
    check_mergeable(source)
    if any(path.resolve() == trace.path.resolve() for trace in source.traces):
        raise UsageError(f"{path} is the trace that is being read")
    directory, new = trace_directories.make(path, force=force)
    try:
        written = _write(source, directory, part)
    except BaseException:
        # Half a trace can be read, and looks damaged.
        trace_directories.remove(directory, whole=new)
        raise
    directory.close()
    return written


def _write(source: Traceset, directory: Directory, part: Part) -> Output:
    """Write a part of a traceset into an empty trace directory."""
    uuid = uuid4()
    clock = _clock(source)
    directory.replace("metadata", _metadata(source, str(uuid), clock))
    pieces, places = _pieces(source, part), _places(source, part)
    chosen: NDArray[np.uint8] | None = None  # by thread, as the library reads it
    if part.threads is not None:
        numbers = np.arange(len(source.thread_ids))
        chosen = np.isin(numbers, list(part.threads)).astype(np.uint8)
    shifts = process_shifts(source) if part.shifts is None else part.shifts
    events, size, number = 0, 0, 0
    for trace in source.traces:
        place = source.alignment.placements[trace.number]
        for stream in trace.streams.values():
            name = f"stream-{number:05}"
            written = 0
            with os.fdopen(directory.create(name), "wb") as file:
                for sequence, (begin, end) in enumerate(pieces[stream]):
                    what = libpttread.Copy(
                        *begin, *end, instance=number,
                        threads=None if chosen is None else chosen.ctypes.data,
                        events=None if places is None else places[stream].ctypes.data,
                        event_count=0 if places is None else len(places[stream]),
                        process_shift=shifts[trace.number], sequence=sequence,
                        tick_origin=place.origin, tick_base=clock.bases[trace.number],
                        tick_mul=clock.frequency, tick_div=place.frequency,
                    )  # fmt: skip
                    what.uuid[:] = uuid.bytes
                    written += source.reader.copy_stream(stream, what, file.fileno())
                size += os.fstat(file.fileno()).st_size
            if written:
                number += 1
                events += written
            else:
                directory.unlink(name)
    facts = {"uuid": str(uuid), "events": events, "bytes": size}
    with directory.inside("info") as info:
        _write_info(source, info, part, shifts=shifts, facts=facts, clock=clock)
    if part.events is None:
        copy_bundle(source.traces, directory)
    return Output(directory.path, events, size)


def _places(source: Traceset, part: Part) -> list[NDArray[np.uint64]] | None:
    """Return by stream the places of the events that `passing` lets through; None for all events.

    A place is packet << 32 | offset.
    """
    if part.passing is None:
        return None
    cursor, passing = libpttread.Cursor(source.reader), part.passing(source)
    if part.begin is not None:
        cursor.seek(part.begin)
    if part.end is not None:
        cursor.limit(part.end)
    buffer, places = ArrayBuffer(_BATCH), (libpttread.Position * _BATCH)()
    rows = np.frombuffer(memoryview(places), np.dtype(libpttread.Position))
    by_stream: list[list[NDArray[np.uint64]]] = [[] for _ in range(source.reader.stream_count())]
    while (seen := cursor.pick(buffer, places, passing, _SEARCHED))[1]:
        picked = rows[: seen[0]]
        words = picked["packet"].astype(np.uint64) << np.uint64(32) | picked["offset"]
        for stream in np.unique(picked["stream"]).tolist():
            by_stream[stream].append(words[picked["stream"] == stream])
    return [np.concatenate([np.empty(0, np.uint64), *pieces]) for pieces in by_stream]


_Lane = tuple[int, int]  # a place in a stream: packet, and offset in the packet


def _pieces(source: Traceset, part: Part) -> list[list[tuple[_Lane, _Lane]]]:
    """Return by stream the pieces to copy: the place of the first event, and the place behind."""
    begins, ends = _lanes(source, part.begin, start=True), _lanes(source, part.end, start=False)
    if part.events is None:
        return [[piece] for piece in zip(begins, ends, strict=True)]
    pieces: list[list[tuple[_Lane, _Lane]]] = [[] for _ in begins]
    cursor, event = libpttread.Cursor(source.reader), libpttread.Buffer(1, ("id",))
    for place, times in part.events:
        cursor.seek(place)
        begin = cursor.lane(place.stream)
        cursor.read(event)
        pieces[place.stream] += [(begin, cursor.lane(place.stream))] * times
    return pieces


def _lanes(source: Traceset, place: libpttread.Position | None, *, start: bool) -> list[_Lane]:
    """Return by stream the place of its first event at a position or later."""
    count = source.reader.stream_count()
    if place is None:
        return [(0, 0) if start else (libpttread.ANY, 0)] * count
    cursor = libpttread.Cursor(source.reader)
    if place.packet == 0 and place.offset == 0 and place.stream != libpttread.ANY:
        cursor.seek_key(place.key)
    else:
        cursor.seek(place)
    return [cursor.lane(stream) for stream in range(count)]


def process_shifts(source: Traceset) -> list[int]:
    """Return numbers to add to the process numbers of each trace, so that they do not collide."""
    # Parts of one recording keep their numbers: these mean the same processes.
    if len({tuple(_roots(trace)) for trace in source.traces}) == 1:
        return [0] * len(source.traces)
    shifts, behind = [], 0
    for trace in source.traces:
        shifts.append(behind)
        numbers = [index for t, index, _ in source.reader.processes() if t == trace.number]
        behind += 1 + max((n for n in numbers if n != libpttread.ANY), default=-1)
    return shifts


def _roots(trace: TraceFiles) -> list[str]:
    """Return the UUIDs of the recordings that a trace comes from."""
    roots = trace.info.session.raw.get("derived_from")
    return [str(root) for root in roots] if isinstance(roots, list) else [str(trace.metadata.uuid)]


@dataclass(frozen=True, slots=True)
class _Clock:
    """The clock of a new trace: the clock of the leading trace, maybe with an earlier zero.

    Attributes:
        frequency: Ticks per second.
        moved: How many ticks earlier the zero is, so that no time is negative.
        start: Time 0, in ticks of this clock.
        bases: By trace, the tick that stands for the origin of its placement.
    """

    frequency: int
    moved: int
    start: int
    bases: list[int]


def _clock(source: Traceset) -> _Clock:
    """Choose the clock of a new trace."""
    placements = source.alignment.placements
    lead = placements[source.alignment.lead]
    bases = [
        lead.origin + (place.shift_ns - lead.shift_ns) * lead.frequency // _NS
        for place in placements
    ]
    start = source.ticks_at_start()
    moved = max(0, -min(start, *bases))
    return _Clock(lead.frequency, moved, start + moved, [base + moved for base in bases])


def _metadata(source: Traceset, uuid: str, clock: _Clock) -> str:
    """Return the metadata of a new trace."""
    lead = source.traces[source.alignment.lead]
    text = _UUID.sub(rf"\g<1>{uuid}\g<2>", lead.metadata.text, count=1).rstrip() + "\n"
    if clock.moved:
        # No other trace has this clock: give it a new UUID and kind.
        old = lead.metadata.clock
        total = old.offset_s * clock.frequency + old.offset - clock.moved
        seconds, ticks = divmod(total, clock.frequency)
        for name, value in (("offset_s", f"{seconds}"), ("offset", f"{ticks}")):
            text = re.sub(rf"(?m)^(\s*{name}\s*=\s*)-?\d+;", rf"\g<1>{value};", text, count=1)
        text = _CLOCK_UUID.sub(rf"\g<1>{uuid}\g<2>", text, count=1)
        text = _CLOCK_KIND.sub(rf"\g<1>{_MOVED}\g<2>", text, count=1)
    described = set(_STREAM.findall(text))
    for trace in source.traces:
        for number in map(str, _classes(source, trace)):
            if number not in described:
                described.add(number)
                text += _described(trace.metadata.text, number)
    return text


def _described(text: str, number: str) -> str:
    """Return the part of metadata that describes one stream class and its events."""
    for stream in _STREAM.finditer(text):
        if stream[1] == number:
            behind = _STREAM.search(text, stream.end())
            return text[stream.start() : behind.start() if behind else len(text)].rstrip() + "\n"
    return ""


# ---- the files beside the packets ----


def _write_info(
    source: Traceset,
    info: Directory,
    part: Part,
    *,
    shifts: Sequence[int],
    facts: dict[str, Any],
    clock: _Clock,
) -> None:
    """Write the info files of the new trace."""
    session = dict(source.traces[source.alignment.lead].info.session.raw) | facts
    session["state"] = "complete" if session.get("state") == "running" else session.get("state")
    session["derived_from"] = sorted({root for t in source.traces for root in _roots(t)})
    # Mark a trace that lacks the events of some threads or objects.
    parts = [trace.info.session.raw.get("part") for trace in source.traces]
    some = "object" if part.passing is not None else None
    some = "thread" if _halves_processes(source, part) else some
    session["part"] = some or next(filter(None, parts), None)
    changed = [trace.info.session.raw.get("level_changed") for trace in source.traces]
    session["level_changed"] = any(changed)
    filters = dict.fromkeys(trace.info.session.filter for trace in source.traces)
    if any(filters):
        session["filter"] = " and ".join(filter(None, filters))
        out = {name for trace in source.traces for name in trace.info.session.filtered_out}
        session["filtered_out"] = sorted(out)
    begin, end = source.part_ns()
    begins = [ns for ns in (begin, part.begin_ns) if ns is not None]
    ends = [ns for ns in (end, part.end_ns) if ns is not None]
    session["window"] = [
        None if ns is None else clock.start - -ns * clock.frequency // _NS  # rounded up
        for ns in (max(begins, default=None), min(ends, default=None))
    ]
    if part.domains is not None:
        session["domains"] = part.domains
    # Times keep their values: the new trace counts time from the same start.
    old = session.get("clock")
    session["clock"] = _session_clock(old if isinstance(old, dict) else {}, clock)
    session["start_unix_ns"] = source.start_unix_ns
    lost = _losses(source)
    if lost:
        session["lost"] = lost
    text = json.dumps(session, indent=1, ensure_ascii=False)
    info.replace("session.json", text)
    source.names.learn()
    lines = dict.fromkeys(
        json.dumps(line, separators=(",", ":")) + "\n"
        for trace in source.traces
        for line in map(
            _reclocked(source, trace, clock),
            _process_lines(source, trace, part, shifts[trace.number]),
        )
    )
    log = info.create("processes.jsonl")
    with os.fdopen(log, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)


def _reclocked(
    source: Traceset, trace: TraceFiles, clock: _Clock
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that converts the times in a line to the clock of the new trace."""
    place, base = source.alignment.placements[trace.number], clock.bases[trace.number]

    def put(item: Any, name: str) -> None:
        if isinstance(item, dict) and isinstance(item.get(name), int):
            ticks = (item[name] - place.origin) * clock.frequency
            item[name] = ticks // place.frequency + base

    def reclocked(line: dict[str, Any]) -> dict[str, Any]:
        for module in line.get("modules", {}).get("modules", ()):
            put(module, "since_clock")
        put(line.get("thread"), "clock")
        return line

    return reclocked


def _session_clock(old: dict[str, Any], clock: _Clock) -> dict[str, Any]:
    """Return the description of the new clock for `session.json`."""
    if clock.moved:
        return {"name": _MOVED, "start": clock.start, "frequency": clock.frequency}
    new = old | {"start": clock.start}
    if isinstance(old.get("start"), int):
        # Move the readings of the other clocks by the time between both starts.
        passed = (clock.start - old["start"]) * _NS // clock.frequency
        for name in ("start_unix_ns", "start_monotonic_ns"):
            if isinstance(old.get(name), int):
                new[name] = old[name] + passed
    return new


def _losses(source: Traceset) -> dict[str, int]:
    """Return the losses of all traces by cause."""
    total: dict[str, int] = {}
    for trace in source.traces:
        for cause, n in trace.info.session.losses.items():
            total[cause] = total.get(cause, 0) + n
    return total


def _process_lines(
    source: Traceset, trace: TraceFiles, part: Part, shift: int
) -> Iterable[dict[str, Any]]:
    """Yield the lines of a trace's processes, with their new numbers."""
    wanted = _wanted(source, trace, part)
    path = trace.path / "info" / "processes.jsonl"
    try:
        lines = read_whole(path).split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            item = json_of(line)
        except ValueError:
            continue
        if not isinstance(item, dict):
            continue
        kept = {
            kind: _renumbered(kind, value, shift)
            for kind, value in item.items()
            if isinstance(value, dict)
            and (wanted is None or value.get("process", value.get("index")) in wanted)
        }
        if kept:
            yield kept
    yield from _name_lines(source, trace, wanted, shift)


def _name_lines(
    source: Traceset, trace: TraceFiles, wanted: set[int] | None, shift: int
) -> Iterator[dict[str, Any]]:
    """Yield lines that name threads: the events that name them may lie outside of the part."""
    known = source.reader.processes()
    for number, (process, tid) in enumerate(source.thread_ids):
        owner, index, pid = known[process]
        if owner != trace.number or (wanted is not None and index not in wanted):
            continue
        for at_ns in source.names.known.lived_ns(number):
            name = source.names.of(number, at_ns)
            if name:
                named = {"process": index + shift, "pid": pid, "tid": tid, "name": name}
                if at_ns is not None:
                    named["clock"] = source.ticks_of(trace, at_ns)
                yield {"thread": named}


def _wanted(source: Traceset, trace: TraceFiles, part: Part) -> set[int] | None:
    """Return the numbers (within the trace) of the processes to write; None for all.

    Ancestors are included: their lines have the call sites of forked children.
    """
    if part.threads is None:
        return None
    known, threads = source.reader.processes(), source.thread_ids
    wanted: set[int] = set()
    for number in {threads[thread][0] for thread in part.threads}:
        owner, index, _ = known[number]
        at: int | None = index if owner == trace.number else None
        while at is not None and at not in wanted:
            wanted.add(at)
            process = trace.info.processes.get(at)
            at = process.parent if process is not None else None
    return wanted


def _halves_processes(source: Traceset, part: Part) -> bool:
    """Return whether the part has some threads of a process, but not all."""
    if part.threads is None:
        return False
    threads = source.thread_ids
    whole = {threads[thread][0] for thread in part.threads}
    return any(p in whole for n, (p, _) in enumerate(threads) if n not in part.threads)


def _renumbered(kind: str, value: dict[str, Any], shift: int) -> dict[str, Any]:
    """Return the value of a line with the process numbers of the new trace."""
    changed = dict(value)
    names = ["index", "process"] + (["parent"] if kind == "process" else [])
    for name in names:
        if isinstance(changed.get(name), int):
            changed[name] += shift
    return changed


def default_output(path: Path, suffix: str) -> Path:
    """Return the path of a trace derived from another: `run.ptt` becomes `run-SUFFIX.ptt`."""
    plain = Path(os.path.normpath(path))
    return plain.with_name(f"{plain.stem}-{suffix}{plain.suffix}")
