// Spans are found under the pointer and one after another, whatever order they came in.
import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbour, spanAt, sums } from "../src/model/find";
import { Scale } from "../src/model/scale";
import type { RowSpans, Spans, Tiles } from "../src/model/tiles";

/** Lane, state, time and length of each span; not sorted. */
function tiles(...spans: [lane: number, state: number, t: number, length: number][]): Tiles {
  const column = (at: number) => spans.map((span) => span[at] as number);
  const ones = spans.map(() => 1);
  const table = {
    length: spans.length,
    metadata: new Map(),
    row: Uint32Array.from(ones),
    lane: Uint16Array.from(column(0)),
    state: Uint8Array.from(column(1)),
    flags: Uint8Array.from(spans.map(() => 0)),
    t_ns: Float64Array.from(column(2)),
    dur_ns: Float64Array.from(column(3)),
    busy_ns: Float64Array.from(column(3)),
    wake_ns: Float64Array.from(column(3), () => 0),
    count: Uint32Array.from(ones),
    other: Uint32Array.from(ones),
    depth: Uint32Array.from(ones),
    wait_id: Uint32Array.from(ones),
  } as Spans;
  const each: Tiles["each"] = (_row, _scale, _end, draw) => {
    const spansOfRow: RowSpans = {
      table,
      begin: 0,
      end: spans.length,
      until: Number.POSITIVE_INFINITY,
      open: false,
      version: 0,
    };
    draw(spansOfRow, { from: 0, to: 1000 });
  };
  return { each } as Tiles;
}

const scale = new Scale({ from: 0, to: 1000 }, 100);
const END = 1000;

test("the span under the pointer, of this lane only", () => {
  const some = tiles([1, 6, 0, 900], [0, 1, 500, 100], [0, 2, 100, 50]);
  assert.equal(spanAt(some, 1, 0, scale, END, 550, 0)?.t_ns, 500);
  assert.equal(spanAt(some, 1, 1, scale, END, 550, 0)?.t_ns, 0);
  assert.equal(spanAt(some, 1, 0, scale, END, 400, 0), null);
});

test("the nearest span, if it is near", () => {
  const some = tiles([0, 1, 500, 10], [0, 1, 530, 10]);
  assert.equal(spanAt(some, 1, 0, scale, END, 525, 20)?.t_ns, 530);
  assert.equal(spanAt(some, 1, 0, scale, END, 560, 10), null);
});

test("of several under the pointer the shortest, which would be hidden else", () => {
  const some = tiles([0, 2, 0, 1000], [0, 1, 400, 20], [0, 2, 300, 500]);
  assert.equal(spanAt(some, 1, 0, scale, END, 410, 0)?.t_ns, 400);
});

test("one after another, and back", () => {
  const some = tiles([0, 1, 500, 10], [0, 1, 100, 10], [0, 2, 300, 10], [1, 6, 200, 10]);
  assert.equal(neighbour(some, 1, 0, scale, END, 100, 1)?.t_ns, 300);
  assert.equal(neighbour(some, 1, 0, scale, END, 300, -1)?.t_ns, 100);
  assert.equal(neighbour(some, 1, 0, scale, END, 500, 1), null);
});

test("time in each state, as far as it is in view", () => {
  const some = tiles([0, 1, 900, 500], [0, 2, 0, 100], [1, 6, 0, 1000]);
  assert.deepEqual(
    [...sums(some, 1, scale, END)].sort(([a], [b]) => a - b),
    [
      [1, 100],
      [2, 100],
    ],
  );
});
