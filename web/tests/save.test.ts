// Tables as CSV: what spreadsheets would take for something else is quoted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf } from "../src/base/save";

test("fields with commas, quotes and breaks are quoted", () => {
  const rows = [
    ["label", "wait_ns"],
    ["f(a, b)", 12],
    ['say "hi"', 0],
    ["two\nlines", 1.5],
  ];
  const lines = ["label,wait_ns", '"f(a, b)",12', '"say ""hi""",0', '"two\nlines",1.5', ""];
  assert.equal(csvOf(rows), lines.join("\r\n"));
});
