// Looks up the selection: a wait with its chain, a hold, a row or an event.
import { isAbort, NotYet, type Source } from "../base/api";
import { type Hold, STATES, type Wait } from "../base/protocol";
import { Signal } from "../base/signal";
import type { PaneKind, Range, Selection, ViewStore } from "../base/state";
import { sentence } from "../base/units";
import type { About } from "../model/about";
import type { RowData, Rows } from "../model/rows";

const CONTENDED = STATES.indexOf("contended");
/** A longer chain would be hard to read. */
const MOST_LATER = 12;

export interface EventLine {
  readonly position: string;
  readonly ts_ns: number;
  readonly thread: string;
  readonly thread_row: number;
  readonly object: string;
  readonly object_row: number;
  readonly event: string;
  readonly site: string;
  readonly sentence: string;
}

/** The chain after its waits began: the wait that its last owner began meanwhile, and so on. */
export interface Later {
  readonly waits: readonly Wait[];
  /** The last owner waits for a thread of the chain: these waits can never end. */
  readonly cycle: boolean;
}

/** The selection, with its data. */
export type Selected =
  | { readonly kind: "wait"; readonly chain: readonly Wait[]; readonly later: Later }
  | {
      readonly kind: "hold";
      readonly hold: Hold;
      /** Its lanes in the rows of its thread and of its object. */
      readonly lanes: { readonly thread: number; readonly object: number };
    }
  | { readonly kind: "row"; readonly row: RowData }
  | { readonly kind: "event"; readonly event: EventLine }
  | { readonly kind: "failed"; readonly line: string };

export class SelectedThing {
  readonly changed = new Signal();
  now: Selected | null = null;
  private asking: AbortController | null = null;
  private changes = 0;

  constructor(
    private readonly source: Source,
    private readonly store: ViewStore,
    private readonly rows: { readonly thread: Rows; readonly object: Rows },
  ) {
    store.watch(["selection"], (view) => void this.resolve(view.selection));
  }

  /** Asks again: there may be new data. */
  refresh(): void {
    this.changes++;
    if (this.now?.kind === "failed") void this.resolve(this.store.get().selection);
  }

  /** Returns its range of time, or null. */
  range(): Range | null {
    return rangeOf(this.now);
  }

  private async resolve(selection: Selection | null): Promise<void> {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    const { changes } = this;
    let found: Selected | null = null;
    try {
      found = selection ? await this.find(selection, asking.signal) : null;
    } catch (error) {
      if (isAbort(error)) return;
      // The data may have come while this answer was on its way.
      if (error instanceof NotYet && this.asking === asking && changes !== this.changes) {
        return this.resolve(selection);
      }
      found = { kind: "failed", line: error instanceof Error ? error.message : String(error) };
    }
    if (this.asking !== asking) return;
    this.now = found;
    this.changed.emit();
  }

  private async find(selection: Selection, signal: AbortSignal): Promise<Selected | null> {
    switch (selection.kind) {
      case "row": {
        const row = await this.rows[selection.by].one(selection.row);
        return row ? { kind: "row", row } : { kind: "failed", line: "There is no such row." };
      }
      case "wait":
        return this.wait(selection.wait, signal);
      case "event":
        return this.event(selection.position, signal);
      case "span":
        return this.span(selection, signal);
    }
  }

  private async wait(id: number, signal: AbortSignal): Promise<Selected> {
    const { chain } = await this.source.json("wait", { id }, signal);
    return { kind: "wait", chain, later: await this.later(chain, signal) };
  }

  /** Follows the owners from wait to wait, while each wait lasts for most of the wait before. */
  private async later(chain: readonly Wait[], signal: AbortSignal): Promise<Later> {
    const waits: Wait[] = [];
    const waiting = new Set(chain.map((wait) => wait.thread.row));
    for (let last = chain[chain.length - 1]; last?.owner && waits.length < MOST_LATER; ) {
      if (waiting.has(last.owner.row)) return { waits, cycle: true };
      const next = await this.meanwhile(last, last.owner.row, signal);
      if (!next) break;
      waits.push(next);
      waiting.add(next.thread.row);
      last = next;
    }
    return { waits, cycle: false };
  }

  /** Returns the wait that kept a thread for at least half of another wait, or null. */
  private async meanwhile(wait: Wait, row: number, signal: AbortSignal): Promise<Wait | null> {
    const to_ns = wait.t_ns + Math.max(1, wait.dur_ns);
    const question = { by: "thread", rows: [row], from_ns: wait.t_ns, to_ns, width: 1 } as const;
    const table = await this.source.table("spans", question, signal);
    for (let n = 0; n < table.length; n++) {
      const id = table.wait_id[n] ?? 0;
      if (table.lane[n] !== 0 || table.state[n] !== CONTENDED || !id) continue;
      const found = (await this.source.json("wait", { id }, signal)).chain[0];
      if (!found) continue;
      const until = Math.min(to_ns, found.t_ns + found.dur_ns);
      if (until - Math.max(wait.t_ns, found.t_ns) >= wait.dur_ns / 2) return found;
    }
    return null;
  }

  private async event(position: string, signal: AbortSignal): Promise<Selected | null> {
    const table = await this.source.table("events", { position, count: 1 }, signal);
    if (!table.length) return null;
    const event = {
      position: table.position[0] ?? "",
      ts_ns: table.ts_ns[0] ?? 0,
      thread: table.thread[0] ?? "",
      thread_row: table.thread_row[0] ?? 0,
      object: table.object[0] ?? "",
      object_row: table.object_row[0] ?? 0,
      event: table.event[0] ?? "",
      site: table.site[0] ?? "",
      sentence: sentence(table.sentence[0] ?? ""),
    };
    return { kind: "event", event };
  }

  /** Asks for finer spans until a merged span is a single wait or hold. */
  private async span(
    selection: Extract<Selection, { kind: "span" }>,
    signal: AbortSignal,
  ): Promise<Selected> {
    const at = Math.round(selection.at);
    const close = { from_ns: at, to_ns: at + 1, width: 1 };
    const question = { by: selection.by, rows: [selection.row], ...close };
    const table = await this.source.table("spans", question, signal);
    for (let n = 0; n < table.length; n++) {
      if (table.lane[n] !== selection.lane) continue;
      const wait = table.wait_id[n] ?? 0;
      if (wait) return this.wait(wait, signal);
      if (selection.lane === 0) break;
      if (selection.by === "thread") {
        // A lock that is not shared has only one lane.
        return this.hold(selection.row, { thread: selection.lane, object: 1 }, at, signal);
      }
      return this.owned(table.other[n] ?? 0, selection, at, signal);
    }
    const row = await this.rows[selection.by].one(selection.row);
    return row ? { kind: "row", row } : { kind: "failed", line: "There is nothing here." };
  }

  private async hold(
    row: number,
    lanes: { thread: number; object: number },
    at: number,
    signal: AbortSignal,
  ): Promise<Selected> {
    const hold = await this.source.json("hold", { row, lane: lanes.thread, t_ns: at }, signal);
    return { kind: "hold", hold, lanes };
  }

  /** Finds the hold of an object in the lanes of its owner. */
  private async owned(
    owner: number,
    object: { readonly row: number; readonly lane: number },
    at: number,
    signal: AbortSignal,
  ): Promise<Selected> {
    const question = { by: "thread", rows: [owner], from_ns: at, to_ns: at + 1, width: 1 } as const;
    const table = await this.source.table("spans", question, signal);
    for (let n = 0; n < table.length; n++) {
      const lane = table.lane[n] ?? 0;
      if (lane === 0 || table.other[n] !== object.row) continue;
      return this.hold(owner, { thread: lane, object: object.lane }, at, signal);
    }
    return { kind: "failed", line: "There is nothing here." };
  }
}

export function rangeOf(selected: Selected | null): Range | null {
  if (selected?.kind === "wait") {
    const wait = selected.chain[0];
    return wait ? { from: wait.t_ns, to: wait.t_ns + wait.dur_ns } : null;
  }
  if (selected?.kind === "hold") {
    const { t_ns, dur_ns } = selected.hold;
    return { from: t_ns, to: t_ns + dur_ns };
  }
  if (selected?.kind === "row") return { from: selected.row.start_ns, to: selected.row.end_ns };
  if (selected?.kind === "event") {
    const at = selected.event.ts_ns;
    return { from: at, to: at };
  }
  return null;
}

/** Returns the row of the selected thread or object; 0 if there is none. */
export function rowOf(selected: Selected | null, by: PaneKind): number {
  if (by === "processor") return 0;
  switch (selected?.kind) {
    case "row":
      return selected.row.by === by ? selected.row.row : 0;
    case "hold":
      return selected.hold[by].row;
    case "wait":
      return selected.chain[0]?.[by].row ?? 0;
    case "event":
      return by === "thread" ? selected.event.thread_row : selected.event.object_row;
    default:
      return 0;
  }
}

/** Returns the rows of the selection: the row of `rowOf`, and for a wait the rows of its chain. */
export function rowsOf(selected: Selected | null, by: PaneKind): readonly number[] {
  if (selected?.kind !== "wait" || by === "processor") return [rowOf(selected, by)];
  const rows = [...selected.chain, ...selected.later.waits].map((wait) => wait[by].row);
  return [...new Set(rows)];
}

/** Returns a test whether an arrow belongs to the selection; null if the selection has no arrows. */
export function arrowsOf(selected: Selected | null): About | null {
  switch (selected?.kind) {
    case "wait": {
      const waits = [...selected.chain, ...selected.later.waits].map((wait) => wait.wait_id);
      return ({ wait }) => waits.includes(wait);
    }
    case "hold":
      return ({ object }) => object === selected.hold.object.row;
    case "row": {
      const { by, row } = selected.row;
      return by === "thread"
        ? ({ threads }) => threads.includes(row)
        : ({ object }) => object === row;
    }
    default:
      return null;
  }
}
