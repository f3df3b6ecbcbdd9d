// Tiles: what is at hand is drawn at once, what is missing asked for, and what nobody waits for given up.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Source } from "../src/base/api";
import { Scale } from "../src/model/scale";
import { levelOf, type Spans, Tiles, tilesIn } from "../src/model/tiles";

interface Question {
  rows: readonly number[];
  from_ns: number;
  to_ns: number;
  signal: AbortSignal;
  answer: (rows: readonly number[]) => void;
}

/** A server that answers when the test says so: one span for each row. */
function slowServer(until_ns?: number) {
  const questions: Question[] = [];
  const table = (
    _: string,
    asked: { rows: readonly number[]; from_ns: number; to_ns: number },
    signal: AbortSignal,
  ) =>
    new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new DOMException("gone", "AbortError")));
      const answer = (rows: readonly number[]) => resolve(spansOf(rows, until_ns));
      questions.push({ ...asked, signal, answer });
    });
  return { questions, source: { table } as unknown as Source };
}

function spansOf(rows: readonly number[], until_ns?: number): Spans {
  const zeros = rows.map(() => 0);
  return {
    length: rows.length,
    metadata: new Map(until_ns ? [["until_ns", String(until_ns)]] : []),
    row: Uint32Array.from(rows),
    lane: Uint16Array.from(zeros),
    state: Uint8Array.from(zeros),
    flags: Uint8Array.from(zeros),
    t_ns: Float64Array.from(zeros),
    dur_ns: Float64Array.from(rows.map(() => 10)),
    busy_ns: Float64Array.from(zeros),
    wake_ns: Float64Array.from(zeros),
    count: Uint32Array.from(zeros),
    other: Uint32Array.from(zeros),
    depth: Uint32Array.from(zeros),
    wait_id: Uint32Array.from(zeros),
  } as Spans;
}

const fail = (error: unknown) => assert.fail(String(error));
const END = 1 << 20;

function drawn(
  tiles: Tiles,
  row: number,
  scale: Scale,
): { from: number; to: number; count: number }[] {
  const out: { from: number; to: number; count: number }[] = [];
  tiles.each(row, scale, END, (spans, clip) =>
    out.push({ ...clip, count: spans.end - spans.begin }),
  );
  return out;
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000 && !condition(); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(condition());
}

Object.assign(globalThis, { window: globalThis });

test("a level has tiles between half as wide as asked for and as wide", () => {
  for (const nsPerPixel of [0.3, 1, 7, 1e6]) {
    const width = 2 ** levelOf(nsPerPixel) / nsPerPixel;
    assert.ok(width >= 511 && (width <= 1025 || levelOf(nsPerPixel) === 6), String(width));
  }
});

test("tiles of a range, those in the middle first", () => {
  assert.deepEqual(tilesIn({ from: 0, to: 3 * 1024 }, 10)[0], 1);
  assert.deepEqual([...tilesIn({ from: 10, to: 3000 }, 10)].sort(), [0, 1, 2]);
});

test("what is missing is asked for once, and kept", async () => {
  const { questions, source } = slowServer();
  const tiles = new Tiles("thread", source, fail);
  const scale = new Scale({ from: 0, to: 1024 }, 1024);
  tiles.want([1, 2], scale, END);
  tiles.want([1, 2], scale, END);
  await until(() => questions.length > 0);
  for (const one of questions) one.answer([1]);
  await until(() => drawn(tiles, 1, scale).length > 0);
  assert.equal(drawn(tiles, 1, scale)[0]?.count, 1);
  assert.equal(drawn(tiles, 2, scale)[0]?.count, 0, "a row without spans is known to have none");
  const asked = questions.length;
  tiles.want([1, 2], scale, END);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(questions.length, asked);
});

test("a view that is closer shows the coarser tile until its own come", async () => {
  const { questions, source } = slowServer();
  const tiles = new Tiles("thread", source, fail);
  const far = new Scale({ from: 0, to: 65536 }, 1024);
  tiles.want([1], far, END);
  await until(() => questions.length > 0);
  for (const one of questions) one.answer([1]);
  const near = new Scale({ from: 0, to: 512 }, 1024);
  await until(() => drawn(tiles, 1, near).length > 0);
  for (const clip of drawn(tiles, 1, near)) assert.ok(clip.to - clip.from <= 1024);
});

test("nobody waits for what is no longer seen", async () => {
  const { questions, source } = slowServer();
  const tiles = new Tiles("thread", source, fail);
  tiles.want([1], new Scale({ from: 0, to: 1024 }, 1024), END);
  await until(() => questions.length > 0);
  tiles.want([1], new Scale({ from: 500_000, to: 501_024 }, 1024), END);
  await until(() => questions.some((one) => one.from_ns > 400_000));
  assert.ok(questions[0]?.signal.aborted);
});

test("when the trace grew, what is at hand is drawn and asked for again", async () => {
  const { questions, source } = slowServer();
  const tiles = new Tiles("thread", source, fail);
  const scale = new Scale({ from: 0, to: 1024 }, 1024);
  tiles.want([1], scale, END);
  await until(() => questions.length > 0);
  for (const one of questions) one.answer([1]);
  await until(() => drawn(tiles, 1, scale).length > 0);
  tiles.outdate(true);
  assert.ok(drawn(tiles, 1, scale).length > 0);
  const asked = questions.length;
  tiles.want([1], scale, END);
  await until(() => questions.length > asked);
});

test("growth gives nothing up that is on its way, and asks only for what was not all there", async () => {
  const { questions, source } = slowServer(512);
  const tiles = new Tiles("thread", source, fail);
  const scale = new Scale({ from: 0, to: 1024 }, 1024);
  tiles.want([1], scale, END);
  await until(() => questions.length === 2);
  tiles.outdate(false);
  tiles.want([1], scale, END);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.ok(questions.every((one) => !one.signal.aborted));
  for (const one of questions) one.answer([1]);
  await until(() => drawn(tiles, 1, scale).length === 2);
  const asked = questions.length;
  tiles.want([1], scale, END);
  await until(() => questions.length > asked);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(
    questions.slice(asked).map((one) => one.from_ns),
    [512],
  );
});
