// Two parts of a trace side by side: what only one of them has is there as well.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Contention } from "../src/base/protocol";
import { pairsOf, scaled } from "../src/panels/compare/pairs";

function answer(...objects: [name: string, wait_ns: number, waits: number][]): Contention {
  return {
    report: {
      objects: objects.map(([name, wait_ns, waits]) => {
        return {
          kind: "mutex",
          name,
          object: `0x${name}`,
          pid: 1,
          wait_ns,
          waits,
          hold_ns: 5,
          holds: 1,
        };
      }),
    },
    object_rows: objects.map((_, at) => at + 1),
    thread_rows: [],
  } as unknown as Contention;
}

test("what is in both is one line, and what is in one has nothing in the other", () => {
  const pairs = pairsOf(
    answer(["a", 10, 1], ["b", 20, 2]),
    answer(["b", 50, 3], ["c", 7, 1]),
    "object",
  );
  const figures = pairs.map(({ label, a, b }) => [label, a.wait_ns, b.wait_ns, a.waits, b.waits]);
  assert.deepEqual(figures, [
    ["mutex a", 10, 0, 1, 0],
    ["mutex b", 20, 50, 2, 3],
    ["mutex c", 0, 7, 0, 1],
  ]);
});

test("parts of different lengths are compared by the second", () => {
  assert.equal(scaled(50, 1e8, true), 500);
  assert.equal(scaled(50, 1e8, false), 50);
});
