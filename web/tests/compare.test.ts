// Two parts of a trace side by side: what only one of them has is there as well.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Contention, Diff, DiffMetric } from "../src/base/protocol";
import { pairsOf, pairsOfRuns, scaled } from "../src/panels/compare/pairs";

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
  const sums = { wait_ns: 50, waits: 2, hold_ns: 0, holds: 1 };
  assert.deepEqual(scaled(sums, 1e8), { wait_ns: 500, waits: 20, hold_ns: 0, holds: 10 });
});

test("two runs have their figures side by side, by the names that both have", () => {
  const metric = (before: number, after: number) => ({ before, after }) as DiffMetric;
  const rows = [
    {
      site: "f at f.c:3",
      kind: "mutex",
      metrics: { wait_ns: metric(10, 30), waits: metric(1, 2) },
    },
    { name: "hot", kind: "mutex", metrics: { hold_ns: metric(0, 7) } },
  ];
  const pairs = pairsOfRuns({ rows } as unknown as Diff);
  const figures = pairs.map(({ label, a, b }) => [label, a.wait_ns, b.wait_ns, a.waits, b.hold_ns]);
  assert.deepEqual(figures, [
    ["f at f.c:3", 10, 30, 1, 0],
    ["hot", 0, 0, 0, 7],
  ]);
});
