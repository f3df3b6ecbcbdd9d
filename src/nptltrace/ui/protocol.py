"""The protocol between the viewer's page and its server: every endpoint, parameter and shape.

The declarations of the page (`web/src/base/protocol.ts`) are generated from here.

- Times are integers in ns since the start of the traceset.
- A row is a thread, an object or a processor. Generations of an object at an address share a row.
- Rows have numbers from 1; 0 stands for no row. Numbers stay the same while the trace is the same.
- The row of a processor is its number + 1. Processors have rows if context switches were recorded
  and the whole trace was read.
- Tables travel as Arrow IPC streams without nulls, dictionaries and compression. Single objects
  travel as JSON. An error is JSON of the shape `Problem`.
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
# This endpoint makes links for other users. `Access` answers it. A link expires after this time.
INVITE = "invite"
INVITED_S = 600
MAX_ROWS = 1000
MAX_WIDTH = 16384
# Rows times pixels that are drawn at once. A wider picture is coarser.
MAX_DRAWN = 1 << 19
# Limits of an answer about locks over time.
MAX_BINS = 1000
MAX_LOCKS = 50

# ---- numbers in tables ----

# Column `state`. Between the spans of lane 0, a thread is `not waiting`: it ran, slept, or was
# ready to run. The trace does not say which of the three.
STATES = (
    "not waiting", *WAIT_CLASSES, "held", "shared", "running", "ready", "asleep", "preempted",
)  # fmt: skip
# If a thread is asleep, column `other` is an index of this list of system calls.
CALLS = SYS_CALLS
# Column `flags`. `open`: the wait or hold had not ended at the end of the trace. `merged`: several
# spans were drawn as one. `woken`: `wake_ns` is the end of the wait.
FLAGS = {"open": 1, "merged": 2, "woken": 4}
ARROW_KINDS = ("wake", "hold")
# Kinds of pieces of the critical path: see `ptt report`.
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

# Threads, objects or processors. `holds` of a processor are the turns of threads on it. Metadata
# `total`: how many rows there are, sent or not.
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
    start_ns=_I64,  # first event
    end_ns=_I64,  # last event, or a later end of a wait or hold at the end of its process
    waits=_U64,  # contended waits, as in `ptt report`
    wait_ns=_U64,
    wait_max_ns=_U64,
    idle_ns=_U64,
    other_ns=_U64,  # join, timeout, cancelled, unknown, gil
    holds=_U64,
    hold_ns=_U64,
    caused_ns=_U64,  # how long others waited for locks that this thread held
    max_waiters=_U32,
)

# Spans of lanes, row by row.
# Threads: lane 0 has waits; the lanes from 1 on have nested holds.
# Objects: lane 0 has the queue (`depth` = waiters); the lanes from 1 on have holds.
# Processors: lane 0 has turns of threads. The state is `preempted` if the thread could have gone on
# at the end of the turn, else `running`. With flag `open`, the reason for the end is not known.
# Short spans with the same state are drawn as one (flag `merged`), from the start of the first to
# the end of the last. `busy_ns` is the time of the short spans in `dur_ns`, and `count` is their
# number. `other` and `wait_id` are of the longest span, and `depth` is the greatest depth.
# Metadata `until_ns`: all spans before this time are there.
SPANS = _schema(
    row=_U32,
    lane=_U16,
    state=_U8,
    flags=_U8,
    t_ns=_I64,
    dur_ns=_I64,
    busy_ns=_I64,
    wake_ns=_I64,  # part of a contended wait in which the object was free; 0 if merged
    count=_U32,
    other=_U32,  # row of the object (spans of threads) or of the thread (holds of objects, turns)
    depth=_U32,  # waiters: for the object in its queue, else for the lock waited for or held
    wait_id=_U32,  # 0 for no wait; in a queue the wait that has lasted longest
)

# From the waker to the woken thread, and from the holder of a lock to the waiter; rows of threads.
ARROWS = _schema(
    kind=_U8, from_row=_U32, from_ns=_I64, to_row=_U32, to_ns=_I64, wait_id=_U32, object_row=_U32
)

# Bins of equal width over [from_ns, to_ns) of the metadata. Times are sums over threads.
OVERVIEW = _schema(
    events=_U64, contended_ns=_U64, idle_ns=_U64, other_ns=_U64, threads=_U32, findings=_U32,
    lost=_U64,
)  # fmt: skip

# Events in the order of the trace, in both directions. Metadata: `done` is 1 if the trace has no
# more events in this direction. Else `next` is the position to go on from. A slow search returns
# fewer events than asked for, and also has `next`. `searched_ns`: the time that the search reached.
EVENTS = _schema(
    position=_TEXT, ts_ns=_I64, pid=_U32, tid=_U32, cpu=pa.int32(), thread_row=_U32, thread=_TEXT,
    event=_TEXT, object=_TEXT, object_row=_U32, site=_TEXT, sentence=_TEXT,
)  # fmt: skip

# Waits, the longest first. `inside_ns` is the part of a wait in the range. A wait that goes on has
# no number. Metadata `total`: how many waits there are, sent or not; `inside_ns`: their sum.
WAITS = _schema(
    wait_id=_U32, state=_U8, flags=_U8, t_ns=_I64, dur_ns=_I64, inside_ns=_I64, thread_row=_U32,
    thread=_TEXT, object_row=_U32, object=_TEXT, site=_TEXT, owner_row=_U32, owner=_TEXT,
)  # fmt: skip

PATH = _schema(row=_U32, kind=_U8, t_ns=_I64, dur_ns=_I64, object_row=_U32, count=_U32)

# ---- objects ----


class Problem(TypedDict):
    """An error. The HTTP status says whether the request or the server is wrong."""

    error: str


class Detail(TypedDict):
    """The progress of the levels of detail. All spans before `until_ns` are there."""

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
    """Lost events, and the cause."""

    path: str
    cause: str
    count: int


class TraceInfo(TypedDict):
    """The opened traces.

    `view` is the fragment of the address to begin with if the address of the page has none.
    `before` is the name of the earlier run to compare with, empty if there is none. `state` is
    `killed` if the recorder was killed and nobody has finished the trace.
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
    """A reference to a thread; `label` is never empty."""

    row: int
    pid: int
    tid: int
    name: str
    label: str


class ObjectRef(TypedDict):
    """A reference to an object; `label` is never empty."""

    row: int
    pid: int
    kind: str
    object: str
    name: str
    label: str
    generation: int


class Doing(TypedDict):
    """What a thread did: a name of `STATES`, and the system call of a sleeping thread."""

    state: str
    call: str
    ns: int


class Holder(TypedDict):
    """A thread that had an object while another thread waited, and what the holder did."""

    thread: ThreadRef
    holds: int
    ns: int
    doing: list[Doing]


class Holders(TypedDict):
    """The holders of an object during a wait, the longest first.

    `taken` says how often other threads took the object meanwhile. `threads_total` counts all
    holders, listed or not.
    """

    threads: list[Holder]
    threads_total: int
    taken: int


class Wait(TypedDict):
    """A wait. The owner held the object when the wait began; the waker ended the wait.

    Stacks begin with the call site. The owner's stack is from the time when the owner took the
    object. If this time is not known, the stack is from the owner's first release during the wait.

    A contended wait has two parts: while held (`held_ns`), and until awake (`wake_ns`). `ready_ns`
    is the time in which the thread could have run and had no processor; null if not known.
    `holders` is null if no holds are known, or too many to look at.
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
    """A wait, the wait of its owner at that time, and so on. The last wait is the root cause."""

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
    """A report, and the row of each entry of its lists, in the same order; 0 for no row.

    The lists have the entries with most waiting. `objects_total` and the like count all entries.
    `uncontended` is the message if nothing was contended, else empty.
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
    """The document of `ptt check --format json`, and the rows of each finding in the same order.

    `partial`: events were lost, and findings that need all events were left out. `kinds`: the kinds
    of findings that were searched for. `failures`: kinds that users added and that failed, with the
    reason.
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
    """A frame of stacks. `text` is the place in the function, and is never empty."""

    name: str
    text: str
    module: str


class FlameThread(TypedDict):
    """A thread that was at a stack, and its part of the time; `tid` is 0 if it is not known."""

    row: int
    pid: int
    tid: int
    ns: int


class FlameStack(TypedDict):
    """A stack: indexes of `Flame.frames`, the call site first, and its sums."""

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
    """Waits or holds in bins: `ns` is their time in a bin, and `count` is how many end in it.

    Waits and holds that end after the range count in the last bin. `p50_ns` and `p99_ns` are
    percentiles of the lengths, 0 if `count` is 0.
    """

    count: list[int]
    ns: list[int]
    p50_ns: list[int]
    p99_ns: list[int]


class LengthChange(TypedDict):
    """A moment at which the median length of waits or holds changed, by more than their scatter.

    `before` and `after`: how many waits or holds there are since the previous change, and until the
    next change.
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
    """The lock-order graph. Edges in cycles come first, then the most frequent edges.

    For an edge in a cycle, `suppressed` says why `ptt check` does not report the cycle. It is empty
    if `ptt check` reports the cycle.
    """

    nodes: list[OrderNode]
    edges: list[OrderEdge]
    edges_total: int


class Critical(TypedDict):
    """The critical path, and the rows of its threads in the same order."""

    path: CriticalPath
    thread_rows: list[int]


class Statistics(TypedDict):
    """The figures of a range."""

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
    """A hit of a search; `row` is 0 if the hit is not a row."""

    kind: Literal["thread", "object", "site", "event", "finding"]
    by: Literal["thread", "object", ""]
    row: int
    label: str
    about: str
    t_ns: int | None


class Hits(TypedDict):
    """The hits of a search, the best hit first."""

    hits: list[Hit]
    more: bool


class Progress(TypedDict):
    """The answer is not ready. It comes with status 202; `live` says when to ask again."""

    ready: Literal[False]
    progress: float


class TimeRange(TypedDict):
    """A range of time."""

    from_ns: int
    to_ns: int


class Written(TypedDict):
    """A trace that was written."""

    path: str
    events: int


class Guests(TypedDict):
    """How many browsers to let in. Each link lets one browser in."""

    browsers: int


class Invitation(TypedDict):
    """A code that replaces the token once, for some seconds: use `/?token=…` with a `view`."""

    code: str
    seconds: int


class Live(TypedDict):
    """The `data` of an event of the stream `live`, sent at the start and at each change.

    `version` grows with each change of the trace or the detail: earlier answers may be out of date.
    `analysed` is true when contention, findings, order and critical path of the whole are there.
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
        name: Name of the parameter.
        type: `int`, `text`, `rows` (row numbers separated by commas), or the possible values.
        meaning: Description.
        default: Default value; None if the parameter is required. An empty text and -1 stand for
            no value.
    """

    name: str
    type: Literal["int", "text", "rows"] | tuple[str, ...]
    meaning: str
    default: int | str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A question that the page can ask.

    Attributes:
        name: Name in the page.
        path: Path below `PREFIX`.
        meaning: Description of the answer.
        parameters: The parameters.
        answer: An Arrow schema, a shape, `stream` (server-sent events with `Live`), or `file`.
        body: Shape of the request body, for a POST; None for a GET.
        later: Whether the answer may be `Progress` with status 202.
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


_BY = Parameter("by", ("thread", "object", "processor"), "kind of the rows")
_ROWS = Parameter("rows", "rows", f"which rows, at most {MAX_ROWS}")
_FROM = Parameter("from_ns", "int", "start of the range", -1)
_TO = Parameter("to_ns", "int", "first time after the range", -1)
_WIDTH = Parameter("width", "int", f"width of the picture in pixels, at most {MAX_WIDTH}", 1000)
_LIMIT = Parameter("limit", "int", "how many at most", 1000)

ENDPOINTS = (
    Endpoint("trace", "trace", "The opened traces.", (), TraceInfo),
    Endpoint(
        "rows",
        "rows",
        "Threads, objects or processors, sorted.",
        (
            _BY,
            Parameter("sort", ("wait", "hold", "start", "name", "row"), "order", "wait"),
            Parameter("filter", "text", "text in label, kind, pid, tid or address, or several", ""),
            Parameter("rows", "rows", "only these rows, in this order", ""),
            Parameter("offset", "int", "how many rows to leave out at the start", 0),
            _LIMIT,
        ),
        ROWS,
    ),
    Endpoint(
        "spans",
        "spans",
        "The spans to draw in rows: at most about two spans for each pixel, lane and state.",
        (_BY, _ROWS, _FROM, _TO, _WIDTH),
        SPANS,
    ),
    Endpoint(
        "arrows",
        "arrows",
        "Arrows of wake-ups and holders, for the visible waits of some threads.",
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
        "The longest waits that lie at least in part in a range.",
        (
            _FROM,
            _TO,
            Parameter("least_ns", "int", "only waits of at least this length", 0),
            Parameter("wait_class", ("", *WAIT_CLASSES), "only waits of this class", ""),
            Parameter("thread", "rows", "only waits of these threads", ""),
            Parameter("object", "rows", "only waits for these objects", ""),
            Parameter("site", "text", "part of a call site's name, or its address", ""),
            _LIMIT,
        ),
        WAITS,
    ),
    Endpoint(
        "hold",
        "hold",
        "The hold of a thread at a time, in a lane.",
        (
            Parameter("row", "int", "the thread"),
            Parameter("lane", "int", "the lane"),
            Parameter("t_ns", "int", "a time in the hold"),
        ),
        Hold,
    ),
    Endpoint(
        "events",
        "event-list",
        "Events from a place on. Filters are as for `ptt view`: commas separate alternatives.",
        (
            Parameter("position", "text", "the event to start from; by default `t_ns`", ""),
            Parameter("t_ns", "int", "the time to start from", 0),
            Parameter(
                "direction", ("forward", "backward"),
                "forward begins with the event at the position, backward ends before it", "forward",
            ),
            Parameter("count", "int", "how many, at most 5000", 200),
            Parameter("thread", "rows", "only events of these threads", ""),
            Parameter("object", "rows", "only events on these objects", ""),
            Parameter("event", "text", "beginnings of names of event types", ""),
            Parameter("site", "text", "part of a call site's name, or its address", ""),
            Parameter("pid", "text", "only events of these processes", ""),
            Parameter("tid", "text", "only events of threads with these ids", ""),
            Parameter("on", "text", "only events on these objects, by address or name", ""),
            Parameter("text", "text", "only events with this text in the sentence", ""),
            Parameter(
                "readings", ("shown", "hidden"),
                "events of the scheduler, if no event types are chosen", "shown",
            ),
        ),
        EVENTS,
    ),
    Endpoint(
        "contention",
        "contention",
        "The numbers of `ptt report` for the whole trace or a range.",
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
        "Waits, holds or idle waits by call stack, for the whole trace or a range.",
        (
            Parameter(
                "show", ("waits", "holders", "holds", "idle", "inside"), "as `--show`", "waits"
            ),
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
        "The changes since the earlier run, as in `ptt diff`, for the whole trace or a range.",
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
        "Waits for locks and holds of locks in bins, for the whole trace or a range.",
        (
            Parameter("object", "rows", "which locks; by default the locks waited for most", ""),
            _FROM,
            _TO,
            Parameter("bins", "int", f"how many bins, at most {MAX_BINS}", 120),
            Parameter("limit", "int", f"how many locks, at most {MAX_LOCKS}", 12),
        ),
        OverTime,
        later=True,
    ),
    Endpoint("findings", "findings", "The findings of `ptt check`.", (), Findings, later=True),
    Endpoint(
        "order", "order", "The lock-order graph.",
        (Parameter("limit", "int", "how many edges at most", 500),), Order, later=True,
    ),
    Endpoint("critical", "critical", "The critical path.", (), Critical, later=True),
    Endpoint(
        "path", "path", "The pieces of the critical path in a range.", (_FROM, _TO, _WIDTH), PATH,
        later=True,
    ),
    Endpoint("statistics", "statistics", "The figures of a range.", (_FROM, _TO), Statistics),
    Endpoint(
        "search",
        "search",
        "Threads, objects, call sites, event types and findings by text.",
        (
            Parameter("q", "text", "the text to look for"),
            Parameter("limit", "int", "how many at most", 50),
        ),
        Hits,
    ),
    Endpoint("live", "live", "The state of the trace, now and after each change.", (), "stream"),
    Endpoint("cut", "cut", "Writes a range as a separate trace.", (), Written, body=TimeRange),
    Endpoint(
        "invite", INVITE, "A link that lets another browser in once.", (), Invitation, body=Guests
    ),
    Endpoint("export", "export", "The page with a range in it, as one file.", (_FROM, _TO), "file"),
)  # fmt: skip

# Shapes that no table or endpoint refers to.
SHAPES = (Problem, Progress, Live)
