"""Firefox Profiler: a marker and a weighted sample for each wait, for https://profiler.firefox.com.

The file is a *processed profile*. The page upgrades older versions of the format by itself.
Times and the weights of samples are in ms.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nptltrace._units import plural
from nptltrace._version import __version__
from nptltrace.analysis.report.stacks.sums import TITLES, with_doing
from nptltrace.analysis.stack_names import UNKNOWN, Frames
from nptltrace.export.writing.stacks import OPTIONS, Numbers, modules, object_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.sql.tables import TraceTables
    from nptltrace.analysis.stack_names import Frame
    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

_GECKO_VERSION, _PROCESSED_VERSION = 29, 48
_OTHER, _SHOWN = 0, 1  # categories
_INTERVAL = 1  # phase of a marker with a begin and an end
_LIBRARY = 1  # type of a resource
_NS_PER_MS = 1e6

_THREAD = ("process", "tid", "gen")
# The columns of a row: the thread of the marker, the stack, the duration, and the weight.
_COLUMNS: dict[StackMeasure, tuple[str, str, str, str, str, str]] = {
    "waits": ("process", "tid", "gen", "stack_id", "dur_ns", "dur_ns"),
    "holders": ("owner_process", "owner_tid", "owner_gen", "holder_stack_id", "held_ns", "held_ns"),
    "holds": ("process", "tid", "gen", "stack_id", "dur_ns", "dur_ns"),
    "idle": ("process", "tid", "gen", "stack_id", "dur_ns", "dur_ns"),
    "inside": ("process", "tid", "gen", "stack_id", "dur_ns", "waited_ns"),
}
_NAMES: dict[StackMeasure, str] = {
    "waits": "contended wait", "holders": "others wait", "holds": "hold", "idle": "idle wait",
    "inside": "others wait",
}  # fmt: skip
_TABLES: dict[StackMeasure, str] = {"holds": "holds", "inside": "hold_samples"}  # else waits
# Libraries are numbered by name and build-id.
_Libraries = Numbers[tuple[str, str]]


def write(what: Export, out: Target) -> str:
    """Write a processed profile."""
    shown, tables = what.shown, what.trace_tables
    rows, objects, threads = _rows(tables, shown)
    known = {(row["process"], row["tid"], row["gen"]): row for row in threads}
    processes = {row["process"]: row for row in tables.table("processes").to_pylist()}
    stacks, labels = Frames(tables), object_labels(objects)
    libraries: _Libraries = Numbers()
    drawn = []
    for (process, tid, gen), part in _by_thread(rows):
        thread = _Thread(libraries, stacks)
        thread.add(part, _NAMES[shown], labels)
        drawn.append(thread.document(known.get((process, tid, gen)), processes.get(process), tid))
    begins = what.traceset.start_unix_ns / _NS_PER_MS
    document = {
        "meta": _meta(TITLES[shown], begins),
        "libs": _libraries(libraries, tables),
        "pages": [], "counters": [], "profilerOverhead": [],
        "threads": drawn,
    }  # fmt: skip
    with out.file() as file:
        file.write(json.dumps(document, separators=(",", ":")).encode())
    n, m = rows.num_rows, len(drawn)
    return f"{n:,} {plural(n, 'marker')} of {TITLES[shown]} in {m:,} {plural(m, 'thread')}"


def _rows(
    tables: TraceTables, shown: StackMeasure
) -> tuple[pa.Table, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows to draw, in columns of the same names, the objects and the threads."""
    table = _TABLES.get(shown, "waits")
    *identity, stack, time, weight = _COLUMNS[shown]
    pieces: dict[str, list[pa.Table]] = {table: [], "objects": [], "threads": []}
    for name, piece in tables.pieces(tuple(pieces)):
        if name not in pieces:
            continue
        if name != table:
            pieces[name].append(piece)
            continue
        chosen = piece
        if table == "waits":
            wanted = "idle" if shown == "idle" else "contended"
            chosen = piece.filter(pc.equal(piece["class"].cast("string"), wanted))
        doing = pa.nulls(chosen.num_rows, pa.string())
        if table == "hold_samples":
            chosen = with_doing(chosen)
            doing = chosen["doing"]
        columns = [chosen[name] for name in (*identity, "lock_id", "t_ns", time, weight)]
        columns += [chosen[stack].cast("string"), doing]
        pieces[table].append(pa.table(columns, names=[*_NO_ROWS]))
    rows = pa.concat_tables(pieces[table] or [pa.schema(_NO_ROWS.items()).empty_table()])
    order = [(name, "ascending") for name in (*_THREAD, "t_ns")]
    others = ([row for part in pieces[name] for row in part.to_pylist()]
              for name in ("objects", "threads"))  # fmt: skip
    return (rows.sort_by(order), *others)


_NO_ROWS = {
    **dict.fromkeys(_THREAD, pa.uint32()), "lock_id": pa.uint32(), "t_ns": pa.int64(),
    "ns": pa.int64(), "weight_ns": pa.int64(), "stack_id": pa.string(), "doing": pa.string(),
}  # fmt: skip


def _by_thread(rows: pa.Table) -> Iterator[tuple[tuple[int | None, ...], pa.Table]]:
    """Yield the identity of each thread, None for an unknown thread, and its rows."""
    identity = [rows[name].cast(pa.int64()).fill_null(-1).to_numpy() for name in _THREAD]
    borders = np.flatnonzero(np.any(np.diff(identity) != 0, axis=0)) + 1
    edges = [0, *borders.tolist(), rows.num_rows] if rows.num_rows else []
    for begin, end in pairwise(edges):
        first, part = rows.slice(begin, 1).to_pylist()[0], rows.slice(begin, end - begin)
        yield tuple(first[name] for name in _THREAD), part


def _meta(title: str, begins_ms: float) -> dict[str, Any]:
    """Return the data about the profile as a whole."""
    fields = [
        {"key": "object", "label": "Object", "format": "string", "searchable": True},
        {"key": "site", "label": "Call site", "format": "string", "searchable": True},
    ]
    schema = {
        "name": "ptt", "tooltipLabel": "{marker.name}: {marker.data.object}",
        "tableLabel": "{marker.data.object} at {marker.data.site}",
        "chartLabel": "{marker.data.object}",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "data": fields,
    }  # fmt: skip
    return {
        "version": _GECKO_VERSION, "preprocessedProfileVersion": _PROCESSED_VERSION,
        "product": title, "importedFrom": f"ptt {__version__}",
        "startTime": begins_ms, "interval": 1, "processType": 0, "stackwalk": 1,
        "symbolicated": True, "usesOnlyOneStackType": True, "sourceCodeIsNotOnSearchfox": True,
        "doesNotUseFrameImplementation": True,
        "categories": [
            {"name": "Other", "color": "grey", "subcategories": ["Other"]},
            {"name": "Waiting", "color": "orange", "subcategories": ["Other"]},
        ],
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "extensions": {"length": 0, "id": [], "name": [], "baseURL": []},
        "markerSchema": [schema],
    }  # fmt: skip


def _libraries(libraries: _Libraries, tables: TraceTables) -> list[dict[str, Any]]:
    """Return the documents of the libraries that the threads use, by number."""
    known = modules(tables)
    paths = [known.get((name, build_id), {}).get("path", name) for name, build_id in libraries]
    return [
        {"arch": "", "name": name, "path": path, "debugName": name, "debugPath": path,
         "breakpadId": _breakpad_id(build_id), "codeId": build_id or None}
        for (name, build_id), path in zip(libraries, paths, strict=True)
    ]  # fmt: skip


def _breakpad_id(build_id: str) -> str:
    """Return a build-id in the notation of Breakpad, which the page and symbol servers use."""
    if not build_id:
        return ""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"


class _Thread:
    """The tables of a thread. They grow as stacks are used."""

    def __init__(self, libraries: _Libraries, stacks: Frames) -> None:
        self._libraries, self._stacks = libraries, stacks
        self._strings: Numbers[str] = Numbers()
        self._nodes: Numbers[tuple[Frame, int | None]] = Numbers()
        self._frames: Numbers[Frame] = Numbers()
        self._functions: dict[tuple[str, str, str], tuple[int, Frame]] = {}
        self._resources: Numbers[tuple[str, str]] = Numbers()
        self._samples: dict[str, Any] = {}
        self._markers: dict[str, Any] = {}

    def add(self, rows: pa.Table, name: str, labels: dict[object, str]) -> None:
        """Add the rows of the thread, in the order of time."""
        places = list(zip(*(rows[name].to_pylist() for name in ("stack_id", "doing")), strict=True))
        paths = {place: self._stacks.of(*place) for place in dict.fromkeys(places)}
        node_of = {place: self._node(path or (UNKNOWN,)) for place, path in paths.items()}
        nodes = [node_of[place] for place in places]
        sites = [paths[place][0].text if paths[place] else "" for place in places]
        begin = rows["t_ns"].to_numpy() / _NS_PER_MS
        length = rows["ns"].to_numpy() / _NS_PER_MS
        begins = begin.tolist()
        self._samples = {
            "stack": nodes, "time": begins,
            "weight": (rows["weight_ns"].to_numpy() / _NS_PER_MS).tolist(),
            "weightType": "tracing-ms", "length": len(nodes),
        }  # fmt: skip
        data = [
            {"type": "ptt", "object": labels.get(lock, ""), "site": site,
             "cause": {"time": t, "stack": node}}
            for lock, site, t, node in zip(
                rows["lock_id"].to_pylist(), sites, begins, nodes, strict=True
            )
        ]  # fmt: skip
        count = len(nodes)
        self._markers = {
            "name": [self._strings[name]] * count, "startTime": begins,
            "endTime": (begin + length).tolist(), "phase": [_INTERVAL] * count,
            "category": [_SHOWN] * count, "data": data, "length": count,
        }  # fmt: skip

    def document(
        self, thread: dict[str, Any] | None, process: dict[str, Any] | None, tid: int | None
    ) -> dict[str, Any]:
        """Return the document of the thread."""
        pid = process["pid"] if process else 0
        name = (thread["name"] if thread else "") or (f"thread {tid}" if tid else "nobody known")
        begin, end = (thread[key] if thread else None for key in ("start_ns", "end_ns"))
        return {
            "processType": "default", "processStartupTime": 0, "processShutdownTime": None,
            "registerTime": (begin or 0) / _NS_PER_MS,
            "unregisterTime": None if end is None else end / _NS_PER_MS,
            "pausedRanges": [], "name": name, "isMainThread": tid == pid and tid is not None,
            "processName": process["exe"].rpartition("/")[2] if process else "",
            "pid": str(pid), "tid": tid or 0, "showMarkersInTimeline": True,
            "samples": self._samples, "markers": self._markers,
            "stackTable": self._stack_table(),
            "frameTable": self._frame_table(),
            **self._function_tables(),
            "nativeSymbols": {
                "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0,
            },
            "stringArray": list(self._strings),
        }  # fmt: skip

    def _node(self, frames: tuple[Frame, ...]) -> int:
        """Return the number of a stack. The innermost frame comes first."""
        node: int | None = None
        for frame in reversed(frames):
            node = self._nodes[frame, node]
        assert node is not None  # noqa: S101 -- no stack is empty
        return node

    def _stack_table(self) -> dict[str, Any]:
        count = len(self._nodes)
        return {
            "frame": [self._frames[frame] for frame, _ in self._nodes],
            "prefix": [prefix for _, prefix in self._nodes],
            "category": [_OTHER] * count, "subcategory": [0] * count, "length": count,
        }  # fmt: skip

    def _frame_table(self) -> dict[str, Any]:
        frames, count = list(self._frames), len(self._frames)
        nothing = [None] * count
        return {
            "address": [frame.offset if frame.module else -1 for frame in frames],
            "inlineDepth": [int(frame.inlined) for frame in frames],
            "category": nothing, "subcategory": nothing,
            "func": [self._function(frame) for frame in frames],
            "nativeSymbol": nothing, "innerWindowID": [0] * count, "implementation": nothing,
            "line": [frame.line or None for frame in frames], "column": nothing, "length": count,
        }  # fmt: skip

    def _function(self, frame: Frame) -> int:
        key = (frame.name, frame.path, frame.module)
        return self._functions.setdefault(key, (len(self._functions), frame))[0]

    def _function_tables(self) -> dict[str, Any]:
        """Return the functions and their modules."""
        frames, count = [frame for _, frame in self._functions.values()], len(self._functions)
        table = {
            "name": [self._strings[frame.name] for frame in frames],
            "isJS": [False] * count, "relevantForJS": [False] * count,
            "resource": [
                self._resources[frame.module, frame.build_id] if frame.module else -1
                for frame in frames
            ],
            "fileName": [self._strings[frame.path] if frame.path else None for frame in frames],
            "lineNumber": [None] * count, "columnNumber": [None] * count, "length": count,
        }  # fmt: skip
        resources = {
            "lib": [self._libraries[key] for key in self._resources],
            "name": [self._strings[name] for name, _ in self._resources],
            "host": [None] * len(self._resources), "type": [_LIBRARY] * len(self._resources),
            "length": len(self._resources),
        }  # fmt: skip
        return {"funcTable": table, "resourceTable": resources}
