// Texts out of a trace: what cannot be seen is written out, and no name turns what follows it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnLabel, nameAndRest, plain } from "../src/base/text";

test("controls and overrides are written out, all else is left alone", () => {
  assert.equal(plain("a\u202eb\x1b[1m\x07 µs ×2 — ערב"), "a\\u202eb\\u001b[1m\\u0007 µs ×2 — ערב");
  assert.equal(plain("two\nlines"), "two\nlines");
});

test("a label has a name, and what stands behind it", () => {
  assert.deepEqual(nameAndRest("work (er) (12)"), ["work (er)", " (12)"]);
  assert.deepEqual(nameAndRest("thread 12"), ["thread 12", ""]);
});

test("a name read from the right is drawn apart from the thread's id", () => {
  assert.equal(drawnLabel("ערב (8896)"), "\u2068ערב\u2069 (8896)");
  assert.equal(drawnLabel("worker (8896)"), "worker (8896)");
});
