// Generated from src/nptltrace/ui/protocol.py by `make web-protocol`: do not edit.

export const PREFIX = "/api/" as const;
export const INVITE = "invite" as const;
export const INVITED_S = 600 as const;
export const MAX_ROWS = 1000 as const;
export const MAX_WIDTH = 16384 as const;
export const STATES = ["not waiting", "contended", "idle", "join", "timeout", "cancelled", "unknown", "gil", "held", "shared", "running", "ready", "asleep", "preempted"] as const;
export const CALLS = ["", "poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "read", "readv", "recv", "recvfrom", "recvmsg", "accept", "accept4", "nanosleep", "clock_nanosleep", "usleep", "sleep", "thrd_sleep", "sigwait", "sigwaitinfo", "sigtimedwait", "mq_receive", "mq_timedreceive", "mq_send", "mq_timedsend", "wait", "waitpid", "waitid", "wait3", "wait4", "flock", "fsync", "fdatasync"] as const;
export const FLAGS = {"open": 1, "merged": 2, "woken": 4} as const;
export const ARROW_KINDS = ["wake", "hold"] as const;
export const PATH_KINDS = ["run", "wake", "wait", "create"] as const;

// The opened traces.
//
// `view` is the fragment of the address to begin with if the address of the page has none.
// `before` is the name of the earlier run to compare with, empty if there is none. `state` is
// `killed` if the recorder was killed and nobody has finished the trace.
export interface TraceInfo {
  name: string;
  paths: string[];
  version: string;
  start_unix_ns: number;
  first_ns: number;
  end_ns: number;
  events: number;
  lost: number;
  level: string;
  state: "running" | "complete" | "killed" | "recovered";
  follow: boolean;
  processes: Process[];
  threads: number;
  objects: number;
  waits: number;
  holds: number;
  losses: Loss[];
  uncovered: Uncovered[];
  damages: string[];
  remarks: string[];
  view: string;
  before: string;
  detail: Detail;
}

// A process image; `process` is its number.
export interface Process {
  process: number;
  pid: number;
  ppid: number;
  name: string;
  exe: string;
  cmdline: string[];
  start_ns: number | null;
  end_ns: number | null;
}

// Lost events, and the cause.
export interface Loss {
  path: string;
  cause: string;
  count: number;
}

// A module that the trace does not cover completely.
export interface Uncovered {
  module: string;
  why: string;
}

// The progress of the levels of detail. All spans before `until_ns` are there.
export interface Detail {
  ready: boolean;
  progress: number;
  until_ns: number;
  error: string;
}

// A wait, the wait of its owner at that time, and so on. The last wait is the root cause.
export interface WaitChain {
  chain: Wait[];
}

// A wait. The owner held the object when the wait began; the waker ended the wait.
//
// Stacks begin with the call site. The owner's stack is from the time when the owner took the
// object. If this time is not known, the stack is from the owner's first release during the wait.
//
// A contended wait has two parts: while held (`held_ns`), and until awake (`wake_ns`). `ready_ns`
// is the time in which the thread could have run and had no processor; null if not known.
// `holders` is null if no holds are known, or too many to look at.
export interface Wait {
  wait_id: number;
  t_ns: number;
  dur_ns: number;
  held_ns: number | null;
  wake_ns: number | null;
  ready_ns: number | null;
  wait_class: "contended" | "idle" | "join" | "timeout" | "cancelled" | "unknown" | "gil";
  kind: string;
  mode: "exclusive" | "shared";
  open: boolean;
  result: number;
  queue_depth: number;
  thread: ThreadRef;
  object: ObjectRef;
  site: string;
  stack: string[];
  owner: ThreadRef | null;
  owner_site: string;
  owner_stack: string[];
  owner_since_ns: number | null;
  waker: ThreadRef | null;
  waker_site: string;
  waker_t_ns: number | null;
  holders: Holders | null;
}

// A reference to a thread; `label` is never empty.
export interface ThreadRef {
  row: number;
  pid: number;
  tid: number;
  name: string;
  label: string;
}

// A reference to an object; `label` is never empty.
export interface ObjectRef {
  row: number;
  pid: number;
  kind: string;
  object: string;
  name: string;
  label: string;
  generation: number;
}

// The holders of an object during a wait, the longest first.
//
// `taken` says how often other threads took the object meanwhile. `threads_total` counts all
// holders, listed or not.
export interface Holders {
  threads: Holder[];
  threads_total: number;
  taken: number;
}

// A thread that had an object while another thread waited, and what the holder did.
export interface Holder {
  thread: ThreadRef;
  holds: number;
  ns: number;
  doing: Doing[];
}

// What a thread did: a name of `STATES`, and the system call of a sleeping thread.
export interface Doing {
  state: string;
  call: string;
  ns: number;
}

// A hold of a lock.
export interface Hold {
  t_ns: number;
  dur_ns: number;
  open: boolean;
  mode: "exclusive" | "shared";
  max_waiters: number;
  thread: ThreadRef;
  object: ObjectRef;
  site: string;
  stack: string[];
  release_site: string;
}

// A report, and the row of each entry of its lists, in the same order; 0 for no row.
//
// The lists have the entries with most waiting. `objects_total` and the like count all entries.
// `uncontended` is the message if nothing was contended, else empty.
export interface Contention {
  report: Report;
  uncontended: string;
  object_rows: number[];
  thread_rows: number[];
  pair_rows: number[][];
  objects_total: number;
  sites_total: number;
  pairs_total: number;
}

// The document of `ptt report`, with `sites`, `pairs` or `stacks` if you ask for them.
export interface Report {
  sites?: ReportSite[];
  pairs?: ReportPair[];
  stacks?: ReportStack[];
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
  elapsed_ns: number;
  first_ns: number;
  last_ns: number;
  lost: number;
  objects: ReportObject[];
  threads: ReportThread[];
  never_ended: OpenWait[];
  deadlocks: OpenWait[][];
  critical_path: CriticalPath;
  uncovered: Uncovered[];
}

// A call site in a report.
export interface ReportSite {
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
  site: string;
  site_address: string;
  pid: number;
  kind: string;
  wait_caused_ns: number;
}

// The figures of one thread and one object.
export interface ReportPair {
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
  tid: number;
  pid: number;
  thread_name: string;
  object: string;
  kind: string;
  object_name: string;
  wait_caused_ns: number;
}

// A call stack in a report: of waiters, holders, holds or idle waits, as the options choose.
export interface ReportStack {
  waits?: number;
  wait_ns?: number;
  wait_caused_ns?: number;
  holds?: number;
  hold_ns?: number;
  idle_waits?: number;
  idle_ns?: number;
  parts?: number;
  waited_ns?: number;
  stack: string[];
}

// An object in a report. Generations of an address are one object, but not for locks of Python.
export interface ReportObject {
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
  object: string;
  pid: number;
  kind: string;
  name: string;
  init_site: string;
  first_site: string;
  generations: number;
  threads: number;
  max_waiters: number;
  wasted_signals: number;
  blamed: Blamed[];
  wakers: Waker[];
  inside: Inside[];
}

// A thread that held an object while others waited; null when unknown.
export interface Blamed {
  tid: number | null;
  pid: number | null;
  name: string;
  site: string;
  released: boolean;
  wait_caused_ns: number;
}

// A thread that ended waits for an object; null when unknown.
export interface Waker {
  tid: number | null;
  pid: number | null;
  name: string;
  site: string;
  count: number;
  blocked_ns: number;
}

// What the holders of an object did while other threads waited for it. `object`, `kind` and `object_name` are of the object that the holders waited for themselves.
export interface Inside {
  what: "running" | "ready" | "asleep" | "blocked" | "unknown";
  site: string;
  call: string | null;
  object: string | null;
  kind: string | null;
  object_name: string | null;
  waited_ns: number;
  share: number;
}

// A thread in a report.
export interface ReportThread {
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
  tid: number;
  pid: number;
  name: string;
  start_ns: number;
  end_ns: number;
  blocked_ns: number;
  running_ns: number;
  by_kind: Record<string, number>;
  wait_caused_ns: number;
  buffer_wait_ns: number;
  silent_ns: number;
  cpu_ns: number | null;
  ready_ns: number | null;
  waited_for: Cause[];
}

// The waits of a thread for one object, at one call site, because of one other thread.
export interface Cause {
  object: string;
  kind: string;
  name: string;
  class: "contended" | "idle" | "join" | "timeout" | "cancelled" | "unknown" | "gil";
  site: string;
  because_of_tid: number | null;
  because_of_site: string;
  waits: number;
  wait_ns: number;
  held_ns: number;
  wait_max_ns: number;
}

// A wait that had not ended at the end of the trace.
export interface OpenWait {
  tid: number;
  pid: number;
  thread_name: string;
  object: string;
  kind: string;
  object_name: string;
  class: "contended" | "idle" | "join" | "timeout" | "cancelled" | "unknown" | "gil";
  t_ns: number;
  dur_ns: number;
  site: string;
  owner_tid: number | null;
  owner_site: string;
}

// The critical path to the last event.
export interface CriticalPath {
  start_ns: number;
  end_ns: number;
  resolution_ns: number;
  segments: number;
  threads: PathThread[];
  links: PathLink[];
}

// A thread's part of the critical path.
export interface PathThread {
  tid: number;
  pid: number;
  name: string;
  run_ns: number;
  latency_ns: number;
  ready_ns: number | null;
  open_ns: number;
}

// An object on the critical path, where it goes from thread to thread.
export interface PathLink {
  object: string;
  pid: number;
  kind: string;
  name: string;
  count: number;
  latency_ns: number;
}

// Waits, holds or idle waits by call stack; `count` and `ns` are of all, listed or not.
export interface Flame {
  title: string;
  frames: FlameFrame[];
  stacks: FlameStack[];
  count: number;
  ns: number;
}

// A frame of stacks. `text` is the place in the function, and is never empty.
export interface FlameFrame {
  name: string;
  text: string;
  module: string;
}

// A stack: indexes of `Flame.frames`, the call site first, and its sums.
export interface FlameStack {
  frames: number[];
  count: number;
  ns: number;
  threads: FlameThread[];
}

// A thread that was at a stack, and its part of the time; `tid` is 0 if it is not known.
export interface FlameThread {
  row: number;
  pid: number;
  tid: number;
  ns: number;
}

// The document of `ptt diff`.
export interface Diff {
  by: string;
  per: string;
  runs_before: DiffRun[];
  runs_after: DiffRun[];
  confidence: number;
  enough_runs: boolean;
  total: Record<string, DiffMetric>;
  rows: DiffRow[];
}

// A compared run.
export interface DiffRun {
  trace: string;
  elapsed_ns: number;
}

// The change of one figure.
export interface DiffMetric {
  before: number;
  after: number;
  change_percent: number | null;
  chance: number | null;
  verdict: "sure" | "chance" | "unknown";
  values_before: number[];
  values_after: number[];
}

// The changes of a call site, a call stack, an object, or the threads of one name.
export interface DiffRow {
  site?: string;
  stack?: string[];
  name?: string;
  kind: string;
  metrics: Record<string, DiffMetric>;
}

// Some locks over time, in bins that begin and end at `edges_ns`.
export interface OverTime {
  edges_ns: number[];
  locks: LockOverTime[];
}

// A lock over time: its contended waits, its holds, and when their lengths changed.
export interface LockOverTime {
  row: number;
  pid: number;
  label: string;
  waits: Lengths;
  holds: Lengths;
  changes: LengthChange[];
}

// Waits or holds in bins: `ns` is their time in a bin, and `count` is how many end in it.
//
// Waits and holds that end after the range count in the last bin. `p50_ns` and `p99_ns` are
// percentiles of the lengths, 0 if `count` is 0.
export interface Lengths {
  count: number[];
  ns: number[];
  p50_ns: number[];
  p99_ns: number[];
}

// A moment at which the median length of waits or holds changed, by more than their scatter.
//
// `before` and `after`: how many waits or holds there are since the previous change, and until the
// next change.
export interface LengthChange {
  what: "wait" | "hold";
  t_ns: number;
  before: number;
  after: number;
  before_ns: number;
  after_ns: number;
}

// The document of `ptt check --format json`, and the rows of each finding in the same order.
//
// `partial`: events were lost, and findings that need all events were left out. `kinds`: the kinds
// of findings that were searched for. `failures`: kinds that users added and that failed, with the
// reason.
export interface Findings {
  findings: Finding[];
  uncovered: Uncovered[];
  futex_waits: number;
  rows: FindingRows[];
  lost: number;
  partial: boolean;
  kinds: string[];
  failures: string[];
}

// A finding.
export interface Finding {
  kind: string;
  severity: "error" | "warning";
  threads: number[];
  objects: string[];
  sites: string[];
  ts_ns: number;
  message: string;
  title: string;
  pid: number;
  object_names: string[];
  count: number;
  suspect: boolean;
  events: FindingEvent[];
}

// An event that proves a finding.
export interface FindingEvent {
  ts_ns: number;
  pid: number;
  tid: number;
  text: string;
  site: string;
  stack: string[];
}

// The rows that a finding is about.
export interface FindingRows {
  threads: number[];
  objects: number[];
}

// The lock-order graph. Edges in cycles come first, then the most frequent edges.
//
// For an edge in a cycle, `suppressed` says why `ptt check` does not report the cycle. It is empty
// if `ptt check` reports the cycle.
export interface Order {
  nodes: OrderNode[];
  edges: OrderEdge[];
  edges_total: number;
}

// A lock in the lock-order graph.
export interface OrderNode {
  row: number;
  pid: number;
  kind: string;
  label: string;
}

// `wanted` was asked for while `held` was held.
export interface OrderEdge {
  held_row: number;
  wanted_row: number;
  count: number;
  first_ns: number;
  held_site: string;
  wanted_site: string;
  thread_row: number;
  one_thread: boolean;
  blocked: boolean;
  tries: boolean;
  guards: number[];
  in_cycle: boolean;
  suppressed: string[];
}

// The critical path, and the rows of its threads in the same order.
export interface Critical {
  path: CriticalPath;
  thread_rows: number[];
}

// The figures of a range.
export interface Statistics {
  from_ns: number;
  to_ns: number;
  events: number;
  event_types: Record<string, number>;
  threads: number;
  objects: number;
  figures: Figures;
  blocked_ns: number;
  running_ns: number;
}

// Sums of waits and holds; only contended waits count in `waits`.
export interface Figures {
  waits: number;
  wait_ns: number;
  held_ns: number;
  wake_ns: number;
  wait_max_ns: number;
  wait_p50_ns: number | null;
  wait_p99_ns: number | null;
  idle_waits: number;
  idle_ns: number;
  join_waits: number;
  join_ns: number;
  timeout_waits: number;
  timeout_ns: number;
  cancelled_waits: number;
  cancelled_ns: number;
  unknown_waits: number;
  unknown_ns: number;
  gil_waits: number;
  gil_ns: number;
  holds: number;
  hold_ns: number;
  hold_max_ns: number;
}

// The hits of a search, the best hit first.
export interface Hits {
  hits: Hit[];
  more: boolean;
}

// A hit of a search; `row` is 0 if the hit is not a row.
export interface Hit {
  kind: "thread" | "object" | "site" | "event" | "finding";
  by: "thread" | "object" | "";
  row: number;
  label: string;
  about: string;
  t_ns: number | null;
}

// A trace that was written.
export interface Written {
  path: string;
  events: number;
}

// A range of time.
export interface TimeRange {
  from_ns: number;
  to_ns: number;
}

// A code that replaces the token once, for some seconds: use `/?token=…` with a `view`.
export interface Invitation {
  code: string;
  seconds: number;
}

// How many browsers to let in. Each link lets one browser in.
export interface Guests {
  browsers: number;
}

// An error. The HTTP status says whether the request or the server is wrong.
export interface Problem {
  error: string;
}

// The answer is not ready. It comes with status 202; `live` says when to ask again.
export interface Progress {
  ready: false;
  progress: number;
}

// The `data` of an event of the stream `live`, sent at the start and at each change.
//
// `version` grows with each change of the trace or the detail: earlier answers may be out of date.
// `analysed` is true when contention, findings, order and critical path of the whole are there.
export interface Live {
  version: number;
  state: "running" | "complete" | "killed" | "recovered";
  end_ns: number;
  events: number;
  lost: number;
  threads: number;
  objects: number;
  detail: Detail;
  analysed: boolean;
  message: string;
}

export interface RowsColumns {
  row: Uint32Array;
  kind: string[];
  label: string[];
  name: string[];
  process: Uint32Array;
  pid: Uint32Array;
  tid: Uint32Array;
  object: string[];
  generations: Uint32Array;
  threads: Uint32Array;
  lanes: Uint16Array;
  start_ns: BigInt64Array;
  end_ns: BigInt64Array;
  waits: BigUint64Array;
  wait_ns: BigUint64Array;
  wait_max_ns: BigUint64Array;
  idle_ns: BigUint64Array;
  other_ns: BigUint64Array;
  holds: BigUint64Array;
  hold_ns: BigUint64Array;
  caused_ns: BigUint64Array;
  max_waiters: Uint32Array;
}
export const ROWS_SCHEMA = {"row": "uint32", "kind": "string", "label": "string", "name": "string", "process": "uint32", "pid": "uint32", "tid": "uint32", "object": "string", "generations": "uint32", "threads": "uint32", "lanes": "uint16", "start_ns": "int64", "end_ns": "int64", "waits": "uint64", "wait_ns": "uint64", "wait_max_ns": "uint64", "idle_ns": "uint64", "other_ns": "uint64", "holds": "uint64", "hold_ns": "uint64", "caused_ns": "uint64", "max_waiters": "uint32"} as const;

export interface SpansColumns {
  row: Uint32Array;
  lane: Uint16Array;
  state: Uint8Array;
  flags: Uint8Array;
  t_ns: BigInt64Array;
  dur_ns: BigInt64Array;
  busy_ns: BigInt64Array;
  wake_ns: BigInt64Array;
  count: Uint32Array;
  other: Uint32Array;
  depth: Uint32Array;
  wait_id: Uint32Array;
}
export const SPANS_SCHEMA = {"row": "uint32", "lane": "uint16", "state": "uint8", "flags": "uint8", "t_ns": "int64", "dur_ns": "int64", "busy_ns": "int64", "wake_ns": "int64", "count": "uint32", "other": "uint32", "depth": "uint32", "wait_id": "uint32"} as const;

export interface ArrowsColumns {
  kind: Uint8Array;
  from_row: Uint32Array;
  from_ns: BigInt64Array;
  to_row: Uint32Array;
  to_ns: BigInt64Array;
  wait_id: Uint32Array;
  object_row: Uint32Array;
}
export const ARROWS_SCHEMA = {"kind": "uint8", "from_row": "uint32", "from_ns": "int64", "to_row": "uint32", "to_ns": "int64", "wait_id": "uint32", "object_row": "uint32"} as const;

export interface OverviewColumns {
  events: BigUint64Array;
  contended_ns: BigUint64Array;
  idle_ns: BigUint64Array;
  other_ns: BigUint64Array;
  threads: Uint32Array;
  findings: Uint32Array;
  lost: BigUint64Array;
}
export const OVERVIEW_SCHEMA = {"events": "uint64", "contended_ns": "uint64", "idle_ns": "uint64", "other_ns": "uint64", "threads": "uint32", "findings": "uint32", "lost": "uint64"} as const;

export interface EventsColumns {
  position: string[];
  ts_ns: BigInt64Array;
  pid: Uint32Array;
  tid: Uint32Array;
  cpu: Int32Array;
  thread_row: Uint32Array;
  thread: string[];
  event: string[];
  object: string[];
  object_row: Uint32Array;
  site: string[];
  sentence: string[];
}
export const EVENTS_SCHEMA = {"position": "string", "ts_ns": "int64", "pid": "uint32", "tid": "uint32", "cpu": "int32", "thread_row": "uint32", "thread": "string", "event": "string", "object": "string", "object_row": "uint32", "site": "string", "sentence": "string"} as const;

export interface WaitsColumns {
  wait_id: Uint32Array;
  state: Uint8Array;
  flags: Uint8Array;
  t_ns: BigInt64Array;
  dur_ns: BigInt64Array;
  inside_ns: BigInt64Array;
  thread_row: Uint32Array;
  thread: string[];
  object_row: Uint32Array;
  object: string[];
  site: string[];
  owner_row: Uint32Array;
  owner: string[];
}
export const WAITS_SCHEMA = {"wait_id": "uint32", "state": "uint8", "flags": "uint8", "t_ns": "int64", "dur_ns": "int64", "inside_ns": "int64", "thread_row": "uint32", "thread": "string", "object_row": "uint32", "object": "string", "site": "string", "owner_row": "uint32", "owner": "string"} as const;

export interface PathColumns {
  row: Uint32Array;
  kind: Uint8Array;
  t_ns: BigInt64Array;
  dur_ns: BigInt64Array;
  object_row: Uint32Array;
  count: Uint32Array;
}
export const PATH_SCHEMA = {"row": "uint32", "kind": "uint8", "t_ns": "int64", "dur_ns": "int64", "object_row": "uint32", "count": "uint32"} as const;

export interface RowsParameters {
  by: "thread" | "object" | "processor"; // kind of the rows
  sort?: "wait" | "hold" | "start" | "name" | "row"; // order
  filter?: string; // text in label, kind, pid, tid or address, or several
  rows?: readonly number[]; // only these rows, in this order
  offset?: number; // how many rows to leave out at the start
  limit?: number; // how many at most
}

export interface SpansParameters {
  by: "thread" | "object" | "processor"; // kind of the rows
  rows: readonly number[]; // which rows, at most 1000
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  width?: number; // width of the picture in pixels, at most 16384
}

export interface ArrowsParameters {
  rows: readonly number[]; // which rows, at most 1000
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  width?: number; // width of the picture in pixels, at most 16384
  limit?: number; // how many at most
}

export interface OverviewParameters {
  width?: number; // width of the picture in pixels, at most 16384
}

export interface WaitParameters {
  id: number; // the wait
}

export interface WaitsParameters {
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  least_ns?: number; // only waits of at least this length
  wait_class?: "" | "contended" | "idle" | "join" | "timeout" | "cancelled" | "unknown" | "gil"; // only waits of this class
  thread?: readonly number[]; // only waits of these threads
  object?: readonly number[]; // only waits for these objects
  site?: string; // part of a call site's name, or its address
  limit?: number; // how many at most
}

export interface HoldParameters {
  row: number; // the thread
  lane: number; // the lane
  t_ns: number; // a time in the hold
}

export interface EventsParameters {
  position?: string; // the event to start from; by default `t_ns`
  t_ns?: number; // the time to start from
  direction?: "forward" | "backward"; // forward begins with the event at the position, backward ends before it
  count?: number; // how many, at most 5000
  thread?: readonly number[]; // only events of these threads
  object?: readonly number[]; // only events on these objects
  event?: string; // beginnings of names of event types
  site?: string; // part of a call site's name, or its address
  pid?: string; // only events of these processes
  tid?: string; // only events of threads with these ids
  on?: string; // only events on these objects, by address or name
  text?: string; // only events with this text in the sentence
  readings?: "shown" | "hidden"; // events of the scheduler, if no event types are chosen
}

export interface ContentionParameters {
  by?: "object" | "thread" | "site" | "thread,object"; // as `--by`
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  limit?: number; // how many at most
}

export interface FlameParameters {
  show?: "waits" | "holders" | "holds" | "idle" | "inside"; // as `--show`
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  limit?: number; // how many stacks at most
}

export interface DiffParameters {
  by?: "site" | "object" | "thread"; // as `--by`
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
}

export interface OverTimeParameters {
  object?: readonly number[]; // which locks; by default the locks waited for most
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  bins?: number; // how many bins, at most 1000
  limit?: number; // how many locks, at most 50
}

export interface OrderParameters {
  limit?: number; // how many edges at most
}

export interface PathParameters {
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
  width?: number; // width of the picture in pixels, at most 16384
}

export interface StatisticsParameters {
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
}

export interface SearchParameters {
  q: string; // the text to look for
  limit?: number; // how many at most
}

export interface ExportParameters {
  from_ns?: number; // start of the range
  to_ns?: number; // first time after the range
}

export const ENDPOINTS = {
  // The opened traces.
  trace: {"method": "GET", "path": "trace", "answers": "json", "later": false},
  // Threads, objects or processors, sorted.
  rows: {"method": "GET", "path": "rows", "answers": "table", "later": false},
  // The spans to draw in rows: at most about two spans for each pixel, lane and state.
  spans: {"method": "GET", "path": "spans", "answers": "table", "later": false},
  // Arrows of wake-ups and holders, for the visible waits of some threads.
  arrows: {"method": "GET", "path": "arrows", "answers": "table", "later": false},
  // The whole trace in bins.
  overview: {"method": "GET", "path": "overview", "answers": "table", "later": false},
  // A wait and its chain.
  wait: {"method": "GET", "path": "wait/{id}", "answers": "json", "later": false},
  // The longest waits that lie at least in part in a range.
  waits: {"method": "GET", "path": "wait-list", "answers": "table", "later": false},
  // The hold of a thread at a time, in a lane.
  hold: {"method": "GET", "path": "hold", "answers": "json", "later": false},
  // Events from a place on. Filters are as for `ptt view`: commas separate alternatives.
  events: {"method": "GET", "path": "event-list", "answers": "table", "later": false},
  // The numbers of `ptt report` for the whole trace or a range.
  contention: {"method": "GET", "path": "contention", "answers": "json", "later": true},
  // Waits, holds or idle waits by call stack, for the whole trace or a range.
  flame: {"method": "GET", "path": "flame", "answers": "json", "later": true},
  // The changes since the earlier run, as in `ptt diff`, for the whole trace or a range.
  diff: {"method": "GET", "path": "diff", "answers": "json", "later": true},
  // Waits for locks and holds of locks in bins, for the whole trace or a range.
  over_time: {"method": "GET", "path": "over-time", "answers": "json", "later": true},
  // The findings of `ptt check`.
  findings: {"method": "GET", "path": "findings", "answers": "json", "later": true},
  // The lock-order graph.
  order: {"method": "GET", "path": "order", "answers": "json", "later": true},
  // The critical path.
  critical: {"method": "GET", "path": "critical", "answers": "json", "later": true},
  // The pieces of the critical path in a range.
  path: {"method": "GET", "path": "path", "answers": "table", "later": true},
  // The figures of a range.
  statistics: {"method": "GET", "path": "statistics", "answers": "json", "later": false},
  // Threads, objects, call sites, event types and findings by text.
  search: {"method": "GET", "path": "search", "answers": "json", "later": false},
  // The state of the trace, now and after each change.
  live: {"method": "GET", "path": "live", "answers": "stream", "later": false},
  // Writes a range as a separate trace.
  cut: {"method": "POST", "path": "cut", "answers": "json", "later": false},
  // A link that lets another browser in once.
  invite: {"method": "POST", "path": "invite", "answers": "json", "later": false},
  // The page with a range in it, as one file.
  export: {"method": "GET", "path": "export", "answers": "file", "later": false},
} as const;

export interface EndpointTypes {
  trace: {
    parameters: Record<string, never>;
    body: null;
    answer: TraceInfo;
  };
  rows: {
    parameters: RowsParameters;
    body: null;
    answer: RowsColumns;
  };
  spans: {
    parameters: SpansParameters;
    body: null;
    answer: SpansColumns;
  };
  arrows: {
    parameters: ArrowsParameters;
    body: null;
    answer: ArrowsColumns;
  };
  overview: {
    parameters: OverviewParameters;
    body: null;
    answer: OverviewColumns;
  };
  wait: {
    parameters: WaitParameters;
    body: null;
    answer: WaitChain;
  };
  waits: {
    parameters: WaitsParameters;
    body: null;
    answer: WaitsColumns;
  };
  hold: {
    parameters: HoldParameters;
    body: null;
    answer: Hold;
  };
  events: {
    parameters: EventsParameters;
    body: null;
    answer: EventsColumns;
  };
  contention: {
    parameters: ContentionParameters;
    body: null;
    answer: Contention;
  };
  flame: {
    parameters: FlameParameters;
    body: null;
    answer: Flame;
  };
  diff: {
    parameters: DiffParameters;
    body: null;
    answer: Diff;
  };
  over_time: {
    parameters: OverTimeParameters;
    body: null;
    answer: OverTime;
  };
  findings: {
    parameters: Record<string, never>;
    body: null;
    answer: Findings;
  };
  order: {
    parameters: OrderParameters;
    body: null;
    answer: Order;
  };
  critical: {
    parameters: Record<string, never>;
    body: null;
    answer: Critical;
  };
  path: {
    parameters: PathParameters;
    body: null;
    answer: PathColumns;
  };
  statistics: {
    parameters: StatisticsParameters;
    body: null;
    answer: Statistics;
  };
  search: {
    parameters: SearchParameters;
    body: null;
    answer: Hits;
  };
  live: {
    parameters: Record<string, never>;
    body: null;
    answer: string;
  };
  cut: {
    parameters: Record<string, never>;
    body: TimeRange;
    answer: Written;
  };
  invite: {
    parameters: Record<string, never>;
    body: Guests;
    answer: Invitation;
  };
  export: {
    parameters: ExportParameters;
    body: null;
    answer: string;
  };
}
