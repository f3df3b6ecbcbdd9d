// The event list of the one-file page: from a place on, in both directions, with filters.
import type { Columns } from "../base/columns";
import type { EventsColumns, EventsParameters } from "../base/protocol";
import { take } from "./pick";

type Events = Columns<EventsColumns>;

/** The choice at the time of the export: the text, and the numbers of the events. */
export type Chosen = Readonly<Record<string, readonly number[]>>;

export function eventsOf(table: Events, asked: EventsParameters, chosen: Chosen = {}): Events {
  const start = asked.position
    ? table.position.indexOf(asked.position)
    : firstAt(table, asked.t_ns ?? 0);
  const passes = filter(table, asked, chosen);
  const count = asked.count ?? 200;
  const forward = asked.direction !== "backward";
  const found: number[] = [];
  let at = Math.max(0, start) - (forward ? 0 : 1);
  for (; at >= 0 && at < table.length && found.length < count; at += forward ? 1 : -1) {
    if (passes(at)) found.push(at);
  }
  const done = at < 0 || at >= table.length;
  const next = forward ? table.position[at] : table.position[at + 1];
  const metadata = new Map([["done", done ? "1" : "0"]]);
  if (!done && next) metadata.set("next", next);
  return take<EventsColumns>(table, forward ? found : found.reverse(), metadata);
}

/** Returns the number of the first event at or after a time. */
function firstAt(table: Events, ns: number): number {
  let [low, high] = [0, table.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((table.ts_ns[middle] ?? 0) < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

function filter(table: Events, asked: EventsParameters, chosen: Chosen): (at: number) => boolean {
  const words = (text: string | undefined) => (text ?? "").split(",").filter(Boolean);
  const threads = new Set(asked.thread ?? []);
  const objects = new Set(asked.object ?? []);
  const pids = new Set(words(asked.pid).map(Number));
  const tids = new Set(words(asked.tid).map(Number));
  const on = new Set(words(asked.on?.toLowerCase()));
  const known = asked.on && Object.hasOwn(chosen, asked.on) ? new Set(chosen[asked.on]) : undefined;
  const types = words(asked.event?.toUpperCase());
  const sites = words(asked.site);
  const text = asked.text?.toLowerCase() ?? "";
  const hidden = asked.readings === "hidden" && !types.length;
  return (at) =>
    (!threads.size || threads.has(table.thread_row[at] ?? 0)) &&
    (!objects.size || objects.has(table.object_row[at] ?? 0)) &&
    (!pids.size || pids.has(table.pid[at] ?? 0)) &&
    (!tids.size || tids.has(table.tid[at] ?? 0)) &&
    (known?.has(at) ?? (!on.size || on.has(table.object[at] ?? ""))) &&
    (!hidden || !table.event[at]?.startsWith("SCHED_")) &&
    (!types.length || types.some((type) => table.event[at]?.startsWith(type))) &&
    (!sites.length || sites.some((site) => table.site[at]?.includes(site))) &&
    (!text || Boolean(table.sentence[at]?.toLowerCase().includes(text)));
}
