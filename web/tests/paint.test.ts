// Texts in bars and marks of the ruler: as much as there is room for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fitted } from "../src/timeline/paint";
import { baseOf } from "../src/timeline/ruler";

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
