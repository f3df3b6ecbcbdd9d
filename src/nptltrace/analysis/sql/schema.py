"""The tables of a trace: names, columns, types, units and meanings, declared once.

The Arrow schemas of `ptt sql`, the exports to Parquet and CSV and `Traceset.table()` are derived
from this, and so is the page of the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from nptltrace._version import __version__
from nptltrace.errors import UsageError, near
from nptltrace.trace.reading.columns import FIELD_NAMES, column_of_field

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ADDRESSES", "ALL_THREADS", "EVENT_FIELDS", "SCHEMA_VERSION", "TABLES", "Column", "TableType",
    "table_type",
]  # fmt: skip

# Raised when a column changes its name, type or meaning; new columns do not raise it.
SCHEMA_VERSION = 3

_WORD = pa.dictionary(pa.int32(), pa.string())
_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "string": pa.string(),
    "word": _WORD,
    "list of uint32": pa.list_(pa.uint32()),
    "list of string": pa.list_(pa.string()),
    "list of event": pa.list_(
        pa.struct(
            [
                ("ts_ns", pa.int64()),
                ("tid", pa.uint32()),
                ("text", pa.string()),
                ("site", pa.string()),
                ("object", pa.string()),
            ]
        )
    ),
}

# Names of the events' own fields by the name of their column.
EVENT_FIELDS = {column_of_field(name): name for name in FIELD_NAMES}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its name.
        type: A key of the types above; a `word` is a string of which there are few.
        meaning: Its meaning, and when it is null.
        unit: `ns`, `address`, `id`, or empty.
    """

    name: str
    type: str
    meaning: str
    unit: str = ""

    @property
    def field(self) -> pa.Field:
        """The column in an Arrow schema."""
        about = {"meaning": self.meaning} | ({"unit": self.unit} if self.unit else {})
        return pa.field(self.name, _TYPES[self.type], metadata=about)


@dataclass(frozen=True, slots=True)
class TableType:
    """A table.

    Attributes:
        name: Its name.
        row: What a row stands for.
        columns: Its columns.
    """

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def schema(self, columns: Iterable[str] | None = None) -> pa.Schema:
        """Return the Arrow schema.

        Args:
            columns: Only these, in the order of the table; None for all.

        Raises:
            UsageError: It has no such column.
        """
        chosen = None if columns is None else set(_names(columns, "columns"))
        unknown = sorted((chosen or set()).difference(self.names))
        if unknown:
            raise UsageError(
                f"table {self.name} has no column {unknown[0]!r}"
                + (near(unknown[0], self.names) or f": it has {', '.join(self.names)}")
            )
        fields = [c.field for c in self.columns if chosen is None or c.name in chosen]
        about = {
            "nptltrace.table": self.name,
            "nptltrace.schema_version": str(SCHEMA_VERSION),
            "nptltrace.version": __version__,
        }
        return pa.schema(fields, metadata=about)


def _names(given: Iterable[str], what: str) -> Iterable[str]:
    """Return names; a text alone is no list of them."""
    if isinstance(given, str):
        raise UsageError(f"{what} must be a list of names, such as [{given!r}]")
    return given


_RUN = Column("run_id", "word", "the trace, by its UUID", "id")
_IDENTITY = (
    _RUN,
    Column("process", "uint32", "process image, numbered in the traceset", "id"),
    Column("pid", "uint32", "process id"),
)
_TID = Column("tid", "uint32", "thread id of the kernel")
_THREAD = (_TID, Column("gen", "uint32", "which of the threads with this `tid`; see `threads`"))
_LOCK = Column("lock_id", "uint32", "the object; see `objects`", "id")


def _stack(name: str, of: str) -> Column:
    return Column(name, "word", f"call stack of {of}; null when unknown", "id")


_DECLARED = (
    TableType(
        "runs",
        "a trace",
        (
            _RUN,
            Column("path", "string", "its directory, as it was opened"),
            Column("host", "string", "name of the machine"),
            Column("boot_id", "string", "boot of the machine; equal ones share a clock"),
            Column("kernel", "string", "kernel of the machine"),
            Column("machine", "string", "its architecture"),
            Column("cpus", "uint32", "its processors"),
            Column("t0_unix_ns", "int64", "Unix time of time 0 of all tables", "ns"),
            Column("start_unix_ns", "int64", "Unix time at which recording began", "ns"),
            Column("end_unix_ns", "int64", "and ended; null while it runs", "ns"),
            Column("clock", "string", "`tsc` or `monotonic`"),
            Column("tool_version", "string", "version of the recorder"),
            Column("exe", "string", "the first program"),
            Column("exe_build_id", "string", "its build-id"),
            Column("cmdline", "string", "its command line, quoted for a shell"),
            Column("level", "string", "detail level, as it was asked for"),
            Column("state", "string", "`running`, `complete` or `recovered`"),
            Column("events", "uint64", "events that it holds"),
            Column("bytes", "uint64", "bytes of its packets"),
            Column("lost_total", "uint64", "events that were lost; see `lost`"),
            Column("uncovered_modules", "list of string", "modules that went past the tracer"),
        ),
    ),
    TableType(
        "processes",
        "a process image: what runs between two `exec` calls",
        (
            *_IDENTITY,
            Column("ppid", "uint32", "process id of the parent"),
            Column("parent", "uint32", "process image that forked it; null for the first", "id"),
            Column("exe", "string", "the program"),
            Column("exe_build_id", "string", "its build-id"),
            Column("cmdline", "string", "its command line, quoted for a shell"),
            Column("start_ns", "int64", "when it began; null when unknown", "ns"),
            Column("end_ns", "int64", "when it ended; null when unknown", "ns"),
            Column("status", "string", "how it ended, in the recorder's words"),
        ),
    ),
    TableType(
        "threads",
        "a thread",
        (
            *_IDENTITY,
            Column("tid", "uint32", "thread id of the kernel; null for one that never ran"),
            Column("gen", "uint32", "counts the threads of a process that had the same `tid`"),
            Column("name", "string", "its name, or empty"),
            Column("start_ns", "int64", "its first event", "ns"),
            Column("last_ns", "int64", "when it, its process or the recording ended", "ns"),
            Column("end_ns", "int64", "its end; null when it is not in the trace", "ns"),
            Column("create_ns", "int64", "when it was created; null when unknown", "ns"),
            Column("join_ns", "int64", "the time when it was joined; null when it was not", "ns"),
            Column("creator_tid", "uint32", "its creator"),
            _stack("create_stack", "its creation"),
            Column("start_routine", "uint64", "the function it began with", "address"),
            Column("begun", "bool", "its begin is in the trace"),
            Column("ended", "bool", "its end is in the trace"),
            Column("joined", "bool", "another thread joined it"),
            Column("detached", "bool", "it was detached"),
            Column("cancelled", "bool", "it ended by cancellation"),
            Column("held", "uint32", "locks that it held when it ended, or the trace did"),
            Column("policy", "word", "scheduling policy, the last in the trace: `other`, "
                   "`fifo`, `rr`, `batch`, `idle` or `deadline`; null when unknown"),
            Column("prio", "int32", "its priority in that policy; null when unknown"),
            Column("running_ns", "int64", "its life without waits, of what is chosen or not", "ns"),
            Column("cpu_ns", "int64", "how long it had a processor; null when unknown, and in a "
                   "part of a trace", "ns"),
            Column("ready_ns", "int64", "how long it could have run and had none; null likewise",
                   "ns"),
        ),
    ),
    TableType(
        "objects",
        "a mutex, condition variable, …; an address that is used anew is another object",
        (
            *_IDENTITY,
            _LOCK,
            Column("kind", "word", "`mutex`, `rwlock`, `spinlock`, `cond`, `barrier`, "
                   "`semaphore`, `once`, `futex`, `lll` (a lock of the C library's own), or "
                   "`thread` for what joins wait for"),
            Column("addr", "uint64", "its address", "address"),
            Column("gen", "uint32", "counts the objects at this address, from 1"),
            Column("name", "string", "global variable or alias; of a lock of Python what it is and "
                   "where it was created; otherwise its address"),
            Column("name_source", "word", "`symbol`, `alias`, `python` or `address`"),
            Column("first_ns", "int64", "its first use", "ns"),
            Column("last_ns", "int64", "its last use", "ns"),
            _stack("first_stack", "its first use"),
            _stack("init_stack", "its initialisation"),
            Column("init_attr", "word", "what it was initialised with: `recursive inherit robust`, "
                   "`prefer-writer`, `monotonic`, `count=4`, `value=1`; null when that is not in "
                   "the trace"),
            Column("shared", "bool", "between processes"),
            Column("ended", "bool", "destroyed, or its memory used anew"),
            Column("threads", "uint32", "how many threads used it"),
            Column("first_alike", "uint32", "the first object that `ptt report` counts it with: "
                   "used objects of one address that have one name, or were initialized at one "
                   "place", "id"),
            Column("threads_alike", "uint32", "how many threads used any of these objects"),
            Column("max_waiters", "uint32", "most threads that waited at once"),
            Column("wasted_signals", "uint64", "signals that found no waiter"),
            Column("holder_tid", "uint32", "its holder when the trace ended"),
            Column("waiters", "uint32", "how many waited when the trace ended"),
        ),
    ),
    TableType(
        "events",
        "an event",
        (
            *_IDENTITY,
            _TID,
            Column("ts_ns", "int64", "when", "ns"),
            Column("cpu", "uint16", "processor; null when unknown"),
            Column("source", "word", "`nptl`, `handler` or `user`"),
            Column("event", "word", "name of the event type"),
            Column("object", "uint64", "address of the object, 0 for none", "address"),
            Column("site", "uint64", "address it was called from, 0 for none", "address"),
            _stack("stack_id", "the call"),
            *(
                Column(column, "string" if FIELD_NAMES[name] else "int64",
                       f"field `{name}` of the event; null where it has none",
                       "ns" if name.endswith("_ns") else "")
                for column, name in EVENT_FIELDS.items()
            ),
        ),
    ),
    TableType(
        "waits",
        "a wait: a thread could not go on",
        (
            *_IDENTITY,
            *_THREAD,
            Column("wait_id", "uint64", "its number, in the order of beginnings", "id"),
            _LOCK,
            Column("kind", "word", "kind of the object"),
            Column("t_ns", "int64", "when it began", "ns"),
            Column("dur_ns", "int64", "how long; up to the end for one that never ended", "ns"),
            Column("held_ns", "int64", "of a contended one, while what it was for was held; else "
                   "null", "ns"),
            Column("wake_ns", "int64", "of a contended one, the rest: it was free, or the signal "
                   "was given, and the thread not yet awake", "ns"),
            Column("ready_ns", "int64", "meanwhile the thread could have run and had no processor; "
                   "null when unknown", "ns"),
            Column("op", "word", "what the thread did: `mutex_lock`, `rwlock_rdlock`, "
                   "`rwlock_wrlock`, `spin_lock`, `cond_wait`, `barrier_wait`, `sem_wait`, "
                   "`once`, `futex_wait`, `lll_lock`, `join`"),
            Column("result", "int32", "0, or the error number it ended with"),
            Column("class", "word", "`contended`, `idle`, `join`, `timeout`, `cancelled`, "
                   "`unknown` or `gil`"),
            Column("open", "bool", "it never ended"),
            Column("owner_tid", "uint32", "the holder when it began, or the thread whose end was "
                   "waited for; null when none"),
            Column("owner_gen", "uint32", "which of the threads with that id; null likewise"),
            Column("owner_process", "uint32", "its process image, another one where the object is "
                   "shared; null likewise", "id"),
            _stack("owner_stack", "the owner's taking it"),
            Column("waker_tid", "uint32", "the waker; null when none in the trace"),
            Column("waker_gen", "uint32", "which of the threads with that id; null likewise"),
            Column("waker_process", "uint32", "its process image; null likewise", "id"),
            _stack("waker_stack", "the wake-up"),
            Column("waker_t_ns", "int64", "when the wake-up was given; null when unknown", "ns"),
            Column("queue_depth", "uint32", "waiters of the object, this one included"),
            _stack("stack_id", "the wait"),
            _stack("holder_stack_id", "the owner's taking it, or where that is not known of its "
                   "first release of it meanwhile"),
            Column("chain_id", "uint64", "first wait of the chain of `parent_wait`", "id"),
            Column("parent_wait", "uint64", "wait in which the owner itself was; null for none. It "
                   "has no row if it turned out to be none: the last one at a barrier", "id"),
        ),
    ),
    TableType(
        "holds",
        "a stretch of time in which a thread held a mutex, rwlock or spin lock, or a semaphore "
        "that is used as a lock, or ran a once routine",
        (
            *_IDENTITY,
            *_THREAD,
            _LOCK,
            Column("t_ns", "int64", "when it was taken", "ns"),
            Column("dur_ns", "int64", "how long it was held; up to the end if it still was", "ns"),
            Column("ran_ns", "int64", "of that, its thread had a processor; null when unknown",
                   "ns"),
            Column("off_ns", "int64", "the rest: its thread had none; null when unknown", "ns"),
            Column("ready_ns", "int64", "of that, it could have run; null when unknown", "ns"),
            Column("mode", "word", "`exclusive` or `shared`"),
            Column("open", "bool", "not released in the trace"),
            _stack("stack_id", "taking it"),
            _stack("release_stack", "releasing it"),
            Column("max_waiters", "uint32", "most threads that waited meanwhile; threads that a "
                   "signal had woken, and that had not taken the mutex back, count as well"),
        ),
    ),
    TableType(
        "states",
        "a stretch of time in which a thread did the same; those of a thread follow one another "
        "from `start_ns` to `last_ns` of `threads`",
        (
            *_IDENTITY,
            *_THREAD,
            Column("t_ns", "int64", "when it began", "ns"),
            Column("dur_ns", "int64", "how long", "ns"),
            Column("state", "word", "`running`; `ready`: it could run, and had no processor; "
                   "`preempted`: the same, while it held locks, since its processor was taken away "
                   "(only with `--sched perf`); `asleep`: in a system call; `blocked`: it waited "
                   "for what another thread had, or did; `idle`: it waited for work; `unknown`"),
            Column("call", "word", "where it was asleep: the system call, as `nanosleep`; else "
                   "null"),
            Column("wait_id", "uint64", "the wait that it is part of; null for none", "id"),
            Column("cpu", "uint16", "the processor on which it ran; null without `--sched perf`"),
        ),
    ),
    TableType(
        "wakeups",
        "a wait that another thread ended",
        (
            *_IDENTITY,
            Column(
                "t_ns", "int64", "when the wake-up was given, at the earliest when the wait began",
                "ns",
            ),
            Column("woken_ns", "int64", "when the thread went on", "ns"),
            Column("waker_process", "uint32", "the process image of the waker", "id"),
            Column("waker_tid", "uint32", "the waker"),
            Column("waker_gen", "uint32", "which of the threads with that id"),
            Column("wakee_tid", "uint32", "the thread that was woken"),
            Column("wakee_gen", "uint32", "which of the threads with that id"),
            _LOCK,
            Column("kind", "word", "`unlock`, `signal`, `broadcast`, `post`, `barrier`, `end`, "
                   "`once` or `futex`"),
            _stack("waker_stack", "the wake-up"),
            Column("wait_id", "uint64", "the wait that it ended", "id"),
        ),
    ),
    TableType(
        "edges",
        "two locks of which one was asked for while the other was held, one of the 64 that its "
        "thread had taken last",
        (
            *_IDENTITY,
            Column("held_lock", "uint32", "the one that was held", "id"),
            Column("wanted_lock", "uint32", "the one that was asked for", "id"),
            Column("count", "uint64", "how often"),
            Column("first_t", "int64", "the first time", "ns"),
            _stack("stack_a", "taking the held one, the first time"),
            _stack("stack_b", "asking for the other, the first time"),
            Column("mode_a", "word", "`exclusive` or `shared`: how the first was held"),
            Column("mode_b", "word", "`exclusive` or `shared`: how the other was asked for"),
            Column("guard_set", "list of uint32", "locks that were held as well every time", "id"),
            Column("tid", "uint32", "the first thread that did it"),
            Column("one_thread", "bool", "no other thread did"),
            Column("blocked", "bool", "it had to wait at least once"),
            Column("tries", "bool", "all were try-locks, as far as the trace shows"),
        ),
    ),
    TableType(
        "lock_cycles",
        "locks each of which was asked for while the one before it was held, in a cycle of up to "
        "16, as `ptt check` knows them",
        (
            *_IDENTITY,
            Column("ts_ns", "int64", "when it showed", "ns"),
            Column("lock_ids", "list of uint32", "the locks; see `objects`", "id"),
            Column("threads", "list of uint32", "thread ids of those that asked for them"),
            Column("suppressed", "list of string", "why `ptt check` does not report it: `gate`, "
                   "`one-thread`, `shared`, `apart`, `try`, `memory`, `incomplete`, `deadlock` or "
                   "`covered`; empty when it does"),
        ),
    ),
    TableType(
        "blames",
        "a thread that held an object while others waited for it, or let them wait at a barrier "
        "or for a unit of a pool, by the place where it had taken it or came from",
        (
            *_IDENTITY,
            Column("tid", "uint32", "thread id of the kernel; null when it is not known"),
            Column("gen", "uint32", "which of the threads with this `tid`; null likewise"),
            _LOCK,
            _stack("stack_id", "taking it, or the wake-up"),
            Column("wait_caused_ns", "int64", "its part of the `held_ns` of all waits for the "
                   "object, which they add up to", "ns"),
        ),
    ),
    TableType(
        "gil",
        "a call site where a thread of a program in Python gave up the interpreter's lock (the "
        "GIL), or waited for it",
        (
            *_IDENTITY,
            Column("tid", "uint32", "thread id of the kernel"),
            Column("name", "word", "`GIL`, or `GIL #2` and so on of sub-interpreters that have "
                   "one of their own"),
            Column("site_id", "string", "the call site, see `sites`; null where it is not known",
                   "id"),
            Column("holds", "uint64", "how often the thread gave it up there"),
            Column("hold_ns", "int64", "how long it had had it by then, in all", "ns"),
            Column("wait_caused_ns", "int64", "how long others waited meanwhile, added up", "ns"),
            Column("waits", "uint64", "how often the thread waited for it there"),
            Column("wait_ns", "int64", "how long, in all", "ns"),
            Column("wait_max_ns", "int64", "the longest of these waits", "ns"),
        ),
    ),
    TableType(
        "findings",
        "a bug that `ptt check` finds",
        (
            *_IDENTITY,
            Column("kind", "string", "`deadlock`, `lock-order-inversion`, …; see `ptt check`"),
            Column("severity", "string", "`error` or `warning`"),
            Column("ts_ns", "int64", "when", "ns"),
            Column("threads", "list of uint32", "thread ids of those concerned"),
            Column("objects", "list of string", "addresses of those concerned, as `0x…`"),
            Column("sites", "list of string", "call sites of those concerned, as text"),
            Column("message", "string", "the finding as a sentence"),
            Column("count", "uint64", "how often it was found"),
            Column("events", "list of event", "the few events that prove it"),
        ),
    ),
    TableType(
        "sites",
        "a call site",
        (
            _RUN,
            Column("site_id", "string", "128 bits in hexadecimal, of build-id and offset: the "
                   "same in all runs of the same file", "id"),
            Column("module", "string", "file name of the module"),
            Column("build_id", "string", "its build-id"),
            Column("offset", "uint64", "where in the module, as its own symbol table counts"),
            Column("function", "string", "the function, demangled; empty when unknown"),
            Column("file", "string", "source file, without directories; empty when unknown"),
            Column("path", "string", "source file, as the compiler knew it"),
            Column("line", "uint32", "source line; null when unknown"),
            Column("inlined", "list of string", "what the compiler inlined there, deepest first"),
            Column("site", "string", "all of it in one text, as other commands show it"),
        ),
    ),
    TableType(
        "stacks",
        "a call stack; where the trace has none of an event, its call site alone",
        (
            _RUN,
            Column("stack_id", "string", "128 bits in hexadecimal, of its frames", "id"),
            Column("site_id", "string", "the call site of its events; see `sites`", "id"),
            Column("depth", "uint32", "how many frames there are"),
            Column("frames", "list of string", "their call sites, innermost first; see `sites`",
                   "id"),
            Column("truncated", "bool", "the outermost was called by others, which are not known"),
        ),
    ),
    TableType(
        "modules",
        "a file that was mapped into a process",
        (
            *_IDENTITY,
            Column("path", "string", "where it was"),
            Column("name", "string", "its last component"),
            Column("build_id", "string", "its build-id, or empty"),
            Column("start", "uint64", "first address", "address"),
            Column("end", "uint64", "first address behind it", "address"),
            Column("bias", "uint64", "what to add to an address of its own symbol table; null when "
                   "unknown"),
        ),
    ),
    TableType(
        "lost",
        "a number of events that were lost",
        (
            _RUN,
            Column("process", "uint32", "process image; null for losses of the whole run", "id"),
            Column("pid", "uint32", "process id; null likewise"),
            Column("tid", "uint32", "thread; null likewise"),
            Column("t_ns", "int64", "when it was noticed; null likewise", "ns"),
            Column("cause", "string", "`buffers_full`, `real_time`, `recorder_stopped`, "
                   "`nobody_collected`, `too_many_threads`, `not_written`, "
                   "`unfinished`, `shared_storage`, `unknown`, or what a handler says"),
            Column("count", "uint64", "how many"),
        ),
    ),
)  # fmt: skip

TABLES: dict[str, TableType] = {table.name: table for table in _DECLARED}
# The threads that are not chosen as well.
ALL_THREADS = replace(TABLES["threads"], name="all_threads")

ADDRESSES = frozenset(c.name for t in _DECLARED for c in t.columns if c.unit == "address")
"""Names of the columns that are addresses."""


def table_type(name: str) -> TableType:
    """Return a table by its name.

    Raises:
        UsageError: There is none of that name.
    """
    found = TABLES.get(name)
    if found is None:
        known = near(name, TABLES) or f": there are {', '.join(TABLES)}"
        raise UsageError(f"no table {name!r}{known}")
    return found
