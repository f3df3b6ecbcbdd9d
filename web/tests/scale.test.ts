// Time and pixels: what is moved and zoomed stays in the trace, and times stay where they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Scale, SHORTEST_NS, tickStep, ticks, withAir, within, zoomed } from "../src/model/scale";

const whole = { from: 0, to: 1_000_000 };

test("pixels and times are inverse", () => {
  const scale = new Scale({ from: 100, to: 300 }, 50);
  assert.equal(scale.x(100), 0);
  assert.equal(scale.x(300), 50);
  assert.equal(scale.ns(scale.x(177)), 177);
});

test("a zoom leaves the time under the pointer where it is", () => {
  const before = new Scale({ from: 0, to: 1000 }, 100);
  const after = new Scale(zoomed(before.range, 0.5, 250), 100);
  assert.equal(after.x(250), before.x(250));
  assert.equal(after.range.to - after.range.from, 500);
});

test("nobody gets lost beyond the ends", () => {
  for (const range of [
    { from: 5_000_000, to: 5_000_100 },
    { from: -9e9, to: -8e9 },
    { from: -1e12, to: 1e12 },
  ]) {
    const { from, to } = within(range, whole);
    assert.ok(from < whole.to && to > whole.from);
    assert.ok(to - from <= 1.2e6);
  }
});

test("what lies inside is left as it is", () => {
  assert.deepEqual(within({ from: 10, to: 2000 }, whole), { from: 10, to: 2000 });
});

test("nothing is shorter than what time stamps can tell", () => {
  const { from, to } = within({ from: 500, to: 500 }, whole);
  assert.equal(to - from, SHORTEST_NS);
  assert.ok(from < 500 && to > 500);
});

test("a view that is no number shows the start", () => {
  assert.ok(within({ from: Number.NaN, to: Number.NaN }, whole).from <= 0);
});

test("a moment is shown with some air", () => {
  const { from, to } = withAir({ from: 70, to: 70 });
  assert.ok(from < 70 && to > 70);
});

for (const [nsPerPixel, step] of [
  [0.001, 1],
  [1, 100],
  [1.01, 200],
  [2.5, 500],
  [1e7, 1e9],
] as const) {
  test(`marks of a ruler at ${nsPerPixel} ns a pixel`, () => {
    assert.equal(tickStep(nsPerPixel, 100), step);
  });
}

test("marks are multiples of the step, inside the range", () => {
  assert.deepEqual(ticks({ from: 95, to: 310 }, 100), [100, 200, 300]);
});
