// Rows of processors: one lane, a colour for each thread, how a turn ended, and where a click leads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FLAGS, STATES } from "../src/base/protocol";
import type { Range } from "../src/base/state";
import { exact } from "../src/base/units";
import { describeRow, describeSpan } from "../src/model/describe";
import { neighbour, type Span } from "../src/model/find";
import { laneAt, laneBox, lanesOf, rowHeight } from "../src/model/layout";
import { Scale } from "../src/model/scale";
import type { RowSpans, Tiles } from "../src/model/tiles";
import { type Brush, colourOf, layersOf, paintRow } from "../src/timeline/drawing/paint";
import { selectionOf } from "../src/timeline/input/actions";
import { row } from "./row";

const RUNNING = STATES.indexOf("running");
const PREEMPTED = STATES.indexOf("preempted");
const SCALE = new Scale({ from: 0, to: 1000 }, 1000);
const processor = row({ by: "processor", kind: "processor", label: "processor 0", row: 1 });

function turn(t_ns: number, dur_ns: number, other: number, change: Partial<Span> = {}): Span {
  const place = { row: 1, lane: 0, t_ns, dur_ns, busy_ns: dur_ns, wake_ns: 0, other };
  return { ...place, state: RUNNING, flags: 0, count: 1, depth: 0, wait_id: 0, ...change };
}

/** Tiles that have these turns. */
function tilesOf(turns: readonly Span[]): Tiles {
  const column = (name: keyof Span) => turns.map((one) => one[name]);
  const names = Object.keys(turn(0, 0, 0)) as (keyof Span)[];
  const table = Object.fromEntries(names.map((name) => [name, column(name)]));
  const spans = { table, begin: 0, end: turns.length, version: 0, until: 1000, open: false };
  return {
    by: "processor",
    each: (_: number, __: Scale, ___: number, draw: (spans: RowSpans, clip: Range) => void) =>
      draw(spans as unknown as RowSpans, { from: 0, to: 1000 }),
  } as unknown as Tiles;
}

/** Draws turns, and returns the styles from left to right, a pixel each, and the texts. */
function painted(turns: readonly Span[]): { columns: string[]; texts: string[] } {
  const columns = Array.from({ length: 1000 }, () => "");
  const context = {
    fillStyle: "",
    fillRect(x: number, _: number, width: number) {
      columns.fill(this.fillStyle, Math.round(x), Math.round(x + width));
    },
  };
  const paint = (fill: string) => ({ fill, pattern: fill, ink: "" });
  const palette = {
    ratio: 1,
    unknown: "unknown",
    state: (code: number) => paint(STATES[code] ?? ""),
    owner: (thread: number) => paint(`thread ${thread}`),
    get: (name: string) => name,
  };
  const nameOf = (thread: number) => `name of ${thread}`;
  const brush = { context, scale: SCALE, palette, end: 1000, nameOf, texts: [] as unknown[] };
  paintRow(brush as unknown as Brush, tilesOf(turns), processor, 0);
  return { columns, texts: brush.texts.map((one) => (one as { text: string }).text) };
}

test("turns have the colours and names of their threads, and nobody's time is empty", () => {
  const { columns, texts } = painted([
    turn(0, 400, 1, { state: PREEMPTED }),
    turn(400, 200, 2),
    turn(800, 100, 3, { flags: FLAGS.merged, count: 40 }),
  ]);
  const at = (from: number, to: number) => new Set(columns.slice(from, to));
  assert.deepEqual(at(0, 397), new Set([`thread ${colourOf(1)}`]));
  assert.deepEqual(at(397, 400), new Set(["preempted"]));
  assert.deepEqual(at(400, 599), new Set([`thread ${colourOf(2)}`]));
  assert.deepEqual(at(600, 800), new Set(["state-free"]));
  assert.deepEqual(at(800, 899), new Set(["running"]));
  assert.deepEqual(at(900, 1000), new Set(["state-free"]));
  assert.deepEqual(texts, ["name of 1", "name of 2", "40×"]);
});

test("a processor has one lane, which is found again", () => {
  assert.equal(lanesOf(processor), 1);
  const { top, height } = laneBox(processor, 0);
  assert.ok(top + height <= rowHeight(processor));
  assert.equal(laneAt(processor, top + height / 2), 0);
});

test("a turn says whose, from when to when, how long, and how it ended", () => {
  const about = (change: Partial<Span>) => describeSpan(processor, turn(10, 30, 1, change), "main");
  const given = about({});
  assert.equal(given.title, "main ran on processor 0");
  assert.ok(given.facts.includes(`from ${exact(10)} to ${exact(40)}`));
  assert.ok(given.facts.includes("gave the processor up"));
  assert.match(about({ state: PREEMPTED }).facts.join(), /lost the processor/);
  assert.match(about({ flags: FLAGS.open }).facts.join(), /not known/);
  const merged = about({ flags: FLAGS.merged, count: 7, busy_ns: 15 });
  assert.equal(merged.title, "processor 0: 7 turns of threads");
  assert.match(merged.facts.join(), /50/);
});

test("its row says how many turns there were, and for how long", () => {
  const { facts } = describeRow({ ...processor, holds: 3, hold_ns: 2_000_000 });
  assert.equal(facts.length, 1);
  assert.match(facts[0] ?? "", /^3 turns of threads: 2/);
});

test("a click on a turn leads to its thread; several together lead nowhere", () => {
  assert.deepEqual(selectionOf("processor", turn(0, 10, 5)), { kind: "row", by: "thread", row: 5 });
  assert.equal(selectionOf("processor", turn(0, 10, 5, { flags: FLAGS.merged })), null);
});

test("the keyboard goes from turn to turn", () => {
  const tiles = tilesOf([turn(0, 100, 1), turn(300, 100, 2), turn(600, 100, 1)]);
  assert.equal(neighbour(tiles, 1, 0, SCALE, 1000, 0, 1)?.t_ns, 300);
  assert.equal(neighbour(tiles, 1, 0, SCALE, 1000, 600, -1)?.t_ns, 300);
});

test("neighbours in a row differ, whatever share of the threads uses the lock", () => {
  for (const step of [1, 2, 7, 8, 13, 16, 64, 1000]) {
    const owners = Array.from({ length: 60 }, (_, n) => turn(10 * n, 10, 1 + n * step));
    tilesOf(owners).each(1, SCALE, 1000, (spans) => {
      const layers = layersOf(processor, spans);
      for (let n = 1; n < layers.length; n++) assert.notEqual(layers[n], layers[n - 1]);
      assert.ok(new Set(layers).size > 2);
    });
  }
});
