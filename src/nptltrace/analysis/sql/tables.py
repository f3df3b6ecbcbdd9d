"""Makes the tables of a traceset as `schema` declares them, each on first use.

Waits, holds, wake-ups and events come in pieces, so that a reader need not keep all of them.
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

_ALONE = ("states", "hold_samples")  # made only if they are asked for
_MODEL = (*ROW_TABLES, *_ALONE, "threads", "objects", "edges", "blames")
# Up to this number of events, holds and hold_samples are kept for the next query. Otherwise each
# query makes them.
_KEPT_EVENTS = 4_000_000

_OPERATIONS = {
    "mutex": "mutex_lock", "spinlock": "spin_lock", "cond": "cond_wait", "barrier": "barrier_wait",
    "semaphore": "sem_wait", "once": "once", "futex": "futex_wait", "thread": "join",
    "lll": "lll_lock",
}  # fmt: skip
_SOURCES = ("nptl", "handler", "user")
_SEMAPHORE = KINDS[DOMAINS["sem"]]
# The number of an event's domain begins at this bit of the event's number.
_DOMAIN_SHIFT = 6
_GIL_FIGURES = ("holds", "hold_ns", "wait_caused_ns", "waits", "wait_ns", "wait_max_ns")

# Returns the findings of opened traces as rows of the table `findings`.
Find = Callable[["Traceset", "Symbols", "Checker"], pa.Table]


class TraceTables:
    """The tables of a traceset. Several threads may call at once.

    Args:
        traceset: The opened traces.
        symbols: Names addresses; None to make it from the traces.
        scope: The part of the traces in the tables.
        findings: Makes the table of findings. None: the tables `findings` and `lock_cycles` cannot
            be read, because a kind of finding reads the tables.

    Attributes:
        symbols: Names addresses.
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
        # Threads of one query read several tables at once.
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
        """Whether the scope has only some threads."""
        return self._scope.counted.threads is not None

    # ---- questions ----

    def table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table.

        Args:
            name: One of `schema.TABLES`.
            columns: Names of columns to choose; None for all.

        Raises:
            UsageError: There is no such table or column.
        """
        schema = table_type(name).schema(columns)
        if self._is_streamed(name):
            return pa.concat_tables([schema.empty_table(), *self.batches(name, columns)])
        with self._lock:
            if name not in self._kept:
                self._keep(name)
            return self._kept[name].select(schema.names)

    def alone(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """Return a table, and make no other table of the model with it; see `table`."""
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
            columns: Names of columns to choose; None for all.
            window: The range of time of the table `events`; other tables ignore it.
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
        """Yield several tables in pieces, each with its table's name, and keep none.

        The events are read at most twice: for the model, and for the table `events`.
        """
        if any(name in _MODEL for name in names):
            rows = [name for name in (*ROW_TABLES, *_ALONE) if name in names]
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
        """Yield the sums of a model with their tables' names; see `tables_and_states`."""
        self._source.names.learn()
        for name, raw in tables_and_states(self._source, rows, times, save):
            yield name, self._finished(name, raw)

    def pieces_of_slice(
        self, rows: Collection[str], times: Sequence[int], number: int, state: bytes | None
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of a slice of time, as `pieces` does; see `rows_of_slice`."""
        for name, raw in rows_of_slice(self._source, rows, times, number, state):
            yield name, self._finished(name, raw)

    @staticmethod
    def empty(name: str) -> pa.Table:
        """Return a table without rows."""
        return table_type(name).schema().empty_table()

    def places(self) -> dict[str, tuple[int, int]]:
        """Return (process, address) of each site of the table `sites`, by `site_id`."""
        return {
            identity: (process, site) for identity, process, site in self._sites.all(frames=True)
        }

    # ---- keeping ----

    def _is_streamed(self, name: str) -> bool:
        events = sum(self._source.reader.trace_info(t.number).events for t in self._source.traces)
        many = name in {"holds", "hold_samples"} and events > _KEPT_EVENTS
        return name == "events" or many

    def _keep(self, name: str) -> None:
        """Make and keep a table, and with it the model's other tables except edges and _ALONE."""
        if name not in _MODEL:
            self._kept[name] = self._of_processes(self._made(name, self._makers[name]()))
            return
        edges = name == "edges"
        alone = edges or name in _ALONE
        rows = [row for row in ROW_TABLES if not alone and not self._is_streamed(row)]
        rows += [name] if name in _ALONE else []
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
        """Return the rows of the processes in the scope, and the rows without a process."""
        if not self.leaves_threads_out or "process" not in table.column_names:
            return table
        process = table["process"]
        chosen = self._scope.has_processes(_numpy(process.fill_null(0)))
        return table.filter(pa.array(chosen | _numpy(process.is_null())))

    def _chosen(self, name: str, raw: pa.Table) -> pa.Table:
        """Return the rows in the scope, for tables that the model itself does not restrict."""
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
                is_word = pa.types.is_dictionary(field.type)
                column = pa.array(column, field.type.value_type if is_word else field.type)
            arrays.append(_as(column, field.type))
        return pa.table(arrays, schema=schema)

    # ---- tables of the model ----

    def _identity(self, raw: pa.Table) -> dict[str, Any]:
        process = _numpy(raw["process"])
        numbers = self._numbers
        return {
            "run_id": numbers.run(process), "process": raw["process"], "pid": numbers.pid[process],
        }  # fmt: skip

    def _stack(
        self, raw: pa.Table, site: str, process: str = "process", stack: str = ""
    ) -> pa.Array:
        """Return the identities of the stacks in a table of the model.

        Args:
            raw: The table of the model.
            site: Name of the column of call sites, for rows without a stack.
            process: Name of the column of processes.
            stack: Name of the column of numbers of stacks; empty if there is none.
        """
        processes, sites = _numpy(raw[process].fill_null(0)), _numpy(raw[site])
        if not stack:
            return self._sites.ids(processes, sites)
        return self._stacks.ids(processes, _numpy(raw[stack]), sites)

    def _finished(self, name: str, raw: pa.Table) -> pa.Table:
        """Return a table of the model, with the columns that the model does not have."""
        columns = dict(zip(raw.column_names, raw.columns, strict=True))
        columns |= self._identity(raw)
        columns |= {column: self._stack(raw, *inputs) for column, inputs in STACKS[name]}
        if added := self._added.get(name):
            columns |= added(raw)
        return self._made(name, columns)

    def _policies(self, raw: pa.Table) -> dict[str, Any]:
        # The tracer reports an unusual policy when a thread or a process begins.
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
        """Return the name of an object, and the source of the name."""
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

    # ---- tables from other sources ----

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
        numbers = enumerate(self._numbers.processes)
        by_index = {(trace, index): number for number, (trace, index, _) in numbers}
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
        table = self._find(self._source, self._symbols, self._checked())
        chosen = [
            self._scope.includes(
                row["ts_ns"], row["process"], row["threads"], _places(row), row["sites"]
            )
            for row in table.drop("message").to_pylist()
        ]  # fmt: skip
        table = table.filter(pa.array(chosen, pa.bool_()))
        return {**{name: table[name] for name in table.column_names}, **self._identity(table)}

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
            # The lock that was used first comes first.
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
        """Return (first use, number) of the objects by process, kind and address, in order."""
        raw = next(table for name, table in self._model((), edges=False) if name == "objects")
        generations: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
        names = ("process", "kind", "addr", "first_ns", "lock_id")
        for *place, first_ns, number in zip(
            *(raw[name].to_pylist() for name in names), strict=True
        ):
            generations.setdefault(tuple(place), []).append((first_ns or 0, number))
        return {place: sorted(objects) for place, objects in generations.items()}

    def _site_rows(self) -> dict[str, Any]:
        rows = []
        for identity, process, site in self._sites.all(frames=True):
            place = self._sites.place(process, site)
            source = self._symbols.location(process, site)
            rows.append(
                {
                    "run_id": self._numbers.identity(process)["run_id"],
                    "site_id": identity,
                    "module": place.module,
                    "build_id": place.build_id,
                    "offset": place.offset,
                    "function": source.function,
                    "file": source.file,
                    "path": source.path,
                    "line": source.line or None,
                    "inlined": [str(frame) for frame in source.inlined],
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
        # Handlers and the tracer report more losses in events.
        threads = self._source.thread_ids
        for loss in reported_losses(self._source.reader):
            process, tid = threads[loss.thread]
            identity = {**self._numbers.identity(process), "tid": tid}
            rows.append({**identity, "t_ns": loss.t_ns, "cause": loss.cause, "count": loss.events})
        return _columns(rows, "lost")


class _Numbers:
    """Runs and pids by the numbers of processes, and sources by the numbers of events.

    Attributes:
        processes: (number of the trace, index in the trace, pid) of each process.
        pid: Pids by process, uint32.
    """

    def __init__(self, source: Traceset) -> None:
        self.processes = source.reader.processes(0)
        self.pid = np.array([process.pid for process in source.processes], np.uint32)
        self._uuids = [str(trace.metadata.uuid) for trace in source.traces]
        self._runs = pa.array(self._uuids, pa.string())
        self._run = np.array([trace for trace, _, _ in self.processes], np.int32)
        self._source = np.zeros(1024, np.int32)
        for event in EVENTS:
            where = {"handler": "handler", "user": "user"}.get(event.domain, "nptl")
            self._source[event.id] = _SOURCES.index(where)

    def run(self, process: NDArray[Any]) -> pa.Array:
        """Return the run ids of processes."""
        return pa.DictionaryArray.from_arrays(pa.array(self._run[process]), self._runs)

    def source(self, event_id: NDArray[Any]) -> pa.Array:
        """Return the sources of events: `nptl`, `handler` or `user`."""
        return pa.DictionaryArray.from_arrays(
            pa.array(self._source[event_id]), pa.array(_SOURCES, pa.string())
        )

    def identity(self, process: int) -> dict[str, Any]:
        """Return the columns that name a process."""
        run_id = self._uuids[self._run[process]]
        return {"run_id": run_id, "process": process, "pid": int(self.pid[process])}


def _places(finding: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (address, time) of the objects of a row of the table of findings."""
    events = ((int(event["object"] or "0", 16), event["ts_ns"]) for event in finding["events"])
    objects = [int(address, 16) for address in finding["objects"]]
    return places_of(objects, finding["ts_ns"], events)


def _lock_id(
    generations: Mapping[tuple[int, str, int], Sequence[tuple[int, int]]], lock: CycleLock
) -> int | None:
    """Return the number of a lock of a cycle in `objects`; None if it is not in the scope."""
    place = (lock.process, KINDS.get(lock.kind, ""), lock.address)
    objects = generations.get(place, ())
    used = [number for first_ns, number in objects if first_ns <= lock.ts_ns]
    return used[-1] if used else objects[0][1] if objects else None


def _users(raw: pa.Table) -> Users:
    """Return the users of objects, by the rows of a table of the model."""
    later = raw["later_users"].combine_chunks()
    rows = np.repeat(np.arange(raw.num_rows), _numpy(later.value_lengths()))
    return Users(_numpy(raw["users"]), rows, _numpy(later.flatten()))


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.to_numpy())


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array with the type of a column."""
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
    """Return the operations of waits, such as `mutex_lock`."""
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
