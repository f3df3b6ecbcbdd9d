// Spans in tiles: pieces of time as wide as a power of two, cached by row, fetched when they are visible.
import { isAbort, NotYet, type Source } from "../base/api";
import type { Columns } from "../base/columns";
import { FLAGS, type SpansColumns } from "../base/protocol";
import { Signal } from "../base/signal";
import type { PaneKind, Range } from "../base/state";
import type { Scale } from "./scale";

export type Spans = Columns<SpansColumns>;

/** The spans of a row in a tile: a part of a table, sorted by lane and time. */
export interface RowSpans {
  readonly table: Spans;
  readonly begin: number;
  readonly end: number;
  /** The version of the trace at the time of the fetch. */
  readonly version: number;
  /** Everything before this time was there. Later spans are not known. */
  readonly until: number;
  /** Whether a span had not ended. */
  readonly open: boolean;
}

interface Tile {
  readonly key: string;
  readonly range: Range;
  readonly rows: Map<number, RowSpans>;
}

/** The width in pixels that a tile is fetched for. It is drawn at half of this width to the full width. */
const TILE_PIXELS = 1024;
const MOST_TILES = 240;
const MOST_ROWS = 250;
const AT_ONCE = 2;
/** A moving view asks for tiles when it has rested this long, or at least this often. */
const REST_MS = 30;
const PATIENCE_MS = 150;

/** Returns the level of tiles for a scale. Tiles are 2**level ns wide. */
export function levelOf(nsPerPixel: number): number {
  return Math.max(6, Math.ceil(Math.log2(nsPerPixel * (TILE_PIXELS / 2))));
}

/** Returns the numbers of the tiles of a level in a range, from the middle outwards. */
export function tilesIn(range: Range, level: number): number[] {
  const width = 2 ** level;
  const first = Math.max(0, Math.floor(range.from / width));
  const last = Math.max(first, Math.ceil(range.to / width) - 1);
  const middle = (range.from + range.to) / 2 / width - 0.5;
  const out = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return out.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
}

export class Tiles {
  /** Fires when a wanted tile came. */
  readonly changed = new Signal();
  private tiles = new Map<string, Tile>();
  private asking = new Map<string, AbortController>();
  private wanted: { level: number; index: number; rows: number[] }[] = [];
  private timer: number | undefined;
  private restless = 0;
  private version = 0;
  /** Tiles of an older version than this are out of date. */
  private since = 0;

  constructor(
    readonly by: PaneKind,
    private readonly source: Source,
    private readonly failed: (error: unknown) => void,
  ) {}

  /**
   * The trace grew, or (all) the trace has changed. Old tiles are drawn until new tiles replace
   * them. Tiles that are on their way count as old.
   */
  outdate(all: boolean): void {
    this.version++;
    if (all) this.since = this.version;
  }

  /** Calls back with the best loaded spans of a row in this range, coarser or finer if needed. */
  each(row: number, scale: Scale, end: number, draw: (spans: RowSpans, clip: Range) => void): void {
    const level = levelOf(scale.nsPerPixel);
    const range = { from: Math.max(0, scale.range.from), to: Math.min(scale.range.to, end + 1) };
    if (range.from >= range.to) return;
    for (const index of tilesIn(range, level)) this.best(row, level, index, draw);
  }

  /** Asks for the missing tiles of these rows, after a short rest. */
  want(rows: readonly number[], scale: Scale, end: number): void {
    const level = levelOf(scale.nsPerPixel);
    const range = { from: Math.max(0, scale.range.from), to: Math.min(scale.range.to, end + 1) };
    this.wanted = [];
    if (range.from < range.to) {
      for (const index of tilesIn(range, level)) {
        const tile = this.tiles.get(keyOf(level, index));
        if (tile) this.touch(tile);
        const missing = rows.filter((row) => !this.holds(tile, row));
        if (missing.length) this.wanted.push({ level, index, rows: missing.slice(0, MOST_ROWS) });
      }
      // Tiles that are not loaded at all come first.
      const isHere = (one: { index: number }) => this.tiles.has(keyOf(level, one.index));
      this.wanted.sort((a, b) => Number(isHere(a)) - Number(isHere(b)));
    }
    const now = performance.now();
    if (!this.wanted.length) {
      this.restless = 0;
      clearTimeout(this.timer);
      return;
    }
    if (!this.restless) this.restless = now;
    clearTimeout(this.timer);
    const late = now - this.restless > PATIENCE_MS;
    this.timer = window.setTimeout(() => this.ask(), late ? 0 : REST_MS);
  }

  /** Growth does not change a tile that ends before the unfinished part of the trace. */
  private holds(tile: Tile | undefined, row: number): boolean {
    const spans = tile?.rows.get(row);
    if (!tile || !spans) return false;
    if (spans.version === this.version) return true;
    return spans.version >= this.since && spans.until >= tile.range.to && !spans.open;
  }

  private ask(): void {
    this.restless = 0;
    const places = new Set(this.wanted.map((one) => keyOf(one.level, one.index)));
    for (const [key, controller] of this.asking) {
      if (places.has(key.split(":")[0] ?? "")) continue;
      controller.abort();
      this.asking.delete(key);
    }
    for (const one of this.wanted) {
      if (this.asking.size >= AT_ONCE) return;
      const key = requestKey(one);
      if (!this.asking.has(key)) void this.fetch(key, one.level, one.index, one.rows);
    }
  }

  private async fetch(key: string, level: number, index: number, rows: number[]): Promise<void> {
    const controller = new AbortController();
    this.asking.set(key, controller);
    const range = { from: index * 2 ** level, to: (index + 1) * 2 ** level };
    const version = this.version;
    try {
      const question = { by: this.by, rows, from_ns: range.from, to_ns: range.to };
      const signal = controller.signal;
      const table = await this.source.table("spans", { ...question, width: TILE_PIXELS }, signal);
      this.keep(level, index, range, rows, table, version);
    } catch (error) {
      if (isAbort(error)) return;
      if (!(error instanceof NotYet)) this.failed(error);
      return;
    } finally {
      if (this.asking.get(key) === controller) this.asking.delete(key);
    }
    this.wanted = this.wanted.filter((one) => requestKey(one) !== key);
    this.ask();
    this.changed.emit();
  }

  private keep(
    level: number,
    index: number,
    range: Range,
    rows: number[],
    table: Spans,
    version: number,
  ): void {
    const key = keyOf(level, index);
    const tile = this.tiles.get(key) ?? { key, range, rows: new Map<number, RowSpans>() };
    const until = Number(table.metadata.get("until_ns") ?? Number.POSITIVE_INFINITY);
    const about = { table, version, until };
    for (const row of rows) tile.rows.set(row, { ...about, begin: 0, end: 0, open: false });
    for (let begin = 0; begin < table.length; ) {
      const row = table.row[begin] ?? 0;
      let end = begin;
      let flags = 0;
      for (; end < table.length && table.row[end] === row; end++) flags |= table.flags[end] ?? 0;
      tile.rows.set(row, { ...about, begin, end, open: (flags & FLAGS.open) !== 0 });
      begin = end;
    }
    this.touch(tile);
    for (const old of this.tiles.keys()) {
      if (this.tiles.size <= MOST_TILES) break;
      this.tiles.delete(old);
    }
  }

  /** A map keeps the order of insertion. So the tile that was used last goes to the end. */
  private touch(tile: Tile): void {
    this.tiles.delete(tile.key);
    this.tiles.set(tile.key, tile);
  }

  private best(
    row: number,
    level: number,
    index: number,
    draw: (spans: RowSpans, clip: Range) => void,
  ): void {
    const clip = { from: index * 2 ** level, to: (index + 1) * 2 ** level };
    const here = this.tiles.get(keyOf(level, index))?.rows.get(row);
    if (here) {
      draw(here, clip);
      return;
    }
    const finer = [2 * index, 2 * index + 1].map((half) => {
      return this.tiles.get(keyOf(level - 1, half))?.rows.get(row);
    });
    if (finer[0] && finer[1]) {
      const middle = (clip.from + clip.to) / 2;
      draw(finer[0], { from: clip.from, to: middle });
      draw(finer[1], { from: middle, to: clip.to });
      return;
    }
    for (let up = 1; up < 40; up++) {
      const coarser = this.tiles.get(keyOf(level + up, Math.floor(index / 2 ** up)));
      const spans = coarser?.rows.get(row);
      if (!spans) continue;
      draw(spans, clip);
      return;
    }
  }
}

function keyOf(level: number, index: number): string {
  return `${level}/${index}`;
}

function requestKey(one: { level: number; index: number; rows: number[] }): string {
  return `${keyOf(one.level, one.index)}:${one.rows.length}:${one.rows[0]}:${one.rows.at(-1)}`;
}
