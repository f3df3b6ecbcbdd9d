"""Rows of the timeline: threads, objects, and processors.

Objects that were at the same address one after another share a row if they were initialized at the
same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.report.over_time import Place
from nptltrace.trace.objects.chosen import Chosen
from nptltrace.trace.reading import arrow
from nptltrace.ui import protocol
from nptltrace.ui.queries.naming import common_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from nptltrace.ui.model_tables import PathPieces, Tables
    from nptltrace.ui.queries.naming import Naming

__all__ = ["Rows", "computed_once"]

T = TypeVar("T")

_UNSEEN = 2**63 - 1
# Rows are sorted by these sums, the greatest first. Equal rows keep their order.
_ORDERS = {
    "wait": ("wait_ns", "hold_ns", "idle_ns"),
    "hold": ("hold_ns", "wait_ns"),
    "start": (),
    "row": (),
    "name": (),
}
# The name of a row is made from the names of at most this number of objects.
_NAMES = 50
_SUMS = ("waits", "wait_ns", "wait_max_ns", "idle_ns", "other_ns", "holds", "hold_ns")


class computed_once(Generic[T]):  # noqa: N801 -- used as `functools.cached_property` is
    """A property. Its value is computed on first use, and then kept.

    Two threads that ask at the same time may both compute the value. Before Python 3.12,
    `functools.cached_property` has one lock for all instances. One thread computes a value and
    waits for a lock of the viewer. Another thread holds this lock and asks for another value. Both
    would wait for ever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | computed_once[T]:
        if instance is None:
            return self
        value = self._compute(instance)
        # From now on, Python finds this value before the descriptor.
        instance.__dict__[self._name] = value
        return value


@dataclass(frozen=True, slots=True)
class _Groups:
    """Objects by row: row n has the objects `object[begin[n]:begin[n + 1]]`."""

    object: NDArray[Any]
    begin: NDArray[Any]


class Rows:
    """The rows of the timeline, from the tables of the model.

    Args:
        tables: The tables of the model.
        naming: Names threads and objects.
        lanes: Returns the number of lanes of each of the first rows, given `thread` or `object`
            and the number of rows.
        turns: Returns the turns of threads on each processor, as spans.
    """

    def __init__(
        self,
        tables: Tables,
        naming: Naming,
        lanes: Callable[[str, int], NDArray[Any]],
        turns: Callable[[], NDArray[Any]],
    ) -> None:
        self.tables, self.naming, self._lanes, self._turns = tables, naming, lanes, turns
        self._labels: dict[str, list[str]] = {}
        self._texts: dict[str, pa.Array] = {}

    # ---- numbers ----

    def count(self, by: str) -> int:
        """Return how many rows there are."""
        return len(self._numbers(by)["row"])

    def _numbers(self, by: str) -> dict[str, NDArray[Any]]:
        """Return the columns of numbers."""
        if by == "processor":
            return self._of_processors
        return self._of_threads if by == "thread" else self._of_objects

    @computed_once
    def _of_threads(self) -> dict[str, NDArray[Any]]:
        rows = self.tables.threads
        at = np.flatnonzero(rows["first_ns"] != _UNSEEN)
        at = at[at > 0]
        seen = rows[at]
        none = np.zeros(len(at), np.uint32)
        return {
            "row": at.astype(np.uint32),
            "process": seen["process"],
            "tid": seen["tid"],
            "generations": seen["generation"],
            "threads": none + 1,
            "lanes": self._lanes("thread", len(rows))[at],
            "start_ns": seen["first_ns"],
            "end_ns": np.maximum(seen["last_ns"], seen["first_ns"]),
            **_sums(seen),
            "caused_ns": seen["caused_ns"],
            "max_waiters": none,
        }

    @computed_once
    def _of_objects(self) -> dict[str, NDArray[Any]]:
        objects, row_of = self.tables.objects, self.tables.row_of
        count = len(self.tables.first)
        own = np.flatnonzero(row_of)
        objects, row_of = objects[own], row_of[own]
        first = self.tables.objects[self.tables.first]

        def most(column: NDArray[Any]) -> NDArray[Any]:
            greatest = np.zeros(count, column.dtype)
            np.maximum.at(greatest, row_of, column)
            return greatest

        start, end = np.full(count, _UNSEEN), np.full(count, -(2**63))
        np.minimum.at(start, row_of, objects["first_ns"])
        np.maximum.at(end, row_of, objects["last_ns"])
        # As in a report, an object that was initialized and never used is not a generation.
        used = np.bincount(row_of[objects["threads"] > 0], minlength=count)
        sums = {}
        for name, column in _sums(objects).items():
            sums[name] = most(column)
            if name != "wait_max_ns":
                sums[name] = np.zeros(count, np.uint64)
                np.add.at(sums[name], row_of, column)
        columns = {
            "row": np.arange(count, dtype=np.uint32),
            "process": first["process"],
            "tid": np.zeros(count, np.uint32),
            "generations": used.astype(np.uint32),
            "threads": most(np.maximum(objects["address_threads"], objects["threads"])),
            "lanes": self._lanes("object", count),
            "start_ns": start,
            "end_ns": np.maximum(start, end),
            **sums,
            "caused_ns": np.zeros(count, np.uint64),
            "max_waiters": most(objects["max_waiters"]),
            "address": first["address"],
            "kind": first["kind"],
            "flags": first["flags"],
            "init": first["init_site"],
        }
        return {name: column[1:] for name, column in columns.items()}

    @computed_once
    def _of_processors(self) -> dict[str, NDArray[Any]]:
        turns = self._turns()
        rows, at = np.unique(turns["row"], return_inverse=True)
        threads = self.tables.threads
        threads = threads[threads["first_ns"] != _UNSEEN]
        start, end = threads["first_ns"].min(initial=_UNSEEN), threads["last_ns"].max(initial=0)
        sums = dict.fromkeys((*_SUMS, "caused_ns"), np.zeros(len(rows), np.uint64))
        for name, column in (("holds", "count"), ("hold_ns", "busy_ns")):
            sums[name] = np.zeros(len(rows), np.uint64)
            np.add.at(sums[name], at, turns[column].astype(np.uint64))
        none = np.zeros(len(rows), np.uint32)
        return {
            "row": rows.astype(np.uint32),
            **dict.fromkeys(("process", "tid", "generations", "threads", "max_waiters"), none),
            "lanes": np.ones(len(rows), np.uint16),
            "start_ns": np.full(len(rows), start, np.int64),
            "end_ns": np.full(len(rows), end, np.int64),
            **sums,
        }

    # ---- tables ----

    def table(
        self,
        by: str,
        *,
        sort: str = "wait",
        text: str = "",
        rows: Sequence[int] = (),
        offset: int = 0,
        limit: int,
    ) -> pa.Table:
        """Return some rows.

        Args:
            by: `thread`, `object` or `processor`.
            sort: As parameter `sort` of endpoint `rows` in `protocol`.
            text: Return only rows that contain this text; commas separate alternatives.
            rows: Return only these rows, in this order; empty for all.
            offset: How many rows to leave out at the start.
            limit: How many rows to return at most.
        """
        numbers = self._numbers(by)
        if rows:
            wanted = np.array(rows, np.uint32)
            at = np.searchsorted(numbers["row"], wanted)
            at = at[(at < len(numbers["row"]))]
            at = at[np.isin(numbers["row"][at], wanted)]
        else:
            at = self._order(by, sort)
        if text:
            hits = np.flatnonzero(self._hits(by, text))
            at = at[np.isin(at, hits)]
        shown = at[max(offset, 0) :][: max(limit, 0)]
        return self._shown(by, shown).replace_schema_metadata({"total": str(len(at))})

    def _order(self, by: str, sort: str) -> NDArray[Any]:
        numbers = self._numbers(by)
        if sort == "start":
            return np.argsort(numbers["start_ns"], kind="stable")
        if sort == "name":
            labels = np.array(self.labels(by), dtype=object)
            return np.argsort(labels, kind="stable")
        keys = [-numbers[name].astype(np.int64) for name in _ORDERS[sort]]
        if not keys:
            return np.arange(len(numbers["row"]))
        return np.lexsort([numbers["row"], *reversed(keys)])

    def labels(self, by: str) -> list[str]:
        """Return the labels of all rows, in the order of their numbers."""
        known = self._labels.get(by)
        if known is None:
            known = self._labels[by] = self._labelled(by, np.arange(self.count(by)))
        return known

    def _labelled(self, by: str, at: NDArray[Any]) -> list[str]:
        numbers = self._numbers(by)
        if by == "processor":
            return [f"processor {row - 1}" for row in numbers["row"][at].tolist()]
        process = numbers["process"][at].tolist()
        if by == "thread":
            lives = (numbers[name][at].tolist() for name in ("tid", "start_ns"))
            return [
                self.naming.thread_label(*thread) for thread in zip(process, *lives, strict=True)
            ]
        places = (numbers[name][at].tolist() for name in ("init", "address"))
        return [
            name or self._unnamed(kind, *place)
            for name, kind, *place in zip(
                self._object_names(at), self._kinds(by, at), *places, strict=True
            )
        ]

    def _unnamed(self, kind: str, init: int, address: int) -> str:
        """Return the label of an unnamed object: by its initialization site, if known."""
        # The innermost inlined function is the most informative.
        site = self.site(init).partition(" inlined into ")[0]
        return f"{kind} of {site} {address:#x}" if site else f"{kind} {address:#x}"

    def _object_names(self, at: NDArray[Any]) -> list[str]:
        return [self._row_name(row) for row in self._numbers("object")["row"][at].tolist()]

    def _row_name(self, row: int) -> str:
        """Return the name of the objects of a row; the empty text if they have none."""
        begin, end = self._members.begin[row], self._members.begin[row + 1]
        objects = self.tables.objects[self._members.object[begin:end][:_NAMES]]
        columns = (objects[name].tolist() for name in ("process", "address", "kind", "first_ns"))
        places = zip(*columns, strict=True)
        return common_name([self.naming.object_name(*place) for place in places])

    def _kinds(self, by: str, at: NDArray[Any]) -> list[str]:
        if by != "object":
            return [by] * len(at)
        numbers = self._numbers(by)
        columns = (numbers[name][at].tolist() for name in ("process", "kind", "flags"))
        return [self.naming.object_kind(*row) for row in zip(*columns, strict=True)]

    def _hits(self, by: str, text: str) -> NDArray[np.bool_]:
        """Return for each row whether it contains a text; commas separate alternatives."""
        from pyarrow import compute  # not needed for the first picture

        texts = self._texts.get(by)
        if texts is None:
            texts = self._texts[by] = arrow.texts(self._searched(by))
        words = [word.strip() for word in text.lower().split(",")]
        is_hit = np.zeros(len(texts), np.bool_)
        for word in filter(None, words):
            hits = compute.match_substring(texts, word)
            is_hit |= np.asarray(hits.to_numpy(zero_copy_only=False), np.bool_)
        return is_hit | (not any(words))

    def _searched(self, by: str) -> list[str]:
        """Return for each row the text to search."""
        numbers = self._numbers(by)
        labels, kinds = self.labels(by), self._kinds(by, np.arange(len(numbers["row"])))
        pids = [self.naming.pid(process) for process in numbers["process"].tolist()]
        if by == "object":
            places = [f"{address:#x}" for address in numbers["address"].tolist()]
        else:
            places = [str(tid) for tid in numbers["tid"].tolist()]
        return [
            f"{label}\n{kind}\n{pid}\n{place}".lower()
            for label, kind, pid, place in zip(labels, kinds, pids, places, strict=True)
        ]

    def _shown(self, by: str, at: NDArray[Any]) -> pa.Table:
        numbers = self._numbers(by)
        process = numbers["process"][at].tolist()
        if by == "thread":
            lives = (numbers[name][at].tolist() for name in ("tid", "start_ns"))
            names = [
                self.naming.thread_name(*thread) for thread in zip(process, *lives, strict=True)
            ]
            addresses = [""] * len(at)
        elif by == "processor":
            names = addresses = [""] * len(at)
        else:
            names = self._object_names(at)
            addresses = [f"{address:#x}" for address in numbers["address"][at].tolist()]
        texts = {
            "kind": self._kinds(by, at),
            "label": self._labelled(by, at),
            "name": names,
            "pid": [self.naming.pid(p) for p in process],
            "object": addresses,
        }
        return protocol.table(protocol.ROWS, {name: n[at] for name, n in numbers.items()} | texts)

    # ---- single threads, objects, call sites ----

    def thread(self, row: int) -> protocol.ThreadRef | None:
        """Return the thread of a row; None if there is no such row."""
        if not 0 < row < len(self.tables.threads):
            return None
        thread = self.tables.threads[row]
        process, tid = int(thread["process"]), int(thread["tid"])
        first_ns = int(thread["first_ns"])
        return {
            "row": row,
            "pid": self.naming.pid(process),
            "tid": tid,
            "name": self.naming.thread_name(process, tid, first_ns),
            "label": self.naming.thread_label(process, tid, first_ns),
        }

    def object(self, number: int) -> protocol.ObjectRef | None:
        """Return the object with a number in the model; None if there is no such object."""
        if not 0 < number < len(self.tables.objects):
            return None
        record = self.tables.objects[number]
        process, address = int(record["process"]), int(record["address"])
        domain = int(record["kind"])
        kind = self.naming.object_kind(process, domain, int(record["flags"]))
        name = self.naming.object_name(process, address, domain, int(record["first_ns"]))
        label = name or self._unnamed(kind, int(record["init_site"]), address)
        return {
            "row": self.row_of(number),
            "pid": self.naming.pid(process),
            "kind": kind,
            "object": f"{address:#x}",
            "name": name,
            "label": label,
            "generation": int(record["generation"]),
        }

    def row_of(self, number: int) -> int:
        """Return the row of an object of the model, 0 for none."""
        return int(self.tables.row_of[number]) if number < len(self.tables.row_of) else 0

    def site(self, number: int) -> str:
        """Return a call site by its number, the empty text for none."""
        if not 0 < number < len(self.tables.sites):
            return ""
        place = self.tables.sites[number]
        return self.naming.site(int(place["process"]), int(place["address"]))

    def stack(self, thread: int, number: int, site: int) -> list[str]:
        """Return a call stack of a thread, given the numbers of the stack and the call site."""
        if not (0 < thread < len(self.tables.threads) and 0 <= site < len(self.tables.sites)):
            return []
        process = int(self.tables.threads["process"][thread])
        return self.naming.stack(process, number, int(self.tables.sites["address"][site]))

    # ---- from names to rows ----

    @computed_once
    def _by_thread(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        lives: dict[tuple[int, int], list[tuple[int, int]]] = {}
        numbers = self._of_threads
        for process, tid, first, row in zip(
            *(numbers[name].tolist() for name in ("process", "tid", "start_ns", "row")), strict=True
        ):
            lives.setdefault((process, tid), []).append((first, row))
        return lives

    @computed_once
    def _members(self) -> _Groups:
        """The objects by row. Objects of a row are in the order of their generations."""
        row_of = self.tables.row_of
        order = np.lexsort([self.tables.objects["generation"], row_of])
        begin = np.searchsorted(row_of[order], np.arange(len(self.tables.first) + 1))
        return _Groups(order, begin)

    @computed_once
    def _by_object(self) -> dict[tuple[int, int, int], tuple[NDArray[Any], NDArray[Any]]]:
        """The first time and the row of each object, by process, address and kind."""
        own = np.flatnonzero(self.tables.row_of)
        objects = self.tables.objects[own]
        keys = [objects[name] for name in ("generation", "kind", "address", "process")]
        order = np.lexsort(keys)
        objects, rows = objects[order], self.tables.row_of[own][order]
        columns = [objects[name] for name in ("process", "address", "kind")]
        change = np.ones(len(objects), np.bool_)
        change[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        begin = np.flatnonzero(change)
        ends = [*begin[1:].tolist(), len(objects)][: len(begin)]
        places = zip(*(column[begin].tolist() for column in columns), strict=True)
        first_ns = objects["first_ns"]
        return {
            place: (first_ns[start:end], rows[start:end])
            for place, start, end in zip(places, begin.tolist(), ends, strict=True)
        }

    def rows_of_threads(self, threads: list[tuple[int, int]], ts: list[int]) -> list[int]:
        """Return the rows of (process, tid) pairs at times. Thread ids may be reused."""
        return [
            _row_at(self._by_thread.get(pair, []), at) for pair, at in zip(threads, ts, strict=True)
        ]

    def rows_of_objects(
        self, processes: list[int], objects: list[int], ids: list[int], ts: list[int]
    ) -> list[int]:
        """Return the rows of the objects of events, by process, address, event id and time."""
        return [
            self.row_at((process, address, number >> 6, at))
            for process, address, number, at in zip(processes, objects, ids, ts, strict=True)
        ]

    def rows_of_model(self, objects: NDArray[Any]) -> list[int]:
        """Return the rows of objects of another model of the same traces."""
        names = ("process", "address", "kind", "first_ns")
        columns = (objects[name].tolist() for name in names)
        return [self.row_at(place) for place in zip(*columns, strict=True)]

    @computed_once
    def _threads_by_pid(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        return {
            (self.naming.pid(process), tid): rows
            for (process, tid), rows in self._by_thread.items()
        }

    @computed_once
    def _objects_by_pid(self) -> dict[tuple[int, int, str], tuple[int, int, int]]:
        """Process, address and kind in the model, by process id, address and kind in documents."""
        places: dict[tuple[int, int, str], tuple[int, int, int]] = {}
        for place in self._by_object:
            process, address, kind = place
            key = (self.naming.pid(process), address)
            places.setdefault((*key, libptttrack_sums.KINDS.get(kind, "object")), place)
            places.setdefault((*key, ""), place)
        return places

    def thread_row(self, pid: int, tid: int, at_ns: int | None = None) -> int:
        """Return the row of a thread in a document, 0 for none.

        Args:
            pid: Process id.
            tid: Thread id. Several threads may have had the id.
            at_ns: A time at which the thread existed; None for the last thread with this id.
        """
        return _row_at(self._threads_by_pid.get((pid, tid), []), at_ns)

    def object_row(self, pid: int, address: str, at_ns: int) -> int:
        """Return the row of an object in a document, at a time; 0 for none."""
        place = self._objects_by_pid.get((pid, int(address, 16), ""))
        return 0 if place is None else self.row_at((*place, at_ns))

    def named_row(self, pid: int, address: str, kind: str, name: str, init_site: str) -> int:
        """Return the row of an object in a report, 0 for none.

        Args:
            pid: Process id.
            address: Address of the object.
            kind: Kind of the object.
            name: Name of the object, or the empty text.
            init_site: Call site that initialized the object, or the empty text.
        """
        place = self._objects_by_pid.get((pid, int(address, 16), kind))
        rows: list[int] = []
        if place is not None:
            rows = list(dict.fromkeys(self._by_object[place][1].tolist()))
        if len(rows) < 2:  # noqa: PLR2004 -- there is no choice
            return rows[0] if rows else 0
        init = self._of_objects["init"]
        alike = [row for row in rows if self.site(int(init[row - 1])) == init_site]
        named = [row for row in alike or rows if common_name([name]) == self._row_name(row)]
        return next(iter(named or alike or rows))

    def row_at(self, place: Sequence[int]) -> int:
        """Return the row of the object at a process, address, kind and time; 0 for none."""
        process, address, kind, at_ns = place if len(place) == 4 else (0, 0, 0, 0)  # noqa: PLR2004
        generations = self._by_object.get((process, address, kind))
        if generations is None:
            return 0
        first_ns, rows = generations
        return int(rows[max(int(np.searchsorted(first_ns, at_ns, side="right")) - 1, 0)])

    def of_pieces(self, path: PathPieces) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the pieces of a path with rows as threads, and the row of each piece's object."""
        pieces = path.segments.copy()
        threads, which = np.unique(pieces["thread"], return_inverse=True)
        rows = path.threads[threads]
        pairs = list(zip(rows["process"].tolist(), rows["tid"].tolist(), strict=True))
        times = rows["first_ns"].tolist()
        pieces["thread"] = np.array(self.rows_of_threads(pairs, times), np.uint32)[which]
        objects, which = np.unique(pieces["object"], return_inverse=True)
        of = np.array(self.rows_of_model(path.objects[objects]), np.uint32)
        return pieces, of[which]

    def thread_numbers(self, rows: list[int]) -> list[int]:
        """Return the thread numbers of rows in the traceset."""
        known = [self.tables.threads[row] for row in rows if 0 < row < len(self.tables.threads)]
        numbers = [self.naming.thread_number(int(t["process"]), int(t["tid"])) for t in known]
        return [number for number in numbers if number is not None]

    def object_places(self, rows: list[int]) -> list[Place]:
        """Return for each row the place of its objects. No object of another row has the place."""
        first = [self.tables.first[row] for row in rows if 0 < row < len(self.tables.first)]
        objects = self.tables.objects[first]
        names = ("process", "address", "kind")
        columns = [objects[name].tolist() for name in names]
        inits = self.tables.sites["address"][objects["init_site"]].tolist()
        return [Place(*place) for place in zip(*columns, inits, strict=True)]

    def chosen(self, rows: list[int]) -> list[Chosen]:
        """Return all objects at the addresses of rows."""
        return [Chosen(place.process, place.address) for place in self.object_places(rows)]


def _row_at(rows: list[tuple[int, int]], at_ns: int | None) -> int:
    """Return the row of the thread that had an id at a time, from pairs of first time and row."""
    if at_ns is None:
        return rows[-1][1] if rows else 0
    fits = (row for first, row in reversed(rows) if first <= at_ns)
    return next(fits, rows[0][1] if rows else 0)


def _sums(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of sums."""
    n, ns = rows["wait_n"], rows["wait_ns"]
    columns = (n[:, 0], ns[:, 0], rows["wait_max"], ns[:, 1], ns[:, 2:].sum(axis=1),
               rows["hold_n"], rows["hold_ns"])  # fmt: skip
    return dict(zip(_SUMS, columns, strict=True))
