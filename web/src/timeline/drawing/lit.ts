// Lights a lock in the rows of the threads: where each had it, with others waiting for it or not, and where it waited.
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
/** From the bottom up. */
const LAYERS = ["wanted", "held"] as const;
/** What is narrower has no room for a frame. */
const FRAMED_PIXELS = 5;

/** Says what a span of a thread has to do with a lock, by its row: of several drawn as one the longest counts. */
export function litBy(table: Spans, at: number, lock: number): Lit | null {
  const state = table.state[at] ?? 0;
  if (!lock || table.other[at] !== lock || !state || state > SHARED) return null;
  if (state < HELD) return "waiting";
  return table.depth[at] ? "wanted" : "held";
}

/** Lights a lock in the rows in sight, as high as its holds take of the time; not `full`, only by frames. */
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
  /** In pixels of the device. */
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
      // What goes on from the tile before is framed with all of it.
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
    // Far beyond the edges a canvas loses its precision.
    const [x0, x1] = [Math.max(-9, from / ratio), Math.min(lamp.pane.width + 9, to / ratio)];
    const { top, height } = laneBox(row, lane);
    if (x1 - x0 < FRAMED_PIXELS) continue;
    context.strokeRect(x0 - 0.5, y + top - 0.5, x1 - x0 + 1, height + 1);
  }
}
