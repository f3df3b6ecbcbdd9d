// Times and counts as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  count,
  duration,
  exact,
  instant,
  parsedDuration,
  plural,
  sentence,
} from "../src/base/units";

for (const [ns, text] of [
  [0, "0 ns"],
  [999, "999 ns"],
  [999.7, "1.00 µs"],
  [1234, "1.23 µs"],
  [99_960, "100 µs"],
  [1_250_000, "1.25 ms"],
  [61e9, "1 min 1 s"],
  [7_260e9, "2 h 1 min"],
  [Number.NaN, "–"],
] as const) {
  test(`duration of ${ns} ns`, () => assert.equal(duration(ns), text));
}

test("an instant has the digits that the step of the ruler needs", () => {
  assert.equal(instant(1_500_000, 500_000), "1.5 ms");
  assert.equal(instant(2_000_000_000, 1_000_000_000), "2 s");
  assert.equal(instant(1_000_000, 2_000_000), "1 ms");
  assert.equal(instant(500_000_000, 500_000_000, 2_500_000_000), "0.5 s");
  assert.equal(instant(1_029_563_000, 1000), "1.029 563 s");
});

test("microseconds have one name on the page", () => {
  assert.equal(sentence("waited 12 us for 3 users"), "waited 12 µs for 3 users");
});

test("exact times are grouped", () => assert.equal(exact(1_000_000_023), "1.000 000 023 s"));
test("counts are grouped", () => assert.equal(count(1234567), "1\u202f234\u202f567"));
test("one is not many", () => assert.equal(plural(1, "event"), "1 event"));

test("lengths are read with their units, and not without", () => {
  const read = ["1 ms", "20µs", "1.5 us", ".5s", "7 ns", "5", "ms", "-1 ms", "1e3 ns", "1 h"];
  const ns = [1e6, 20_000, 1500, 5e8, 7, null, null, null, null, null];
  assert.deepEqual(read.map(parsedDuration), ns);
});
