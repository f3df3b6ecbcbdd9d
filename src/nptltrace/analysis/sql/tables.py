"""The tables of a traceset as `schema` declares them, each made when it is asked for.

Waits, holds, wake-ups and events come in pieces, so that what reads them need not hold them all.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import PurePath
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nptltrace._binding.libptttrack_sums import KINDS
from nptltrace._escaping import readable
from nptltrace.analysis.model import ROW_TABLES, Counted, model_batches
from nptltrace.analysis.model_slices import rows_of_slice, tables_and_states
from nptltrace.analysis.objects import Objects, Users
from nptltrace.analysis.question_scope import Scope, places_of
from nptltrace.analysis.sql.attributes import init_attributes, policies
from nptltrace.analysis.sql.schema import ALL_THREADS, EVENT_FIELDS, TABLES, table_type
from nptltrace.analysis.sql.spill import Shelf
from nptltrace.analysis.stable_ids import Sites, Stacks
from nptltrace.catalog import DOMAINS, EVENTS
from nptltrace.catalog.tables import STACKS
from nptltrace.errors import UsageError
from nptltrace.trace.code.call_site import ADDRESS, hex_of_site
from nptltrace.trace.losses import reported_losses
from nptltrace.trace.reading.parallel import event_batches
from nptltrace.trace.statistics import process_ends
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nptltrace._binding import libptttrack_sums
    from nptltrace.analysis.checking.checker import Checker
    from nptltrace.analysis.checking.lock_cycles import CycleLock
    from nptltrace.analysis.model import Window
    from nptltrace.trace.info import Process
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["TraceTables"]

_MODEL = (*ROW_TABLES, "states", "threads", "objects", "edges", "blames")
# The holds of this many events are kept for the next query; others are computed for each.
_KEPT_EVENTS = 4_000_000

_OPERATIONS = {
    "mutex": "mutex_lock", "spinlock": "spin_lock", "cond": "cond_wait", "barrier": "barrier_wait",
    "semaphore": "sem_wait", "once": "once", "futex": "futex_wait", "thread": "join",
    "lll": "lll_lock",
}  # fmt: skip
_SOURCES = ("nptl", "handler", "user")
_SEMAPHORE = KINDS[DOMAINS["sem"]]
# Of the number of an event, the bits below those of its domain.
_DOMAIN_SHIFT = 6
_GIL_FIGURES = ("holds", "hold_ns", "wait_caused_ns", "waits", "wait_ns", "wait_max_ns")

# Returns the findings of opened traces as rows of the table.
Find = Callable[["Traceset", "Symbols", "Checker"], pa.Table]


class TraceTables:
    """The tables of a traceset; several threads may ask at once.

    Args:
        traceset: The opened traces.
        symbols: Names addresses; made from what the traces say otherwise.
        scope: What the tables have of the traces.
        findings: Looks for findings, for the table of them; None: there is no such table, since
            what finds them cannot read it.

    Attributes:
        symbols: As given, or made.
    """

    def __init__(
        self,
        traceset: Traceset,
        symbols: Symbols | None = None,
        scope: Scope | None = None,
        findings: Find | None = None,
    ) -> None:
        self._source = traceset
        self.symbols = self._symbols = symbols or Symbols(self._source)
        self._scope = scope or Scope()
        self._window = self._scope.window
        self._find = findings
        self._kept: dict[str, pa.Table] = {}
        self._checker: Checker | None = None
        # A query reads several tables at once.
        self._lock = RLock()
        self._numbers = _Numbers(traceset)
        self._sites = Sites(self._source)
        self._stacks = Stacks(self._source, self._sites)
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "runs": self._runs,
            "processes": self._processes,
            "findings": self._findings,
            "lock_cycles": self._lock_cycles,
            "gil": self._gil,
            "sites": self._site_rows,
            "stacks": self._stack_rows,
            "modules": self._modules,
            "lost": self._lost,
        }
        self._added: dict[str, Callable[[pa.Table], dict[str, Any]]] = {
            "threads": self._policies,
            "objects": self._names_of_objects,
            "waits": lambda raw: {"op": _operations(raw)},
        }

    @property
    def leaves_threads_out(self) -> bool:
        """Whether the scope has some threads only."""
        return self._scope.counted.threads is not None

    # ---- questions ----

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table.

        Args:
            name: One of `schema.TABLES`.
            columns: Only these; None for all.

        Raises:
            UsageError: There is no such table.
        """
        schema = table_type(name).schema(columns)
        if self._is_streamed(name):
            return pa.concat_tables([schema.empty_table(), *self.batches(name, columns)])
        with self._lock:
            if name not in self._kept:
                self._keep(name)
            return self._kept[name].select(schema.names)

    def alone(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table without making those that come with it; see `table`."""
        with self._lock:
            if name in _MODEL and name not in self._kept and not self._is_streamed(name):
                shelf = Shelf()
                shelf.add(self.empty(name))
                for _, piece in self.pieces((name,)):
                    shelf.add(piece)
                self._kept[name] = shelf.table()
        return self.table(name, columns)

    def batches(
        self, name: str, columns: Collection[str] | None = None, window: Window | None = None
    ) -> Iterator[pa.Table]:
        """Yield a table in pieces.

        Args:
            name: One of `schema.TABLES`, or `ALL_THREADS`.
            columns: Only these; None for all.
            window: Of events, only those in this part.
        """
        if name == "events":
            yield from self._events(columns, window)
        elif name == ALL_THREADS.name:
            with self._lock:
                if name not in self._kept:
                    self._keep("threads")
            yield self._kept[name].select(ALL_THREADS.schema(columns).names)
        elif self._is_streamed(name):
            chosen = table_type(name).schema(columns).names
            yield from (piece.select(chosen) for _, piece in self.pieces((name,)))
        else:
            yield self.table(name, columns)

    def pieces(self, names: Collection[str]) -> Iterator[tuple[str, pa.Table]]:
        """Yield several tables in pieces, each with its table's name; nothing is kept.

        The events are gone through twice at most: for the model, and for themselves.
        """
        if any(name in _MODEL for name in names):
            rows = [name for name in (*ROW_TABLES, "states") if name in names]
            for name, raw in self._model(rows, edges="edges" in names):
                if name in names:
                    yield name, self._finished(name, self._chosen(name, raw))
        for name in names:
            if name == "events":
                yield from ((name, piece) for piece in self._events(None, None))
            elif name not in _MODEL:
                yield name, self.table(name)

    def sums_and_states(
        self,
        rows: Collection[str],
        times: Sequence[int],
        save: Callable[[int, libptttrack_sums.Model], None],
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield what a model adds up, with the tables' names; see `slices.tables_and_states`."""
        self._source.names.learn()
        for name, raw in tables_and_states(self._source, rows, times, save):
            yield name, self._finished(name, raw)

    def pieces_of_slice(
        self, rows: Collection[str], times: Sequence[int], number: int, state: bytes | None
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of a slice of time, as `pieces` does; see `slices.rows_of_slice`."""
        for name, raw in rows_of_slice(self._source, rows, times, number, state):
            yield name, self._finished(name, raw)

    @staticmethod
    def empty(name: str) -> pa.Table:
        """Return a table without rows."""
        return table_type(name).schema().empty_table()

    def places(self) -> dict[str, tuple[int, int]]:
        """Return process and address of each site of the table `sites`."""
        return {
            identity: (process, site) for identity, process, site in self._sites.all(frames=True)
        }

    # ---- keeping ----

    def _is_streamed(self, name: str) -> bool:
        events = sum(self._source.reader.trace_info(t.number).events for t in self._source.traces)
        return name == "events" or (name == "holds" and events > _KEPT_EVENTS)

    def _keep(self, name: str) -> None:
        """Make a table, and those that come with it; edges and states come alone."""
        if name not in _MODEL:
            self._kept[name] = self._of_processes(self._made(name, self._makers[name]()))
            return
        edges = name == "edges"
        alone = edges or name == "states"
        rows = [row for row in ROW_TABLES if not alone and not self._is_streamed(row)]
        rows += [name] if name == "states" else []
        shelves: dict[str, Shelf] = {}
        for made, raw in self._model(rows, edges=edges):
            if made == "threads" and self.leaves_threads_out:
                self._kept[ALL_THREADS.name] = self._finished(made, raw)
            if made in self._kept:
                continue
            shelves.setdefault(made, Shelf()).add(self._finished(made, self._chosen(made, raw)))
        for made, shelf in shelves.items():
            self._kept[made] = shelf.table()

    def _of_processes(self, table: pa.Table) -> pa.Table:
        """Return the rows of the processes in the scope, and those of no process."""
        if not self.leaves_threads_out or "process" not in table.column_names:
            return table
        process = table["process"]
        chosen = self._scope.has_processes(_numpy(process.fill_null(0)))
        return table.filter(pa.array(chosen | _numpy(process.is_null())))

    def _chosen(self, name: str, raw: pa.Table) -> pa.Table:
        """Return what is in the scope, of tables that the model does not restrict itself."""
        if self._scope.counted == Counted() or name not in {"threads", "objects", "edges"}:
            return raw
        process, scope = _numpy(raw["process"]), self._scope
        if name == "objects":
            objects = self._objects_of(raw)
            chosen = scope.has_objects(process, objects.address, objects.first_ns, objects.kind)
            return raw.filter(pa.array(chosen & scope.has_processes(process)))
        chosen = scope.has_threads(process, _numpy(raw["tid"].fill_null(0)))
        if name == "edges":
            chosen &= scope.has_sites(process, _numpy(raw["wanted_site"]))
            held, wanted, first_ns = map(_numpy, raw.select(["held", "wanted", "first_t"]).columns)
            chosen &= scope.has_objects(process, held, first_ns) | scope.has_objects(
                process, wanted, first_ns
            )
        return raw.filter(pa.array(chosen))

    def _model(self, rows: Sequence[str], *, edges: bool) -> Iterator[tuple[str, pa.Table]]:
        with self._lock:
            self._source.names.learn()
        window, counted = self._scope.window, self._scope.counted
        return model_batches(self._source, rows, edges=edges, window=window, counted=counted)

    @staticmethod
    def _made(name: str, columns: dict[str, Any]) -> pa.Table:
        schema = table_type(name).schema()
        arrays = []
        for field in schema:
            column = columns[field.name]
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            if not isinstance(column, pa.Array):
                column = pa.array(column, _plain(field.type))
            arrays.append(_as(column, field.type))
        return pa.table(arrays, schema=schema)

    # ---- what the model knows ----

    def _identity(self, raw: pa.Table) -> dict[str, Any]:
        process = _numpy(raw["process"])
        numbers = self._numbers
        return {
            "run_id": numbers.run(process), "process": raw["process"], "pid": numbers.pid[process],
        }  # fmt: skip

    def _stack(
        self, raw: pa.Table, site: str, process: str = "process", stack: str = ""
    ) -> pa.Array:
        """Return identities of stacks, which are in the process that a column names.

        Args:
            raw: What the model says.
            site: The column of call sites, for what has no stack.
            process: The column of the processes.
            stack: The column of numbers of stacks; empty if there is none.
        """
        processes, sites = _numpy(raw[process].fill_null(0)), _numpy(raw[site])
        if not stack:
            return self._sites.ids(processes, sites)
        return self._stacks.ids(processes, _numpy(raw[stack]), sites)

    def _finished(self, name: str, raw: pa.Table) -> pa.Table:
        """Return what the model says, with the columns that are not in it."""
        columns = dict(zip(raw.column_names, raw.columns, strict=True))
        columns |= self._identity(raw)
        columns |= {column: self._stack(raw, *inputs) for column, inputs in STACKS[name]}
        if added := self._added.get(name):
            columns |= added(raw)
        return self._made(name, columns)

    def _policies(self, raw: pa.Table) -> dict[str, Any]:
        # A policy that is not the ordinary one is reported when a thread or a process begins.
        first = _numpy(raw["tid"]) == self._numbers.pid[_numpy(raw["process"])]
        scheduled = _numpy(raw["begun"]) | _numpy(raw["scheduled"]) | first
        return {
            "policy": policies(_numpy(raw["policy_number"]), scheduled),
            "prio": pa.array(_numpy(raw["priority"]), mask=~scheduled),
        }

    def _names_of_objects(self, raw: pa.Table) -> dict[str, Any]:
        columns = (raw[name].to_pylist() for name in ("process", "addr", "kind", "first_ns"))
        names = [self._object_name(*row) for row in zip(*columns, strict=True)]
        used = np.flatnonzero(_numpy(raw["threads"]))
        alike = np.arange(raw.num_rows)
        alike[used] = used[
            self._objects_of(raw.take(used)).first_alike(
                lambda at: names[used[at]][1] != "address", self._symbols
            )
        ]
        return {
            "first_alike": _numpy(raw["lock_id"])[alike],
            "threads_alike": _users(raw).count(np.arange(raw.num_rows), alike, raw.num_rows)[alike],
            "name": [name for name, _ in names],
            "name_source": [source for _, source in names],
            "init_attr": init_attributes(
                raw["kind"].combine_chunks(), _numpy(raw["attributes"]), _numpy(raw["made"])
            ),
        }

    @staticmethod
    def _objects_of(raw: pa.Table) -> Objects:
        numbers = {word: number for number, word in KINDS.items()}
        kind = raw["kind"].combine_chunks()
        words = np.array([numbers[word] for word in kind.dictionary.to_pylist()], np.int64)
        first_ns = raw["first_ns"].fill_null(0)
        return Objects(
            _numpy(raw["process"]), _numpy(raw["addr"]), words[np.asarray(kind.indices)],
            _numpy(raw["init_site"]), _numpy(first_ns),
        )  # fmt: skip

    def _object_name(
        self, process: int, address: int, kind: str, first_ns: int | None
    ) -> tuple[str, str]:
        """Return what to call an object, and where that comes from."""
        name = self._symbols.object_name(process, address)
        if not name and kind == _SEMAPHORE:
            name = self._symbols.object_name(process, address, DOMAINS["sem"], first_ns)
            return (name, "python") if name else (f"{address:#x}", "address")
        if not name:
            return f"{address:#x}", "address"
        aliases = self._symbols.aliases
        is_alias = (
            address in aliases.addresses or name.partition("+")[0] in aliases.symbols.values()
        )
        return name, "alias" if is_alias else "symbol"

    # ---- events ----

    def _events(self, columns: Collection[str] | None, window: Window | None) -> Iterator[pa.Table]:
        schema = TABLES["events"].schema(columns)
        fields = [EVENT_FIELDS[name] for name in schema.names if name in EVENT_FIELDS]
        part = self._window if window is None else self._window.common(window)
        for batch in event_batches(self._source, part.begin_ns, part.end_ns, fields=fields):
            table = self._chosen_events(batch)
            arrays = [self._event_column(table, field.name) for field in schema]
            yield pa.table(
                [_as(array, field.type) for array, field in zip(arrays, schema, strict=True)],
                schema=schema,
            )

    def _chosen_events(self, table: pa.Table) -> pa.Table:
        if self._scope.counted == Counted():
            return table
        process, scope = _numpy(table["process"]), self._scope
        chosen = scope.has_threads(process, _numpy(table["tid"]))
        domain = _numpy(table["event_id"]) >> _DOMAIN_SHIFT
        chosen &= scope.has_objects(
            process, _numpy(table["object"]), _numpy(table["ts_ns"]), domain
        )
        chosen &= scope.has_sites(process, _numpy(table["site"]))
        return table.filter(pa.array(chosen))

    def _event_column(self, table: pa.Table, name: str) -> pa.Array:
        if name == "run_id":
            return self._numbers.run(_numpy(table["process"]))
        if name == "source":
            return self._numbers.source(_numpy(table["event_id"]))
        if name == "stack_id":
            return self._stack(table, "site", stack="stack")
        if name == "site":
            return pa.array(_numpy(table["site"]) & np.uint64(ADDRESS))
        return table[name].combine_chunks()

    # ---- what stands beside the events ----

    def _runs(self) -> dict[str, Any]:
        return _columns([self._run(trace) for trace in self._source.traces], "runs")

    def _run(self, trace: TraceFiles) -> dict[str, Any]:
        session, env = trace.info.session, trace.metadata.env
        info = self._source.reader.trace_info(trace.number)
        processes = trace.info.processes
        first = processes[min(processes)] if processes else None
        version = [str(env.get(f"tracer_{part}", "")) for part in ("major", "minor", "patch")]
        return {
            "run_id": str(trace.metadata.uuid),
            "path": readable(str(trace.path)),
            "host": env.get("hostname") or session.string("hostname"),
            "boot_id": env.get("boot_id") or session.string("boot_id"),
            "kernel": env.get("kernel") or session.string("kernel"),
            "machine": env.get("architecture") or session.string("machine"),
            "cpus": session.number("cpus"),
            "t0_unix_ns": self._source.start_unix_ns,
            "start_unix_ns": session.number("start_unix_ns"),
            "end_unix_ns": session.number("end_unix_ns"),
            "clock": env.get("clock") or session.string("clock", "name"),
            "tool_version": session.string("recorder", "version") or ".".join(version).strip("."),
            **_program(first),
            "level": session.level or str(env.get("level", "")),
            "state": session.state,
            "events": info.events,
            "bytes": info.bytes,
            "lost_total": sum(self._source.losses(trace).values()),
            "uncovered_modules": [
                readable(str(item.get("module", ""))) for item in session.uncovered
            ],
        }

    def _processes(self) -> dict[str, Any]:
        by_index = {
            (trace, index): number
            for number, (trace, index, _) in enumerate(self._numbers.processes)
        }
        rows = []
        ends, t0 = process_ends(self._source), self._source.start_unix_ns
        for number, process in enumerate(self._source.processes):
            trace, parent = self._numbers.processes[number][0], process.parent
            began, status = process.start_unix_ns, process.status
            rows.append(
                {
                    **self._numbers.identity(number),
                    "ppid": process.ppid,
                    "parent": None if parent is None else by_index.get((trace, parent)),
                    **_program(process),
                    "start_ns": None if began is None else began - t0,
                    "end_ns": ends[number],
                    "status": status
                    if status is None or isinstance(status, str)
                    else json.dumps(status),
                }
            )
        return _columns(rows, "processes")

    def _findings(self) -> dict[str, Any]:
        if self._find is None:
            raise UsageError("a finding cannot read the table findings")
        found = self._find(self._source, self._symbols, self._checked())
        chosen = [
            self._scope.includes(
                row["ts_ns"], row["process"], row["threads"], _places(row), row["sites"]
            )
            for row in found.drop("message").to_pylist()
        ]  # fmt: skip
        found = found.filter(pa.array(chosen, pa.bool_()))
        return {**{name: found[name] for name in found.column_names}, **self._identity(found)}

    def _checked(self) -> Checker:
        if self._checker is None:
            from nptltrace.analysis.checking.checker import checked

            self._checker = checked(self._source)
        return self._checker

    def _lock_cycles(self) -> dict[str, Any]:
        from nptltrace.analysis.checking.lock_cycles import lock_cycles

        if self._find is None:
            raise UsageError("a finding cannot read the table lock_cycles")
        generations = self._generations()
        rows = []
        for cycle in lock_cycles(self._source, self._checked().check):
            places = [(lock.address, lock.ts_ns) for lock in cycle.locks]
            if not self._scope.includes(cycle.ts_ns, cycle.process, cycle.tids, places, []):
                continue
            locks = [_lock_id(generations, lock) for lock in cycle.locks]
            # The lock that was seen first comes first.
            first = min(range(len(locks)), key=lambda at: locks[at] or 0)
            rows.append(
                {
                    **self._numbers.identity(cycle.process),
                    "ts_ns": cycle.ts_ns,
                    "lock_ids": locks[first:] + locks[:first],
                    "threads": [*cycle.tids[first:], *cycle.tids[:first]],
                    "suppressed": list(cycle.suppressed),
                }
            )
        return _columns(rows, "lock_cycles")

    def _gil(self) -> dict[str, Any]:
        from nptltrace.analysis.gil import gil_places

        rows = []
        for place in gil_places(self._source, self._symbols, self._scope):
            line = place.line
            figures = {name: getattr(line, name) for name in _GIL_FIGURES}
            site_id = self._sites.identity(place.process, place.site) if place.site else None
            identity = self._numbers.identity(place.process)
            where = {"tid": line.tid, "name": line.gil, "site_id": site_id}
            rows.append({**identity, **where, **figures})
        return _columns(rows, "gil")

    def _generations(self) -> dict[tuple[int, str, int], list[tuple[int, int]]]:
        """Return first use and number of the objects at each place, the earliest first."""
        raw = next(table for name, table in self._model((), edges=False) if name == "objects")
        found: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
        names = ("process", "kind", "addr", "first_ns", "lock_id")
        for *place, first_ns, number in zip(
            *(raw[name].to_pylist() for name in names), strict=True
        ):
            found.setdefault(tuple(place), []).append((first_ns or 0, number))
        return {place: sorted(objects) for place, objects in found.items()}

    def _site_rows(self) -> dict[str, Any]:
        rows = []
        for identity, process, site in self._sites.all(frames=True):
            place = self._sites.place(process, site)
            found = self._symbols.location(process, site)
            rows.append(
                {
                    "run_id": self._numbers.identity(process)["run_id"],
                    "site_id": identity,
                    "module": place.module,
                    "build_id": place.build_id,
                    "offset": place.offset,
                    "function": found.function,
                    "file": found.file,
                    "path": found.path,
                    "line": found.line or None,
                    "inlined": [str(frame) for frame in found.inlined],
                    "site": self._symbols.site_name(process, site) or hex_of_site(site),
                }
            )
        return _columns(rows, "sites")

    def _stack_rows(self) -> dict[str, Any]:
        rows = [
            {
                "run_id": self._numbers.identity(stack.process)["run_id"],
                "stack_id": stack.identity,
                "site_id": self._sites.identity(stack.process, stack.site),
                "depth": len(stack.frames),
                "frames": [self._sites.identity(stack.process, frame) for frame in stack.frames],
                "truncated": stack.truncated,
            }
            for stack in self._stacks.all()
        ]
        return _columns(rows, "stacks")

    def _modules(self) -> dict[str, Any]:
        rows = [
            {
                **self._numbers.identity(number),
                "path": readable(module.path),
                "name": readable(PurePath(module.path).name),
                "build_id": module.build_id,
                "start": module.start,
                "end": module.end,
                "bias": module.bias,
            }
            for number, process in enumerate(self._source.processes)
            for module in process.map.modules()
        ]
        return _columns(rows, "modules")

    def _lost(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for trace in self._source.traces:
            run = {"run_id": str(trace.metadata.uuid)}
            causes = self._source.losses(trace).items()
            rows += [{**run, "cause": cause, "count": count} for cause, count in causes]
        # Handlers and the tracer report others in events.
        threads = self._source.thread_ids
        for loss in reported_losses(self._source.reader):
            process, tid = threads[loss.thread]
            identity = {**self._numbers.identity(process), "tid": tid}
            rows.append({**identity, "t_ns": loss.t_ns, "cause": loss.cause, "count": loss.events})
        return _columns(rows, "lost")


class _Numbers:
    """What stands behind numbers of processes and events.

    Attributes:
        processes: Trace, number in it, and pid of each process.
        pid: Pids by process.
    """

    def __init__(self, source: Traceset) -> None:
        self.processes = source.reader.processes(0)
        self.pid = np.array([process.pid for process in source.processes], np.uint32)
        uuids = [str(trace.metadata.uuid) for trace in source.traces]
        self._runs = pa.array(uuids, pa.string())
        self._uuid = uuids
        self._run = np.array([trace for trace, _, _ in self.processes], np.int32)
        self._source = np.zeros(1024, np.int32)
        for event in EVENTS:
            where = {"handler": "handler", "user": "user"}.get(event.domain, "nptl")
            self._source[event.id] = _SOURCES.index(where)

    def run(self, process: NDArray[Any]) -> pa.Array:
        """Return the runs of processes."""
        return pa.DictionaryArray.from_arrays(pa.array(self._run[process]), self._runs)

    def source(self, event_id: NDArray[Any]) -> pa.Array:
        """Return where events come from."""
        return pa.DictionaryArray.from_arrays(
            pa.array(self._source[event_id]), pa.array(_SOURCES, pa.string())
        )

    def identity(self, process: int) -> dict[str, Any]:
        """Return the columns that name a process."""
        run = self._uuid[self._run[process]]
        return {"run_id": run, "process": process, "pid": int(self.pid[process])}


def _places(finding: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (address, time) of what a row of the table of findings is about."""
    events = ((int(one["object"] or "0", 16), one["ts_ns"]) for one in finding["events"])
    objects = [int(address, 16) for address in finding["objects"]]
    return places_of(objects, finding["ts_ns"], events)


def _lock_id(
    generations: Mapping[tuple[int, str, int], Sequence[tuple[int, int]]], lock: CycleLock
) -> int | None:
    """Return the object that a lock of a cycle is; None where it is not in the scope."""
    place = (lock.process, KINDS.get(lock.kind, ""), lock.address)
    found = generations.get(place, ())
    at = [number for first_ns, number in found if first_ns <= lock.ts_ns]
    return at[-1] if at else found[0][1] if found else None


def _users(raw: pa.Table) -> Users:
    """Return the users of objects, by the rows of these."""
    later = raw["later_users"].combine_chunks()
    rows = np.repeat(np.arange(raw.num_rows), _numpy(later.value_lengths()))
    return Users(_numpy(raw["users"]), rows, _numpy(later.flatten()))


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.to_numpy())


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array as the type that a column has."""
    if array.type == type_:
        return array
    if not pa.types.is_dictionary(type_):
        return array.cast(type_)
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode()
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary)


def _columns(rows: list[dict[str, Any]], table: str) -> dict[str, Any]:
    """Return rows as columns."""
    return {name: [row.get(name) for row in rows] for name in TABLES[table].names}


def _operations(raw: pa.Table) -> pa.Array:
    """Return what waiting threads were about to do."""
    kind, mode = raw["kind"].combine_chunks(), raw["mode"].combine_chunks()
    kinds = kind.dictionary.to_pylist()
    words = [_OPERATIONS.get(name, "rwlock_wrlock") for name in kinds] + ["rwlock_rdlock"]
    codes = np.asarray(kind.indices).astype(np.int32)
    shared = (codes == kinds.index("rwlock")) & (np.asarray(mode.indices) == 1)
    codes[shared] = len(kinds)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words, pa.string()))


def _program(process: Process | None) -> dict[str, Any]:
    """Return the columns that name a program."""
    if process is None:
        return {"exe": "", "exe_build_id": "", "cmdline": ""}
    builds = [module.build_id for module in process.modules if module.path == process.exe]
    return {
        "exe": readable(process.exe),
        "exe_build_id": builds[0] if builds else "",
        "cmdline": shlex.join(process.cmdline),
    }
