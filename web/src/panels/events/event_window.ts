// A part of the event list: the events around a place. It grows at both ends on demand.
import type { Source } from "../../base/api";
import type { Columns } from "../../base/columns";
import type { EventsColumns, EventsParameters } from "../../base/protocol";
import type { Filter } from "../../base/state";
import { sentence } from "../../base/units";

export interface TraceEvent {
  /** The exact position of the event, in the server's format. */
  readonly position: string;
  readonly ts: number;
  readonly pid: number;
  readonly tid: number;
  readonly threadRow: number;
  readonly thread: string;
  readonly event: string;
  readonly object: string;
  readonly objectRow: number;
  readonly site: string;
  readonly sentence: string;
}

/** The place where a window begins: at an event, or at a time. */
export type Anchor = { readonly position: string } | { readonly ts: number };
type Direction = "forward" | "backward";

const COUNT = 200;
const KEPT = 4000;

export class EventWindow {
  /** The events in the order of the trace. */
  events: TraceEvent[] = [];
  /** Whether the first event is the first of all that pass the filter, and the last event the last. */
  atStart = false;
  atEnd = false;
  /** The time that a running search has reached; null without a search. */
  searching: number | null = null;
  private from: Anchor = { ts: 0 };
  private to: Anchor = { ts: 0 };

  constructor(
    private readonly source: Source,
    private readonly filter: Filter,
    private readonly signal: AbortSignal,
    private readonly progress: () => void,
  ) {}

  /** Reads the events around a place. Returns the number of the first event at or after the place. */
  async around(anchor: Anchor): Promise<number> {
    this.from = this.to = anchor;
    await this.after();
    await this.before();
    const ts = "ts" in anchor ? anchor.ts : null;
    const at = this.events.findIndex((event) =>
      ts === null ? "position" in anchor && event.position === anchor.position : event.ts >= ts,
    );
    return at < 0 ? Math.max(0, this.events.length - 1) : at;
  }

  /** Reads events before the first event. Returns how many came. */
  async before(): Promise<number> {
    if (this.atStart) return 0;
    const found = await this.read("backward", this.from);
    this.events = [...found.events, ...this.events].slice(0, KEPT);
    if (this.events.length === KEPT) this.cutEnd();
    this.atStart = found.done;
    this.from = this.events[0] && !found.rest ? this.events[0] : (found.rest ?? this.from);
    return found.events.length;
  }

  /** Reads events after the last event. Returns how many were removed at the start to save memory. */
  async after(): Promise<number> {
    if (this.atEnd) return 0;
    const found = await this.read("forward", this.to);
    this.events.push(...found.events);
    this.atEnd = found.done;
    if (found.rest) this.to = found.rest;
    const gone = Math.max(0, this.events.length - KEPT);
    if (gone) {
      this.events.splice(0, gone);
      this.atStart = false;
      this.from = this.events[0] ?? this.from;
    }
    return gone;
  }

  private cutEnd(): void {
    const last = this.events.pop();
    if (last) this.to = last;
    this.atEnd = false;
  }

  /** A search through a large trace is answered in parts: reads until there is an event. */
  private async read(direction: Direction, anchor: Anchor) {
    const events: TraceEvent[] = [];
    let place = anchor;
    for (;;) {
      const parameters = { ...question(this.filter), ...at(place), direction, count: COUNT };
      const answer = await this.source.table("events", parameters, this.signal);
      const rows = rowsOf(answer);
      if (direction === "forward") events.push(...rows);
      else events.unshift(...rows);
      const done = answer.metadata.get("done") === "1";
      const next = answer.metadata.get("next");
      const rest: Anchor | null = next ? { position: next } : null;
      this.searching = null;
      if (done || !rest || events.length >= COUNT / 4) return { events, done, rest };
      this.searching = Number(answer.metadata.get("searched_ns") ?? 0);
      this.progress();
      place = rest;
    }
  }
}

/** Returns the nearest event of an object before or after a place; null if there is none. */
export async function neighbour(
  source: Source,
  from: Anchor,
  object: number,
  step: 1 | -1,
): Promise<TraceEvent | null> {
  const direction: Direction = step > 0 ? "forward" : "backward";
  const own = "position" in from ? from.position : "";
  let place = from;
  for (;;) {
    const parameters = { ...at(place), direction, count: 2, object: [object] };
    const answer = await source.table("events", parameters);
    const found = rowsOf(answer).filter((other) => other.position !== own);
    const next = answer.metadata.get("next");
    const nearest = step > 0 ? found[0] : found[found.length - 1];
    if (nearest) return nearest;
    if (answer.metadata.get("done") === "1" || !next) return null;
    place = { position: next };
  }
}

/** Returns the first event at or after a place, of any thread or of one thread; null if there is none. */
export async function firstEvent(
  source: Source,
  from: Anchor,
  thread?: number,
): Promise<TraceEvent | null> {
  let place = from;
  for (;;) {
    const only = thread === undefined ? {} : { thread: [thread] };
    const answer = await source.table("events", { ...at(place), ...only, count: 1 });
    const found = rowsOf(answer)[0];
    const next = answer.metadata.get("next");
    if (found) return found;
    if (answer.metadata.get("done") === "1" || !next) return null;
    place = { position: next };
  }
}

function at(anchor: Anchor): EventsParameters {
  return "position" in anchor ? { position: anchor.position } : { t_ns: Math.round(anchor.ts) };
}

function question(filter: Filter): EventsParameters {
  return {
    ...(filter.thread === undefined ? {} : { thread: [filter.thread] }),
    ...(filter.object === undefined ? {} : { object: [filter.object] }),
    ...(filter.pid === undefined ? {} : { pid: String(filter.pid) }),
    ...(filter.tid ? { tid: filter.tid } : {}),
    ...(filter.on ? { on: filter.on } : {}),
    ...(filter.event ? { event: filter.event } : {}),
    ...(filter.site ? { site: filter.site } : {}),
    ...(filter.text ? { text: filter.text } : {}),
    ...(filter.readings ? {} : { readings: "hidden" }),
  };
}

function rowsOf(table: Columns<EventsColumns>): TraceEvent[] {
  return Array.from({ length: table.length }, (_, n) => ({
    position: table.position[n] ?? "",
    ts: table.ts_ns[n] ?? 0,
    pid: table.pid[n] ?? 0,
    tid: table.tid[n] ?? 0,
    threadRow: table.thread_row[n] ?? 0,
    thread: table.thread[n] ?? "",
    event: table.event[n] ?? "",
    object: table.object[n] ?? "",
    objectRow: table.object_row[n] ?? 0,
    site: table.site[n] ?? "",
    sentence: sentence(table.sentence[n] ?? ""),
  }));
}
