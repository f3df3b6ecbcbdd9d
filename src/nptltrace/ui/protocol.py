"""What the viewer's page may ask, and what it is answered: every endpoint, parameter and shape.

The page's own declarations (`web/src/base/protocol.ts`) are generated from here. Times are integers
in ns since the traceset's start. A row is a thread or an object (the generations of an address
together) under a number from 1 that stays the same as long as the trace does, 0 being none; or a
processor, under its number + 1, where context switches were recorded and all was read. Tables
travel as Arrow IPC streams without nulls, dictionaries and compression, single objects as JSON; an
error is JSON of the shape `Problem`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
import pyarrow as pa

from nptltrace._dataclasses import dataclass
from nptltrace.analysis.vocabulary.document_types import (  # noqa: TC001 -- shapes are read at run time
    CriticalPath,
    Diff,
    Figures,
    Finding,
    Report,
    Uncovered,
)
from nptltrace.catalog import SYS_CALLS
from nptltrace.catalog.tables import WAIT_CLASSES, WaitClass  # noqa: TC001 -- read at run time
from nptltrace.trace.reading import arrow

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ARROWS", "ARROW_KINDS", "CALLS", "ENDPOINTS", "EVENTS", "FLAGS", "INVITE", "INVITED_S",
    "MAX_ROWS", "MAX_WIDTH",
    "OVERVIEW", "PATH", "PATH_KINDS", "PREFIX", "ROWS", "SHAPES", "SPANS", "STATES", "WAITS",
    "Endpoint", "Parameter", "stream", "table",
]  # fmt: skip

PREFIX = "/api/"
# Answered before the viewer is asked: it lets others in. A link is good for so long.
INVITE = "invite"
INVITED_S = 600
MAX_ROWS = 1000
MAX_WIDTH = 16384
# Rows times pixels that are drawn at once: wider is drawn coarser.
MAX_DRAWN = 1 << 19
# Of one answer about locks over time.
MAX_BINS = 1000
MAX_LOCKS = 50

# ---- numbers in tables ----

# Column `state`. Between the spans of a thread's lane 0 it is `not waiting`: it ran, or slept, or
# was ready to run, and which of these is not known.
STATES = (
    "not waiting", *WAIT_CLASSES, "held", "shared", "running", "ready", "asleep", "preempted",
)  # fmt: skip
# Where a thread is asleep, column `other` is a number in this list of system calls.
CALLS = SYS_CALLS
# Column `flags`: the wait or hold had not ended when the trace did; several were drawn as one.
# `woken`: `wake_ns` is the end of the wait.
FLAGS = {"open": 1, "merged": 2, "woken": 4}
ARROW_KINDS = ("wake", "hold")
# What a piece of the critical path is: see `ptt report`.
PATH_KINDS = ("run", "wake", "wait", "create")

# ---- tables ----


def table(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of numbers and texts.

    Args:
        schema: The columns of the table, as declared below.
        columns: Arrays or lists by name. Columns that the schema lacks are left out.
    """
    arrays = [
        arrow.texts(columns[field.name])
        if pa.types.is_string(field.type)
        else arrow.numbers(np.ascontiguousarray(columns[field.name], dtype=str(field.type)))
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def stream(answer: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.schema) as writer:
        writer.write_table(answer.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])


_U8, _U16, _U32, _U64, _I64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int64()
_TEXT = pa.utf8()

# A thread, an object or a processor, whose `holds` are the turns that threads had on it. Metadata
# `total`: how many rows there are, not only those sent.
ROWS = _schema(
    row=_U32,
    # thread, processor, mutex, rwlock, spinlock, cond, barrier, semaphore, once, futex
    kind=_TEXT,
    label=_TEXT,  # never empty
    name=_TEXT,  # of the thread, or of the global variable; may be empty
    process=_U32,  # number in `TraceInfo.processes`
    pid=_U32,
    tid=_U32,  # of a thread, else 0
    object=_TEXT,  # address 0x… of an object, else empty
    generations=_U32,  # how many objects at the address were used, one after another
    threads=_U32,  # how many threads used the object
    lanes=_U16,  # lanes that spans of this row are in
    start_ns=_I64,  # first and last event, or the end of what went on when its process ended
    end_ns=_I64,
    waits=_U64,  # contended ones, as in `ptt report`
    wait_ns=_U64,
    wait_max_ns=_U64,
    idle_ns=_U64,
    other_ns=_U64,  # join, timeout, cancelled, unknown, gil
    holds=_U64,
    hold_ns=_U64,
    caused_ns=_U64,  # how long others waited for what this thread held
    max_waiters=_U32,
)

# Stretches of lanes, a row at a time. Threads: lane 0 has waits, lanes from 1 on have nested
# holds. Objects: lane 0 has the queue (`depth` = waiters), lanes from 1 on have holds. Processors:
# lane 0 has turns of threads, `preempted` if the thread could have gone on at the end, `running` if
# not; `open`: how it ended is not known. Short ones
# that share a state are drawn as one (flag `merged`), from where the first begins to the end of the
# last: then `busy_ns` of `dur_ns` is taken, `count` says of how many, and `other`, `wait_id`,
# `depth` are those of the longest, or the greatest. Metadata `until_ns`: all before it is there.
SPANS = _schema(
    row=_U32,
    lane=_U16,
    state=_U8,
    flags=_U8,
    t_ns=_I64,
    dur_ns=_I64,
    busy_ns=_I64,
    wake_ns=_I64,  # of a contended wait: meanwhile what it was for was free; 0 of several
    count=_U32,
    other=_U32,  # row of the object (spans of threads) or of the thread (holds of objects, turns)
    depth=_U32,  # waiters: of the object in its queue, else of the lock waited for or held
    wait_id=_U32,  # 0 where there is none; of a queue that of the one that has waited longest
)

# From waker to woken thread, and from the lock's holder to the waiter; rows of threads.
ARROWS = _schema(
    kind=_U8, from_row=_U32, from_ns=_I64, to_row=_U32, to_ns=_I64, wait_id=_U32, object_row=_U32
)

# Bins of equal width over [from_ns, to_ns) of the metadata; ns are thread time.
OVERVIEW = _schema(
    events=_U64, contended_ns=_U64, idle_ns=_U64, other_ns=_U64, threads=_U32, findings=_U32,
    lost=_U64,
)  # fmt: skip

# Events in the order of the trace, whatever direction was asked for. Metadata: `done`, 1 when the
# trace has no more in that direction; else `next`, a position to go on from (also when `rows` is
# less than was asked for: a search is answered in pieces); `searched_ns`, up to where it was.
EVENTS = _schema(
    position=_TEXT, ts_ns=_I64, pid=_U32, tid=_U32, cpu=pa.int32(), thread_row=_U32, thread=_TEXT,
    event=_TEXT, object=_TEXT, object_row=_U32, site=_TEXT, sentence=_TEXT,
)  # fmt: skip

# Waits, the longest first; `inside_ns` of each lie in the range. A wait that goes on has no number.
# Metadata `total`: how many there are, not only those sent; `inside_ns`: their parts in the range.
WAITS = _schema(
    wait_id=_U32, state=_U8, flags=_U8, t_ns=_I64, dur_ns=_I64, inside_ns=_I64, thread_row=_U32,
    thread=_TEXT, object_row=_U32, object=_TEXT, site=_TEXT, owner_row=_U32, owner=_TEXT,
)  # fmt: skip

PATH = _schema(row=_U32, kind=_U8, t_ns=_I64, dur_ns=_I64, object_row=_U32, count=_U32)

# ---- objects ----


class Problem(TypedDict):
    """An error; the status says whose mistake it is."""

    error: str


class Detail(TypedDict):
    """How far the levels of detail are; spans are there before `until_ns`."""

    ready: bool
    progress: float
    until_ns: int
    error: str


class Process(TypedDict):
    """A process image; `process` is its number."""

    process: int
    pid: int
    ppid: int
    name: str
    exe: str
    cmdline: list[str]
    start_ns: int | None
    end_ns: int | None


class Loss(TypedDict):
    """Events that are missing, and why."""

    path: str
    cause: str
    count: int


class TraceInfo(TypedDict):
    """What is open.

    `view` is the fragment of the address that the page begins with where the address has none.
    `before` is the name of the run that this one is compared with, empty if there is none.
    `state` is `killed` while nobody has finished the trace of a recorder that was killed.
    """

    name: str
    paths: list[str]
    version: str
    start_unix_ns: int
    first_ns: int
    end_ns: int
    events: int
    lost: int
    level: str
    state: Literal["running", "complete", "killed", "recovered"]
    follow: bool
    processes: list[Process]
    threads: int
    objects: int
    waits: int
    holds: int
    losses: list[Loss]
    uncovered: list[Uncovered]
    damages: list[str]
    remarks: list[str]
    view: str
    before: str
    detail: Detail


class ThreadRef(TypedDict):
    """Which thread; `label` is never empty."""

    row: int
    pid: int
    tid: int
    name: str
    label: str


class ObjectRef(TypedDict):
    """Which object; `label` is never empty."""

    row: int
    pid: int
    kind: str
    object: str
    name: str
    label: str
    generation: int


class Doing(TypedDict):
    """What a thread did: a name of `STATES`, and of a sleeper the system call."""

    state: str
    call: str
    ns: int


class Holder(TypedDict):
    """A thread that had an object while another waited for it, and what it did while it had it."""

    thread: ThreadRef
    holds: int
    ns: int
    doing: list[Doing]


class Holders(TypedDict):
    """Who had an object during a wait, the longest first.

    `taken` says how often other threads took it meanwhile. `threads_total` counts all of them,
    listed or not.
    """

    threads: list[Holder]
    threads_total: int
    taken: int


class Wait(TypedDict):
    """A wait. The owner held the object when it began; the waker ended it.

    Stacks begin with the call site; the owner's is that of taking the object, or where that is not
    known of its first release of it meanwhile.

    A contended one is divided: while the object was held, and until the thread was awake.
    `ready_ns`: meanwhile the thread could have run, and had no processor; null: not known.
    `holders` is null where nothing is known of holds, or where there are too many to look at.
    """

    wait_id: int
    t_ns: int
    dur_ns: int
    held_ns: int | None
    wake_ns: int | None
    ready_ns: int | None
    wait_class: WaitClass
    kind: str
    mode: Literal["exclusive", "shared"]
    open: bool
    result: int
    queue_depth: int
    thread: ThreadRef
    object: ObjectRef
    site: str
    stack: list[str]
    owner: ThreadRef | None
    owner_site: str
    owner_stack: list[str]
    owner_since_ns: int | None
    waker: ThreadRef | None
    waker_site: str
    waker_t_ns: int | None
    holders: Holders | None


class WaitChain(TypedDict):
    """A wait, the wait its owner was in when it began, and so on: the last is the root."""

    chain: list[Wait]


class Hold(TypedDict):
    """A hold of a lock."""

    t_ns: int
    dur_ns: int
    open: bool
    mode: Literal["exclusive", "shared"]
    max_waiters: int
    thread: ThreadRef
    object: ObjectRef
    site: str
    stack: list[str]
    release_site: str


class Contention(TypedDict):
    """A report, and the rows of what it lists, by the same places; 0 where there is none.

    `objects_total` and the like say how many there are; the lists hold those with most waiting.
    `uncontended` is what is said where nothing was contended, else empty.
    """

    report: Report
    uncontended: str
    object_rows: list[int]
    thread_rows: list[int]
    pair_rows: list[list[int]]
    objects_total: int
    sites_total: int
    pairs_total: int


class FindingRows(TypedDict):
    """The rows that a finding is about."""

    threads: list[int]
    objects: list[int]


class Findings(TypedDict):
    """The document of `ptt check --format json`, and the rows of each finding by its place.

    `partial`: events are missing, and what needs all of them to be sure was left out. `kinds`: what
    was looked for. `failures`: kinds that users added and that could not be, with the reason.
    """

    findings: list[Finding]
    uncovered: list[Uncovered]
    futex_waits: int
    rows: list[FindingRows]
    lost: int
    partial: bool
    kinds: list[str]
    failures: list[str]


class FlameFrame(TypedDict):
    """A frame of stacks; `text` says where in the function, and is never empty."""

    name: str
    text: str
    module: str


class FlameThread(TypedDict):
    """A thread that was at a stack, and its part of the time; `tid` is 0 when nobody knows it."""

    row: int
    pid: int
    tid: int
    ns: int


class FlameStack(TypedDict):
    """A stack: places in `Flame.frames`, the call site first, and what happened there."""

    frames: list[int]
    count: int
    ns: int
    threads: list[FlameThread]


class Flame(TypedDict):
    """Waits, holds or idle waits by call stack; `count` and `ns` are of all, listed or not."""

    title: str
    frames: list[FlameFrame]
    stacks: list[FlameStack]
    count: int
    ns: int


class Lengths(TypedDict):
    """Waits or holds in bins: `ns` as long as all lasted in each, and how many end in it.

    Those that go on behind the range count in the last bin. `p50_ns` and `p99_ns` are ranks among
    their lengths, 0 where `count` is.
    """

    count: list[int]
    ns: list[int]
    p50_ns: list[int]
    p99_ns: list[int]


class LengthChange(TypedDict):
    """A moment from which on waits or holds had another median length, by more than they scatter.

    `before` and `after`: how many there are back to the change before, and on to the next.
    """

    what: Literal["wait", "hold"]
    t_ns: int
    before: int
    after: int
    before_ns: int
    after_ns: int


class LockOverTime(TypedDict):
    """A lock over time: its contended waits, its holds, and when their lengths changed."""

    row: int
    pid: int
    label: str
    waits: Lengths
    holds: Lengths
    changes: list[LengthChange]


class OverTime(TypedDict):
    """Some locks over time, in bins that begin and end at `edges_ns`."""

    edges_ns: list[int]
    locks: list[LockOverTime]


class OrderNode(TypedDict):
    """A lock in the lock-order graph."""

    row: int
    pid: int
    kind: str
    label: str


class OrderEdge(TypedDict):
    """`wanted` was asked for while `held` was held."""

    held_row: int
    wanted_row: int
    count: int
    first_ns: int
    held_site: str
    wanted_site: str
    thread_row: int
    one_thread: bool
    blocked: bool
    tries: bool
    guards: list[int]
    in_cycle: bool
    suppressed: list[str]


class Order(TypedDict):
    """The lock-order graph; those edges that were taken most often, cycles first.

    Of an edge in a cycle, `suppressed` says why `ptt check` does not report that cycle; it is empty
    if it does.
    """

    nodes: list[OrderNode]
    edges: list[OrderEdge]
    edges_total: int


class Critical(TypedDict):
    """The critical path, and the rows of its threads by their places."""

    path: CriticalPath
    thread_rows: list[int]


class Statistics(TypedDict):
    """What there is in a range."""

    from_ns: int
    to_ns: int
    events: int
    event_types: dict[str, int]
    threads: int
    objects: int
    figures: Figures
    blocked_ns: int
    running_ns: int


class Hit(TypedDict):
    """Something that a search found; `row` is 0 where it is no row."""

    kind: Literal["thread", "object", "site", "event", "finding"]
    by: Literal["thread", "object", ""]
    row: int
    label: str
    about: str
    t_ns: int | None


class Hits(TypedDict):
    """What a search found, the best first."""

    hits: list[Hit]
    more: bool


class Progress(TypedDict):
    """Not yet: the answer comes with status 202, and `live` says when to ask again."""

    ready: Literal[False]
    progress: float


class TimeRange(TypedDict):
    """A stretch of time."""

    from_ns: int
    to_ns: int


class Written(TypedDict):
    """A trace that was written."""

    path: str
    events: int


class Guests(TypedDict):
    """How many others shall be let in: one by each link."""

    browsers: int


class Invitation(TypedDict):
    """A code that stands for the token once, for some seconds: as `/?token=…` with a `view`."""

    code: str
    seconds: int


class Live(TypedDict):
    """An event of the stream `live`, as `data`; sent at once and whenever something changed.

    `version` grows with each change of the trace or the detail: what was fetched may be out of
    date. `analysed` is true when contention, findings, order and critical path of the whole are
    there.
    """

    version: int
    state: Literal["running", "complete", "killed", "recovered"]
    end_ns: int
    events: int
    lost: int
    threads: int
    objects: int
    detail: Detail
    analysed: bool
    message: str


# ---- endpoints ----


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an endpoint, in its path (`{name}`) or its query.

    Attributes:
        name: Its name.
        type: `int`, `text`, `rows` (numbers of rows separated by commas), or the choices there are.
        meaning: What it says.
        default: What it is when it is not given; None where it must be. An empty text and -1 stand
            for none.
    """

    name: str
    type: Literal["int", "text", "rows"] | tuple[str, ...]
    meaning: str
    default: int | str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something that can be asked.

    Attributes:
        name: Its name, as the page calls it.
        path: Below `PREFIX`.
        meaning: What it answers.
        parameters: Its parameters.
        answer: An Arrow schema, a shape, or `stream` (server-sent events with `Live`), `file`.
        body: What is sent along, for a POST.
        later: It may answer `Progress` with status 202.
    """

    name: str
    path: str
    meaning: str
    parameters: tuple[Parameter, ...]
    answer: Any
    body: Any = None
    later: bool = False

    @property
    def method(self) -> str:
        """The HTTP method."""
        return "GET" if self.body is None else "POST"


_BY = Parameter("by", ("thread", "object", "processor"), "which rows are meant")
_ROWS = Parameter("rows", "rows", f"which rows, at most {MAX_ROWS}")
_FROM = Parameter("from_ns", "int", "where the range begins", -1)
_TO = Parameter("to_ns", "int", "first time behind the range", -1)
_WIDTH = Parameter("width", "int", f"pixels that the range is drawn in, at most {MAX_WIDTH}", 1000)
_LIMIT = Parameter("limit", "int", "how many at most", 1000)

ENDPOINTS = (
    Endpoint("trace", "trace", "What is open.", (), TraceInfo),
    Endpoint(
        "rows",
        "rows",
        "Threads, objects or processors, sorted by what matters.",
        (
            _BY,
            Parameter("sort", ("wait", "hold", "start", "name", "row"), "order", "wait"),
            Parameter("filter", "text", "text in label, kind, pid, tid or address, or several", ""),
            Parameter("rows", "rows", "only these, in this order", ""),
            Parameter("offset", "int", "how many to leave out", 0),
            _LIMIT,
        ),
        ROWS,
    ),
    Endpoint(
        "spans",
        "spans",
        "What to draw in rows: at most about two spans a pixel, lane and state.",
        (_BY, _ROWS, _FROM, _TO, _WIDTH),
        SPANS,
    ),
    Endpoint(
        "arrows",
        "arrows",
        "Wake-ups and holders of the waits of some threads that are wide enough to be seen.",
        (_ROWS, _FROM, _TO, _WIDTH, Parameter("limit", "int", "how many at most", 500)),
        ARROWS,
    ),
    Endpoint("overview", "overview", "The whole trace in bins.", (_WIDTH,), OVERVIEW),
    Endpoint(
        "wait", "wait/{id}", "A wait and its chain.",
        (Parameter("id", "int", "the wait"),), WaitChain,
    ),
    Endpoint(
        "waits",
        "wait-list",
        "The longest waits of those that a range has a part of.",
        (
            _FROM,
            _TO,
            Parameter("least_ns", "int", "only such as are as long", 0),
            Parameter("wait_class", ("", *WAIT_CLASSES), "only of this class", ""),
            Parameter("thread", "rows", "only of these threads", ""),
            Parameter("object", "rows", "only for these objects", ""),
            Parameter("site", "text", "part of a call site's name, or its address", ""),
            _LIMIT,
        ),
        WAITS,
    ),
    Endpoint(
        "hold",
        "hold",
        "The hold that a thread had at a time, by its lane.",
        (
            Parameter("row", "int", "the thread"),
            Parameter("lane", "int", "the lane"),
            Parameter("t_ns", "int", "a time in it"),
        ),
        Hold,
    ),
    Endpoint(
        "events",
        "event-list",
        "Events from a place on. Filters are as of `ptt view`: commas separate alternatives.",
        (
            Parameter("position", "text", "the event to start from; not given: `t_ns`", ""),
            Parameter("t_ns", "int", "the time to start from", 0),
            Parameter(
                "direction", ("forward", "backward"),
                "forward begins with the event at the position, backward ends before it", "forward",
            ),
            Parameter("count", "int", "how many, at most 5000", 200),
            Parameter("thread", "rows", "only of these threads", ""),
            Parameter("object", "rows", "only on these objects", ""),
            Parameter("event", "text", "beginnings of names of event types", ""),
            Parameter("site", "text", "part of a call site's name, or its address", ""),
            Parameter("pid", "text", "only of these processes", ""),
            Parameter("tid", "text", "only of threads with these ids", ""),
            Parameter("on", "text", "only on these objects, by address or name", ""),
            Parameter("text", "text", "only with this text in the sentence", ""),
            Parameter(
                "readings", ("shown", "hidden"),
                "events of the scheduler, where no types are chosen", "shown",
            ),
        ),
        EVENTS,
    ),
    Endpoint(
        "contention",
        "contention",
        "The numbers of `ptt report` for the whole, or for a range.",
        (
            Parameter("by", ("object", "thread", "site", "thread,object"), "as `--by`", "object"),
            _FROM,
            _TO,
            _LIMIT,
        ),
        Contention,
        later=True,
    ),
    Endpoint(
        "flame",
        "flame",
        "Waits, holds or idle waits by call stack, for the whole or for a range.",
        (
            Parameter("show", ("waits", "holders", "holds", "idle"), "as `--show`", "waits"),
            _FROM,
            _TO,
            Parameter("limit", "int", "how many stacks at most", 5000),
        ),
        Flame,
        later=True,
    ),
    Endpoint(
        "diff",
        "diff",
        "What changed since the run before, as `ptt diff` has it, up to the whole or to a range.",
        (
            Parameter("by", ("site", "object", "thread"), "as `--by`", "site"),
            _FROM,
            _TO,
        ),
        Diff,
        later=True,
    ),
    Endpoint(
        "over_time",
        "over-time",
        "How much locks were waited for and held from bin to bin, for the whole or for a range.",
        (
            Parameter("object", "rows", "which locks; not given: those that were waited for", ""),
            _FROM,
            _TO,
            Parameter("bins", "int", f"how many bins, at most {MAX_BINS}", 120),
            Parameter("limit", "int", f"how many locks, at most {MAX_LOCKS}", 12),
        ),
        OverTime,
        later=True,
    ),
    Endpoint("findings", "findings", "What `ptt check` finds.", (), Findings, later=True),
    Endpoint(
        "order", "order", "The lock-order graph.",
        (Parameter("limit", "int", "how many edges at most", 500),), Order, later=True,
    ),
    Endpoint("critical", "critical", "The critical path.", (), Critical, later=True),
    Endpoint(
        "path", "path", "The pieces of the critical path in a range.", (_FROM, _TO, _WIDTH), PATH,
        later=True,
    ),
    Endpoint("statistics", "statistics", "What there is in a range.", (_FROM, _TO), Statistics),
    Endpoint(
        "search",
        "search",
        "Threads, objects, call sites, event types and findings by text.",
        (
            Parameter("q", "text", "what to look for"),
            Parameter("limit", "int", "how many at most", 50),
        ),
        Hits,
    ),
    Endpoint("live", "live", "Says what has changed, as it does.", (), "stream"),
    Endpoint("cut", "cut", "Writes a range as a trace of its own.", (), Written, body=TimeRange),
    Endpoint(
        "invite", INVITE, "A link that lets one other browser in.", (), Invitation, body=Guests
    ),
    Endpoint("export", "export", "The page with a range in it, as one file.", (_FROM, _TO), "file"),
)  # fmt: skip

# Shapes that tables and endpoints do not lead to.
SHAPES = (Problem, Progress, Live)
