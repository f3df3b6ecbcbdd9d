// Words for a span or a row: for the tooltip, the details and screen readers.
import { CALLS, FLAGS, STATES } from "../base/protocol";
import { count, duration, exact, percent, plural } from "../base/units";
import type { Span } from "./find";
import type { RowData } from "./rows";

const DOING: Readonly<Record<string, string>> = {
  contended: "waits for",
  idle: "is idle, waiting for",
  join: "waits for the end of a thread, by",
  timeout: "waited in vain for",
  cancelled: "was cancelled while waiting for",
  unknown: "waits, for an unknown reason, for",
  gil: "waits for the interpreter's lock,",
};

/** States of a thread outside of waits. */
const DID: Readonly<Record<string, string>> = {
  running: "ran",
  ready: "was ready to run, and had no processor",
  asleep: "was asleep",
  preempted: "lost its processor while it held locks",
};

export interface Described {
  /** The summary in one line. */
  readonly title: string;
  /** More lines, one fact each. */
  readonly facts: readonly string[];
}

/**
 * Describes a span of a thread or an object. `other` is the name of the span's `other` row. For a
 * queue, `free` says that nobody has the object.
 */
export function describeSpan(row: RowData, span: Span, other: string, free = false): Described {
  const merged = (span.flags & FLAGS.merged) !== 0;
  const open = (span.flags & FLAGS.open) !== 0;
  const facts = [`at ${exact(span.t_ns)}`];
  const length = open ? `${duration(span.dur_ns)}, not ended` : duration(span.dur_ns);
  if (merged) {
    const share = percent(span.busy_ns / Math.max(1, span.dur_ns));
    facts.unshift(`${duration(span.busy_ns)} in all, ${share} of ${duration(span.dur_ns)}`);
    facts.push("zoom in to see each of them");
    return { title: mergedTitle(row, span), facts };
  }
  if (row.kind === "processor") return ofProcessor(row, span, other);
  facts.unshift(length);
  if (row.kind === "thread") return ofThread(row, span, other, facts);
  if (span.lane === 0) {
    const waiters = span.depth === 1 ? "1 thread waits" : `${count(span.depth)} threads wait`;
    if (other) facts.push(span.depth === 1 ? other : `${other} has waited longest`);
    if (free) facts.push("nobody holds it: the waiting threads have not run since");
    return { title: `${waiters} for ${row.label}`, facts };
  }
  const how = STATES[span.state] === "shared" ? "shared by" : "held by";
  if (span.depth) facts.push(`${plural(span.depth, "thread")} waited meanwhile`);
  return { title: `${row.label}: ${how} ${other}`, facts };
}

/** Describes a row by its most important figures. */
export function describeRow(row: RowData): Described {
  const facts: string[] = [];
  if (row.kind === "processor") {
    const turns = `${plural(row.holds, "turn")} of threads: ${duration(row.hold_ns)}`;
    return { title: row.label, facts: [turns] };
  }
  if (row.waits) {
    const longest = row.waits > 1 ? `, ${longestOf(row)}` : "";
    facts.push(`${plural(row.waits, "contended wait")}: ${duration(row.wait_ns)}${longest}`);
  }
  if (row.idle_ns) facts.push(`idle: ${duration(row.idle_ns)}`);
  if (row.other_ns) facts.push(`other waits: ${duration(row.other_ns)}`);
  if (row.holds) facts.push(`${plural(row.holds, "hold")}: ${duration(row.hold_ns)}`);
  if (row.caused_ns) facts.push(`others waited for it: ${duration(row.caused_ns)}`);
  if (row.by === "object") {
    if (row.threads) facts.push(`used by ${plural(row.threads, "thread")}`);
    if (row.max_waiters) facts.push(`at most ${plural(row.max_waiters, "waiter")}`);
    if (row.generations > 1) facts.push(`${count(row.generations)} objects, one after another`);
    facts.push(row.object);
  }
  facts.push(`process ${row.pid}`);
  return { title: row.by === "thread" ? row.label : named(row), facts };
}

/** Returns the words for the longest wait of a row. */
export function longestOf(row: RowData): string {
  return `${duration(row.wait_max_ns)} at most`;
}

/** Returns the kind and the label of a row. The label of an unnamed row already contains the kind. */
export function named(row: { readonly kind: string; readonly label: string }): string {
  return row.label.startsWith(row.kind) ? row.label : `${row.kind} ${row.label}`;
}

/** Describes a turn of a thread, and how the turn ended. */
function ofProcessor(row: RowData, span: Span, other: string): Described {
  const ended =
    (span.flags & FLAGS.open) !== 0
      ? "the end of the turn is not known"
      : STATES[span.state] === "preempted"
        ? "lost the processor, but could have gone on"
        : "gave the processor up";
  const when = `from ${exact(span.t_ns)} to ${exact(span.t_ns + span.dur_ns)}`;
  return { title: `${other} ran on ${row.label}`, facts: [duration(span.dur_ns), when, ended] };
}

function ofThread(row: RowData, span: Span, other: string, facts: string[]): Described {
  const state = STATES[span.state] ?? "";
  if (span.lane > 0) {
    if (span.depth) facts.push(`${plural(span.depth, "thread")} waited for it meanwhile`);
    const how = state === "shared" ? "shares" : "holds";
    return { title: `${row.label} ${how} ${other}`, facts };
  }
  if (state === "asleep") return { title: `${row.label} was asleep in ${callOf(span)}`, facts };
  if (DID[state]) return { title: `${row.label} ${DID[state]}`, facts };
  if (state === "contended" && span.depth > 1) facts.push(`${count(span.depth)} waiting by then`);
  if (span.wake_ns) facts.push(`${duration(span.wake_ns)} of it free, until the thread was awake`);
  return { title: `${row.label} ${DOING[state] ?? state} ${other}`, facts };
}

function callOf(span: Span): string {
  return CALLS[span.other] || "a system call";
}

function mergedTitle(row: RowData, span: Span): string {
  const state = STATES[span.state] ?? "";
  if (row.kind === "processor") return `${row.label}: ${plural(span.count, "turn")} of threads`;
  if (state === "held" || state === "shared") return `${row.label}: ${plural(span.count, "hold")}`;
  if (DID[state]) return `${row.label} ${DID[state]} ${count(span.count)} times`;
  return `${row.label}: ${plural(span.count, `${state} wait`)}`;
}
