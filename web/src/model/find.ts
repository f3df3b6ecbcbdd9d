// Finds loaded spans: the span under the pointer, and the next and previous span of a lane.
import { STATES } from "../base/protocol";
import type { Range } from "../base/state";
import type { Scale } from "./scale";
import type { RowSpans, Spans, Tiles } from "./tiles";

/** A span as it was drawn. A merged span stands for several. */
export interface Span {
  readonly row: number;
  readonly lane: number;
  readonly state: number;
  readonly flags: number;
  readonly t_ns: number;
  readonly dur_ns: number;
  readonly busy_ns: number;
  readonly wake_ns: number;
  readonly count: number;
  readonly other: number;
  readonly depth: number;
  readonly wait_id: number;
}

/** Returns the span of a lane at a time, or the nearest span within so many ns; null if there is none. */
export function spanAt(
  tiles: Tiles,
  row: number,
  lane: number,
  scale: Scale,
  end: number,
  ns: number,
  near: number,
): Span | null {
  let best: Span | null = null;
  let distance = near;
  visit(tiles, row, lane, scale, end, (table, at) => {
    const t = table.t_ns[at] ?? 0;
    const last = t + (table.dur_ns[at] ?? 0);
    const away = ns < t ? t - ns : ns > last ? ns - last : 0;
    // Of several equally near spans, take the shortest: otherwise nobody could reach it.
    const better = away < distance || (away === distance && (!best || last - t < best.dur_ns));
    if (!better || away > near) return;
    distance = away;
    best = take(table, at);
  });
  return best;
}

/**
 * The states after this state belong to threads that do not wait, between waits. Processors have
 * only turns.
 */
const LAST_STOP = STATES.indexOf("shared");

/**
 * Returns the first wait, hold or turn of a lane that begins after a time, or the last that begins
 * before it.
 */
export function neighbour(
  tiles: Tiles,
  row: number,
  lane: number,
  scale: Scale,
  end: number,
  ns: number,
  step: 1 | -1,
): Span | null {
  let best: Span | null = null;
  visit(tiles, row, lane, scale, end, (table, at) => {
    const t = table.t_ns[at] ?? 0;
    if (tiles.by !== "processor" && (table.state[at] ?? 0) > LAST_STOP) return;
    if (step > 0 ? t <= ns : t >= ns) return;
    if (!best || (step > 0 ? t < best.t_ns : t > best.t_ns)) best = take(table, at);
  });
  return best;
}

/** Returns the time of each state of a row in the view, by the number of the state; lane 0 only. */
export function sums(tiles: Tiles, row: number, scale: Scale, end: number): Map<number, number> {
  const out = new Map<number, number>();
  visit(tiles, row, 0, scale, end, (table, at, clip) => {
    const from = Math.max(clip.from, scale.range.from, table.t_ns[at] ?? 0);
    const to = Math.min(clip.to, scale.range.to, (table.t_ns[at] ?? 0) + (table.dur_ns[at] ?? 0));
    if (to <= from) return;
    const share = (table.busy_ns[at] ?? 0) / Math.max(1, table.dur_ns[at] ?? 1);
    const state = table.state[at] ?? 0;
    out.set(state, (out.get(state) ?? 0) + (to - from) * Math.min(1, share));
  });
  return out;
}

function visit(
  tiles: Tiles,
  row: number,
  lane: number,
  scale: Scale,
  end: number,
  then: (table: Spans, at: number, clip: Range) => void,
): void {
  tiles.each(row, scale, end, (spans: RowSpans, clip: Range) => {
    for (let at = spans.begin; at < spans.end; at++) {
      if (spans.table.lane[at] === lane) then(spans.table, at, clip);
    }
  });
}

function take(table: Spans, at: number): Span {
  return {
    row: table.row[at] ?? 0,
    lane: table.lane[at] ?? 0,
    state: table.state[at] ?? 0,
    flags: table.flags[at] ?? 0,
    t_ns: table.t_ns[at] ?? 0,
    dur_ns: table.dur_ns[at] ?? 0,
    busy_ns: table.busy_ns[at] ?? 0,
    wake_ns: table.wake_ns[at] ?? 0,
    count: table.count[at] ?? 0,
    other: table.other[at] ?? 0,
    depth: table.depth[at] ?? 0,
    wait_id: table.wait_id[at] ?? 0,
  };
}
