// Draws rows: states, nested holds, owners and queues, as many rectangles as there are pixels for.
import { FLAGS, STATES } from "../protocol";
import type { Range } from "../state";
import { laneBox } from "./layout";
import type { Paint, Palette } from "./palette";
import type { RowData } from "./rows";
import type { Scale } from "./scale";
import type { RowSpans, Spans, Tiles } from "./tiles";

const RUNNING = 0;
const CONTENDED = STATES.indexOf("contended");
const SHARED = STATES.indexOf("shared");
/** A pattern is not seen in less, and text not read. */
const PATTERN_PIXELS = 5;
const TEXT_PIXELS = 26;
/** Low lanes have smaller letters, and very low ones none. */
const LOW_PIXELS = 14;
const LOWEST_PIXELS = 10;
const MOST_TEXTS = 1500;

interface Text {
  readonly x: number;
  /** Its middle. */
  readonly y: number;
  readonly height: number;
  readonly room: number;
  readonly text: string;
  readonly paint: Paint;
}

/** What a row is drawn with. */
export interface Brush {
  readonly context: CanvasRenderingContext2D;
  readonly scale: Scale;
  readonly palette: Palette;
  /** Where the trace ends, as of now. */
  readonly end: number;
  /** Names of rows of the other kind: what a thread waits for, who has a lock. */
  readonly nameOf: (row: number) => string;
  /** Texts are drawn when all rectangles are: setting a font between them would cost more than they. */
  readonly texts: Text[];
}

/** Draws a row with its top at y. */
export function paintRow(brush: Brush, tiles: Tiles, row: RowData, y: number): void {
  const thread = row.kind === "thread";
  background(brush, row, y, thread);
  tiles.each(row.row, brush.scale, brush.end, (spans, clip) => {
    if (thread) base(brush, row, y, clip);
    const passes = thread ? [false, true] : [false];
    for (const contended of passes) paintSpans(brush, row, y, spans, clip, contended);
  });
}

/** Draws the texts that the rows left, as far as they fit; on a pattern they stand on a plain plate. */
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

/** Shows when the row lived, before anything is known of what it did. */
function background(brush: Brush, row: RowData, y: number, thread: boolean): void {
  const { context, scale, palette } = brush;
  const from = Math.max(0, scale.x(row.start_ns));
  const to = Math.min(scale.width, scale.x(row.end_ns));
  if (to <= from) return;
  const box = laneBox(row, thread ? 0 : 1);
  context.fillStyle = palette.get("state-free");
  context.fillRect(from, y + box.top, Math.max(1, to - from), box.height);
}

/** A thread runs wherever nothing keeps it. */
function base(brush: Brush, row: RowData, y: number, clip: Range): void {
  const { context, scale, palette } = brush;
  const box = laneBox(row, 0);
  const { ratio } = palette;
  const from = snap(Math.max(0, scale.x(Math.max(clip.from, row.start_ns))), ratio);
  const to = snap(Math.min(scale.width, scale.x(Math.min(clip.to, row.end_ns))), ratio);
  if (to <= from) return;
  context.fillStyle = palette.state(RUNNING).fill;
  context.fillRect(from, y + box.top, to - from, box.height);
}

function paintSpans(
  brush: Brush,
  row: RowData,
  y: number,
  spans: RowSpans,
  clip: Range,
  contended: boolean,
): void {
  const { context, scale, palette } = brush;
  const { table, begin, end } = spans;
  const thread = row.kind === "thread";
  const pixel = 1 / palette.ratio;
  const left = snap(Math.max(0, scale.x(clip.from)), palette.ratio);
  const right = snap(Math.min(scale.width, scale.x(clip.to)), palette.ratio);
  const run = new Run(context);
  let lane = -1;
  let state = -1;
  let box = laneBox(row, 0);
  let drawn = -1;
  let before = 0;
  for (let at = begin; at < end; at++) {
    const t = table.t_ns[at] ?? 0;
    // Spans come in runs that are sorted by time; a new run starts at the left again.
    if (table.lane[at] !== lane || table.state[at] !== state || t < before) {
      lane = table.lane[at] ?? 0;
      state = table.state[at] ?? 0;
      box = laneBox(row, lane);
      drawn = -1;
    }
    before = t;
    if (thread && (lane === 0 && state === CONTENDED) !== contended) continue;
    const first = scale.x(t);
    const last = scale.x(t + (table.dur_ns[at] ?? 0));
    if (last < left || first > right) continue;
    const x0 = Math.max(snap(first, palette.ratio), left, drawn);
    const x1 = Math.max(Math.min(snap(last, palette.ratio), right), x0 + pixel);
    if (x0 >= right || last <= drawn) continue;
    drawn = x1;
    const paint = paintOf(palette, row, table, at, lane, state);
    const wide = x1 - x0 >= PATTERN_PIXELS;
    const height = heightOf(row, table, at, lane, box.height);
    const style = wide ? paint.pattern : paint.fill;
    run.fill(style, x0, y + box.top + box.height - height, x1, height);
    if (!wide) continue;
    if (x1 - x0 >= 12 && last <= right && (thread || lane > 0)) {
      // Ends of neighbours of the same colour are told apart.
      run.fill(palette.get("bg"), x1 - pixel, y + box.top, x1, box.height);
    }
    // What goes on from the tile before has its text there.
    if (first < left && left > 0) continue;
    const from = Math.max(0, first);
    const room = Math.min(scale.width, last) - from - 7;
    if (room < TEXT_PIXELS || height < LOWEST_PIXELS) continue;
    const text = textOf(brush, row, table, at, lane);
    const middle = y + box.top + box.height / 2;
    brush.texts.push({ x: from + 4, y: middle, height: box.height, room, text, paint });
  }
  run.end();
}

/** Rectangles that continue one another are filled as one: most of what is dense is of few heights. */
class Run {
  private style: CanvasPattern | string = "";
  private filled: CanvasPattern | string = "";
  private x0 = 0;
  private x1 = 0;
  private y = 0;
  private height = 0;

  constructor(private readonly context: CanvasRenderingContext2D) {}

  fill(style: CanvasPattern | string, x0: number, y: number, x1: number, height: number): void {
    const same = style === this.style && y === this.y && height === this.height;
    if (same && x0 <= this.x1 && x0 >= this.x0) {
      this.x1 = Math.max(this.x1, x1);
      return;
    }
    this.end();
    this.style = style;
    this.x0 = x0;
    this.x1 = x1;
    this.y = y;
    this.height = height;
  }

  end(): void {
    if (this.x1 <= this.x0) return;
    if (this.filled !== this.style) {
      this.filled = this.style;
      this.context.fillStyle = this.style;
    }
    this.context.fillRect(this.x0, this.y, this.x1 - this.x0, this.height);
    this.x1 = this.x0;
  }
}

function paintOf(
  palette: Palette,
  row: RowData,
  table: Spans,
  at: number,
  lane: number,
  state: number,
): Paint {
  const merged = ((table.flags[at] ?? 0) & FLAGS.merged) !== 0;
  if (row.kind === "thread" || lane === 0 || merged) return palette.state(state);
  return palette.owner(table.other[at] ?? 0, state === SHARED);
}

/** What was drawn as one is as high as the share of its time that is taken; a queue as it is long. */
function heightOf(row: RowData, table: Spans, at: number, lane: number, full: number): number {
  if (row.kind !== "thread" && lane === 0) {
    const most = Math.max(1, row.max_waiters);
    return Math.max(2, Math.round((full * Math.min(most, table.depth[at] ?? 1)) / most));
  }
  if (((table.flags[at] ?? 0) & FLAGS.merged) === 0) return full;
  const share = (table.busy_ns[at] ?? 0) / Math.max(1, table.dur_ns[at] ?? 1);
  return Math.max(Math.min(4, full), Math.round(full * Math.min(1, share)));
}

function textOf(brush: Brush, row: RowData, table: Spans, at: number, lane: number): string {
  const count = table.count[at] ?? 1;
  const merged = ((table.flags[at] ?? 0) & FLAGS.merged) !== 0;
  if (row.kind !== "thread" && lane === 0) {
    const depth = table.depth[at] ?? 0;
    return `${depth} waiting`;
  }
  if (merged) return `${count}×`;
  return brush.nameOf(table.other[at] ?? 0);
}

/** Returns as much of a text as there is room for, in characters; nothing rather than a letter or two. */
export function fitted(text: string, room: number): string {
  if (text.length <= room) return text;
  return room < 4 ? "" : `${text.slice(0, Math.floor(room) - 1)}…`;
}

function snap(x: number, ratio: number): number {
  return Math.round(x * ratio) / ratio;
}
