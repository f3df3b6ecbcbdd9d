// Highlights a lock in the rows of threads: its holds, with and without waiters, and the waits for it.
import { STATES } from "../../base/protocol";
import type { Range } from "../../base/state";
import { laneBox, lanesOf } from "../../model/layout";
import type { RowData } from "../../model/rows";
import type { Scale } from "../../model/scale";
import { Shares } from "../../model/shares";
import type { Spans } from "../../model/tiles";
import type { Palette } from "./palette";
import type { Pane } from "./pane";

export type Lit = "held" | "wanted" | "waiting";

const HELD = STATES.indexOf("held");
const SHARED = STATES.indexOf("shared");
/** Layers from the bottom up. */
const LAYERS = ["wanted", "held"] as const;
/** Narrower waits have no room for a frame. */
const FRAMED_PIXELS = 5;

/**
 * Returns the relation of a span of a thread to a lock, given by its row. For merged spans, the
 * longest span counts.
 */
export function litBy(table: Spans, at: number, lock: number): Lit | null {
  const state = table.state[at] ?? 0;
  if (!lock || table.other[at] !== lock || !state || state > SHARED) return null;
  if (state < HELD) return "waiting";
  return table.depth[at] ? "wanted" : "held";
}

/**
 * Highlights a lock in the visible rows, as high as the share of its holds. If not `full`, draws
 * only frames.
 */
export function light(
  context: CanvasRenderingContext2D,
  pane: Pane,
  palette: Palette,
  range: Range,
  end: number,
  lock: number,
  full: boolean,
): void {
  if (!lock) return;
  const scale = pane.dense(range);
  context.strokeStyle = palette.get("lit-frame");
  context.lineWidth = 1;
  for (const { item } of pane.seen()) {
    const box = item.kind === "row" ? pane.box(item.data.row, 0) : null;
    if (item.kind !== "row" || !box) continue;
    const y = box.y - laneBox(item.data, 0).top;
    lightRow({ context, pane, palette, scale, end, lock, full }, item.data, y);
  }
}

interface Lamp {
  readonly context: CanvasRenderingContext2D;
  readonly pane: Pane;
  readonly palette: Palette;
  /** The scale in device pixels. */
  readonly scale: Scale;
  readonly end: number;
  readonly lock: number;
  readonly full: boolean;
}

function lightRow(lamp: Lamp, row: RowData, y: number): void {
  const { context, palette, scale } = lamp;
  const { ratio } = palette;
  const columns = Math.round(scale.width);
  const lanes = Array.from({ length: lanesOf(row) }, () => new Shares(columns, [0, 1], 0));
  const frames: { lane: number; from: number; to: number }[] = [];
  lamp.pane.options.tiles.each(row.row, scale, lamp.end, ({ table, begin, end }, clip) => {
    for (let at = begin; at < end; at++) {
      const lit = litBy(table, at, lamp.lock);
      if (!lit) continue;
      const t = table.t_ns[at] ?? 0;
      const dur = table.dur_ns[at] ?? 0;
      const lane = Math.min(table.lane[at] ?? 0, lanes.length - 1);
      const from = scale.x(Math.max(t, clip.from));
      const to = scale.x(Math.min(t + dur, clip.to));
      const share = (table.busy_ns[at] ?? 0) / Math.max(1, dur);
      if (lit !== "waiting") lanes[lane]?.add(LAYERS.indexOf(lit), from, to, share);
      // A wait from the tile before has its frame there.
      if (t >= clip.from || clip.from <= scale.range.from) {
        frames.push({ lane, from: scale.x(t), to: scale.x(t + dur) });
      }
    }
  });
  for (const [lane, shares] of lanes.entries()) {
    if (!lamp.full) break;
    const { top, height } = laneBox(row, lane);
    for (const block of shares.blocks(Math.round(height * ratio))) {
      context.fillStyle = palette.get(`lit-${LAYERS[block.layer]}`);
      const wide = (block.x1 - block.x0) / ratio;
      const tall = (block.top - block.bottom) / ratio;
      context.fillRect(block.x0 / ratio, y + top + height - block.top / ratio, wide, tall);
    }
  }
  for (const { lane, from, to } of frames) {
    // Far beyond the edges, a canvas loses its precision.
    const [x0, x1] = [Math.max(-9, from / ratio), Math.min(lamp.pane.width + 9, to / ratio)];
    const { top, height } = laneBox(row, lane);
    if (x1 - x0 < FRAMED_PIXELS) continue;
    context.strokeRect(x0 - 0.5, y + top - 0.5, x1 - x0 + 1, height + 1);
  }
}
