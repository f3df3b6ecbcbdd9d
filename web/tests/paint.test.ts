// What of a row is painted as known; texts in bars and marks of the ruler: as much as there is room for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FLAGS, STATES } from "../src/base/protocol";
import type { Range } from "../src/base/state";
import { Scale } from "../src/model/scale";
import type { RowSpans, Tiles } from "../src/model/tiles";
import { type Brush, fitted, paintRow } from "../src/timeline/drawing/paint";
import { WAKING } from "../src/timeline/drawing/palette";
import { baseOf } from "../src/timeline/drawing/ruler";
import { row } from "./row";

test("a text that fits is left alone", () => assert.equal(fitted("cache", 5), "cache"));
test("one that does not is cut, and says so", () => assert.equal(fitted("database", 5.9), "data…"));
test("a letter or two are worse than none", () => assert.equal(fitted("database", 3.5), ""));

test("times that are short enough are written whole", () => {
  assert.equal(baseOf({ from: 0, to: 1e9 }, 1e8), 0);
});

test("close marks are counted from a time before all of them", () => {
  const range = { from: 1_234_567_890, to: 1_234_568_890 };
  const base = baseOf(range, 100);
  assert.ok(base <= range.from && base > range.from - 1000);
});

test("they are counted from a whole time of the next unit", () => {
  const from = 53_980_123;
  assert.equal(baseOf({ from, to: from + 1e5 }, 20_000), 53_000_000);
  assert.equal(baseOf({ from, to: from + 10_000 }, 1000), 53_000_000);
  assert.equal(baseOf({ from, to: from + 1000 }, 100), 53_980_000);
});

/** Draws a row of which one tile is here, and returns the styles from left to right, a pixel each. */
function painted(kind: "thread" | "mutex", until: number, wait: object = {}): string[] {
  const columns = Array.from({ length: 1000 }, () => "");
  const context = {
    fillStyle: "",
    fillRect(x: number, _: number, width: number) {
      columns.fill(this.fillStyle, Math.round(x), Math.round(x + width));
    },
  };
  const state = (layer: number) => {
    const fill = layer === WAKING ? "waking" : STATES[layer];
    return { fill, pattern: fill, ink: "" };
  };
  const palette = { ratio: 1, unknown: "unknown", state, get: (name: string) => name };
  const table = Object.fromEntries(Object.entries(wait).map(([name, value]) => [name, [value]]));
  const end = Object.keys(wait).length ? 1 : 0;
  const spans = { table, begin: 0, end, version: 0, until, open: false };
  const tiles = {
    each: (_: number, __: Scale, ___: number, draw: (spans: RowSpans, clip: Range) => void) =>
      draw(spans as unknown as RowSpans, { from: 0, to: 1000 }),
  };
  const scale = new Scale({ from: 0, to: 1000 }, 1000);
  const brush = { context, scale, palette, end: 1000, nameOf: String, texts: [] };
  paintRow(brush as unknown as Brush, tiles as unknown as Tiles, row({ kind }), 0);
  return columns;
}

test("behind what was there when the tile was asked for a thread is not drawn as not waiting", () => {
  const columns = painted("thread", 600);
  assert.deepEqual(new Set(columns.slice(0, 600)), new Set([STATES[0]]));
  assert.deepEqual(new Set(columns.slice(600)), new Set(["unknown"]));
});

test("nor is a lock drawn as free there", () => {
  const columns = painted("mutex", 600);
  assert.deepEqual(new Set(columns.slice(0, 600)), new Set(["state-free"]));
  assert.deepEqual(new Set(columns.slice(600)), new Set(["unknown"]));
});

const CONTENDED = STATES.indexOf("contended");
const WAIT = {
  lane: 0,
  other: 1,
  state: CONTENDED,
  t_ns: 100,
  dur_ns: 800,
  busy_ns: 800,
  wake_ns: 600,
};

test("the end of a wait for what was free by then is drawn as such", () => {
  const columns = painted("thread", 1000, { ...WAIT, flags: FLAGS.woken });
  assert.deepEqual(new Set(columns.slice(100, 300)), new Set(["contended"]));
  assert.deepEqual(new Set(columns.slice(300, 899)), new Set(["waking"]));
});

test("where it is not known when it was free, both parts are drawn one above the other", () => {
  const columns = painted("thread", 1000, { ...WAIT, flags: 0 });
  assert.deepEqual(new Set(columns.slice(100, 899)), new Set(["waking"]));
});
