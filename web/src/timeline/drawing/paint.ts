// Draws rows: states, nested holds, owners and queues. There are as many rectangles as pixels allow.
import { CALLS, FLAGS, STATES } from "../../base/protocol";
import type { Range } from "../../base/state";
import { drawnLabel } from "../../base/text";
import { laneBox, lanesOf } from "../../model/layout";
import type { RowData } from "../../model/rows";
import { Scale } from "../../model/scale";
import { Shares } from "../../model/shares";
import type { RowSpans, Spans, Tiles } from "../../model/tiles";
import { OWNERS, type Paint, type Palette, WAKING } from "./palette";

const NOT_WAITING = 0;
const CONTENDED = STATES.indexOf("contended");
const HELD = STATES.indexOf("held");
const SHARED = STATES.indexOf("shared");
const RUNNING = STATES.indexOf("running");
const PREEMPTED = STATES.indexOf("preempted");
/** Layers from the bottom up: the waits, contended waits first, then the rest. */
const WAITS = [...STATES.keys()].filter((state) => state > NOT_WAITING && state < HELD);
/** States of a thread outside of waits, as far as they are known. */
const ASLEEP = STATES.indexOf("asleep");
const DOING = ["asleep", "preempted", "ready", "running"].map((state) =>
  STATES.indexOf(state as (typeof STATES)[number]),
);
/**
 * Layers of holds and turns: the colours of owners, the colours of sharing owners, and two for
 * merged spans.
 */
const MERGED_LAYER = 2 * OWNERS;
const OWNER_LAYERS = Array.from({ length: MERGED_LAYER + 2 }, (_, at) => at);
/** In less height, a pattern is not visible, and text not readable. */
const PATTERN_PIXELS = 5;
const TEXT_PIXELS = 26;
/** Neighbours of the same colour are separated if they are at least this wide. */
const APART_PIXELS = 12;
/** Width of the end mark of a turn that the thread did not give up. */
const TAKEN_PIXELS = 3;
/** Low lanes have smaller letters. Very low lanes have none. */
const LOW_PIXELS = 14;
const LOWEST_PIXELS = 10;
const MOST_TEXTS = 1500;

interface Text {
  readonly x: number;
  /** The vertical middle. */
  readonly y: number;
  readonly height: number;
  readonly room: number;
  readonly text: string;
  readonly paint: Paint;
}

/** The tools and data for drawing a row. */
export interface Brush {
  readonly context: CanvasRenderingContext2D;
  readonly scale: Scale;
  readonly palette: Palette;
  /** The present end of the trace. */
  readonly end: number;
  /**
   * Names of rows of the other kind: the object of a wait, the holder of a lock, the thread on a
   * processor.
   */
  readonly nameOf: (row: number) => string;
  /** Collects the drawn states of threads. */
  readonly states?: Set<number>;
  /**
   * Texts are drawn after all rectangles. Setting a font between rectangles would cost more than
   * the rectangles.
   */
  readonly texts: Text[];
}

/** Draws a row with its top at y. */
export function paintRow(brush: Brush, tiles: Tiles, row: RowData, y: number): void {
  const { scale, palette } = brush;
  const dense = new Scale(scale.range, Math.round(scale.width * palette.ratio));
  const lanes = Array.from({ length: lanesOf(row) }, (_, lane) => sharesOf(row, lane, dense.width));
  background(brush, row, y);
  tiles.each(row.row, dense, brush.end, (spans, clip) => {
    const known = { from: clip.from, to: Math.min(clip.to, spans.until) };
    if (row.kind === "thread") {
      const from = Math.max(known.from, row.start_ns);
      const to = Math.min(known.to, row.end_ns);
      lanes[0]?.add(NOT_WAITING, dense.x(from), dense.x(to));
    } else {
      free(brush, row, y, known);
      if (row.kind !== "processor") paintQueue(brush, row, y, spans, clip);
    }
    gather(row, spans, clip, dense, lanes);
    if (row.kind === "thread" && brush.states) addStates(brush.states, spans);
  });
  for (const [lane, shares] of lanes.entries()) if (shares) paintLane(brush, row, y, lane, shares);
  tiles.each(row.row, dense, brush.end, (spans, clip) => finish(brush, row, y, spans, clip));
}

/** Draws the texts of the rows if they fit. A text on a pattern gets a plain plate. */
export function paintTexts(brush: Brush, family: string): void {
  const { context } = brush;
  const texts = brush.texts.slice(0, MOST_TEXTS);
  context.textBaseline = "middle";
  for (const low of [false, true]) {
    context.font = `${low ? 10 : 11}px ${family}`;
    const character = context.measureText("abcdefghijklmnopqrstuvwxyz_0123456789").width / 37;
    for (const { x, y, height, room, text, paint } of texts) {
      if (height < LOW_PIXELS !== low) continue;
      const shown = fitted(text, room / character);
      if (!shown) continue;
      if (paint.pattern !== paint.fill) {
        const wide = Math.min(room, shown.length * character) + 4;
        context.fillStyle = paint.fill;
        context.fillRect(x - 2, y - height / 2 + 0.5, wide, height - 1);
      }
      context.fillStyle = paint.ink;
      context.fillText(shown, x, y + 0.5);
    }
  }
}

/** Returns the place to collect the shares of a lane. A queue has none: its height is its length. */
function sharesOf(row: RowData, lane: number, columns: number): Shares | null {
  if (hasQueue(row, lane)) return null;
  if (row.kind !== "thread") return new Shares(columns, OWNER_LAYERS);
  if (lane > 0) return new Shares(columns, [HELD, SHARED]);
  const [first, ...others] = WAITS;
  const order = [first ?? CONTENDED, WAKING, ...others, ...DOING, NOT_WAITING];
  return new Shares(columns, order, CONTENDED, NOT_WAITING);
}

function hasQueue(row: RowData, lane: number): boolean {
  return row.kind !== "thread" && row.kind !== "processor" && lane === 0;
}

/** The main lane of a row: it shows states, owners or turns at every time. */
function mainLane(row: RowData): number {
  return hasQueue(row, 0) ? 1 : 0;
}

/** Shows when the row existed, before its spans are known. */
function background(brush: Brush, row: RowData, y: number): void {
  band(brush, row, y, mainLane(row), row, brush.palette.unknown);
}

/** Draws free times: nobody has the lock, or no thread of the trace has the processor. */
function free(brush: Brush, row: RowData, y: number, known: Range): void {
  const from = Math.max(known.from, row.start_ns);
  const lived = { start_ns: from, end_ns: Math.min(known.to, row.end_ns) };
  if (lived.end_ns > from)
    band(brush, row, y, mainLane(row), lived, brush.palette.get("state-free"));
}

function band(
  { context, scale, palette }: Brush,
  row: RowData,
  y: number,
  lane: number,
  lived: { readonly start_ns: number; readonly end_ns: number },
  style: CanvasPattern | string,
): void {
  const from = snap(Math.max(0, scale.x(lived.start_ns)), palette.ratio);
  const to = snap(Math.min(scale.width, scale.x(lived.end_ns)), palette.ratio);
  if (to < 0 || from > scale.width) return;
  const box = laneBox(row, lane);
  context.fillStyle = style;
  context.fillRect(from, y + box.top, Math.max(1, to - from), box.height);
}

/** Adds spans to the shares of their lanes. */
function gather(
  row: RowData,
  spans: RowSpans,
  clip: Range,
  dense: Scale,
  lanes: readonly (Shares | null)[],
): void {
  const { table, begin, end } = spans;
  const layers = layersOf(row, spans);
  for (let at = begin; at < end; at++) {
    const shares = lanes[Math.min(table.lane[at] ?? 0, lanes.length - 1)];
    if (!shares) continue;
    const t = table.t_ns[at] ?? 0;
    const dur = table.dur_ns[at] ?? 0;
    const from = dense.x(Math.max(t, clip.from));
    const to = dense.x(Math.min(t + dur, clip.to));
    const layer = layers[at - begin] ?? 0;
    const wake = row.kind === "thread" ? (table.wake_ns[at] ?? 0) / Math.max(1, dur) : 0;
    if (!wake) {
      shares.add(layer, from, to, (table.busy_ns[at] ?? 0) / Math.max(1, dur));
    } else if ((table.flags[at] ?? 0) & FLAGS.woken) {
      const woken = dense.x(t + dur * (1 - wake));
      shares.add(layer, from, Math.min(to, woken));
      shares.add(WAKING, Math.max(from, woken), to);
    } else {
      // The object was free for a part of the time. The span does not say when.
      shares.add(layer, from, to, 1 - wake);
      shares.add(WAKING, from, to, wake);
    }
  }
}

function addStates(states: Set<number>, { table, begin, end }: RowSpans): void {
  for (let at = begin; at < end; at++) {
    states.add(table.state[at] ?? 0);
    if (table.wake_ns[at]) states.add(WAKING);
  }
}

/** Returns the layers of spans: states of threads, else the colours of owners. Neighbours differ. */
export function layersOf(row: RowData, { table, begin, end }: RowSpans): Uint8Array {
  const layers = new Uint8Array(end - begin);
  const last = new Map<number, { readonly owner: number; readonly colour: number }>();
  for (let at = begin; at < end; at++) {
    const state = table.state[at] ?? 0;
    if (row.kind === "thread") {
      layers[at - begin] = state;
      continue;
    }
    const shared = state === SHARED ? 1 : 0;
    if (isMerged(table, at)) {
      layers[at - begin] = MERGED_LAYER + shared;
      continue;
    }
    const owner = table.other[at] ?? 0;
    const lane = table.lane[at] ?? 0;
    const before = last.get(lane);
    let colour = colourOf(owner);
    if (before?.owner === owner) colour = before.colour;
    else if (before?.colour === colour) colour = (colour + 1) % OWNERS;
    last.set(lane, { owner, colour });
    layers[at - begin] = colour + shared * OWNERS;
  }
  return layers;
}

/** Returns the colour of a thread. Threads with nearby numbers get different colours. */
export function colourOf(owner: number): number {
  return Math.imul(owner, 0x9e3779b1) >>> 29;
}

function paintOfLayer(palette: Palette, row: RowData, layer: number): Paint {
  if (row.kind === "thread") return palette.state(layer);
  if (row.kind === "processor" && layer >= MERGED_LAYER) return palette.state(RUNNING);
  if (layer >= MERGED_LAYER) return palette.state(layer === MERGED_LAYER ? HELD : SHARED);
  return palette.owner(layer, layer >= OWNERS);
}

function paintLane(brush: Brush, row: RowData, y: number, lane: number, shares: Shares): void {
  const { context, palette } = brush;
  const { ratio } = palette;
  const box = laneBox(row, lane);
  const below = y + box.top + box.height;
  for (const { layer, x0, x1, bottom, top } of shares.blocks(Math.round(box.height * ratio))) {
    const paint = paintOfLayer(palette, row, layer);
    const wide = Math.min(x1 - x0, top - bottom) >= PATTERN_PIXELS * ratio;
    context.fillStyle = wide ? paint.pattern : paint.fill;
    context.fillRect(x0 / ratio, below - top / ratio, (x1 - x0) / ratio, (top - bottom) / ratio);
  }
}

/**
 * Draws the queue of an object. The height is the number of waiters, and the width is always enough
 * to be visible.
 */
function paintQueue(
  { context, scale, palette }: Brush,
  row: RowData,
  y: number,
  { table, begin, end }: RowSpans,
  clip: Range,
): void {
  const box = laneBox(row, 0);
  const most = Math.max(1, row.max_waiters);
  const right = snap(Math.min(scale.width, scale.x(clip.to)), palette.ratio);
  const left = snap(Math.max(0, scale.x(clip.from)), palette.ratio);
  for (let at = begin; at < end; at++) {
    if (table.lane[at] !== 0) continue;
    const t = table.t_ns[at] ?? 0;
    const x0 = Math.max(left, snap(scale.x(t), palette.ratio));
    const x1 = snap(Math.min(right, scale.x(t + (table.dur_ns[at] ?? 0))), palette.ratio);
    if (x0 >= right || x1 < left) continue;
    const depth = Math.min(most, table.depth[at] ?? 1);
    const tall = Math.max(2, Math.round((box.height * depth) / most));
    const paint = palette.state(table.state[at] ?? 0);
    context.fillStyle = x1 - x0 >= PATTERN_PIXELS ? paint.pattern : paint.fill;
    const wide = Math.max(1 / palette.ratio, x1 - x0);
    context.fillRect(x0, y + box.top + box.height - tall, wide, tall);
  }
}

/** Separates neighbours, and collects the texts of spans that are wide enough. */
function finish(brush: Brush, row: RowData, y: number, spans: RowSpans, clip: Range): void {
  const { table, begin, end } = spans;
  const layers = layersOf(row, spans);
  const { context, scale, palette } = brush;
  const left = scale.x(clip.from);
  const right = Math.min(scale.width, scale.x(clip.to));
  const pixel = 1 / palette.ratio;
  for (let at = begin; at < end; at++) {
    const t = table.t_ns[at] ?? 0;
    const first = scale.x(t);
    const last = scale.x(t + (table.dur_ns[at] ?? 0));
    const from = Math.max(0, left, first);
    if (Math.min(last, right) - from < APART_PIXELS) continue;
    const lane = table.lane[at] ?? 0;
    const queue = hasQueue(row, lane);
    const box = laneBox(row, lane);
    if (last <= right && !queue) {
      const wide = wasTaken(row, table, at) ? TAKEN_PIXELS : pixel;
      context.fillStyle = wide === pixel ? palette.get("bg") : palette.state(PREEMPTED).fill;
      context.fillRect(snap(last, palette.ratio) - wide, y + box.top, wide, box.height);
    }
    // A span from the tile before has its text there.
    if (first < left && left > 0) continue;
    const room = Math.min(scale.width, last) - from - 7;
    if (room < TEXT_PIXELS || box.height < LOWEST_PIXELS) continue;
    const state = table.state[at] ?? 0;
    const paint = queue
      ? palette.state(state)
      : paintOfLayer(palette, row, layers[at - begin] ?? 0);
    const text = textOf(brush, row, table, at, queue);
    const middle = y + box.top + box.height / 2;
    brush.texts.push({ x: from + 4, y: middle, height: box.height, room, text, paint });
  }
}

function textOf(brush: Brush, row: RowData, table: Spans, at: number, queue: boolean): string {
  if (queue) return `${table.depth[at] ?? 0} waiting`;
  const state = table.state[at] ?? 0;
  if (state === ASLEEP && !isMerged(table, at)) return CALLS[table.other[at] ?? 0] ?? "";
  if (row.kind === "thread" && DOING.includes(state)) return "";
  if (isMerged(table, at)) return `${table.count[at] ?? 1}×`;
  return drawnLabel(brush.nameOf(table.other[at] ?? 0));
}

/** Returns whether a thread lost its processor at the end of a turn. */
function wasTaken(row: RowData, table: Spans, at: number): boolean {
  return row.kind === "processor" && table.state[at] === PREEMPTED && !isMerged(table, at);
}

function isMerged(table: Spans, at: number): boolean {
  return ((table.flags[at] ?? 0) & FLAGS.merged) !== 0;
}

/**
 * Returns a text cut to the room, in characters. If there is room for only a letter or two, returns
 * nothing.
 */
export function fitted(text: string, room: number): string {
  if (text.length <= room) return text;
  return room < 4 ? "" : `${text.slice(0, Math.floor(room) - 1)}…`;
}

function snap(x: number, ratio: number): number {
  return Math.round(x * ratio) / ratio;
}
