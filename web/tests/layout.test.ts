// Rows have places: groups by process, folded ones, and what is at a height.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  dividedBy,
  HEADER,
  Layout,
  laneAt,
  laneBox,
  MOST_LANES,
  rowHeight,
} from "../src/model/layout";
import { row } from "./row";

test("one process needs no group", () => {
  const layout = new Layout([row({ row: 1 }), row({ row: 2 })]);
  assert.deepEqual(
    layout.items.map((item) => item.kind),
    ["row", "row"],
  );
  assert.equal(layout.height, 2 * rowHeight(row({})));
});

test("several processes are groups in the order of their first rows", () => {
  const rows = [
    row({ row: 1, process: 7 }),
    row({ row: 2, process: 3 }),
    row({ row: 3, process: 7 }),
  ];
  const layout = new Layout(rows);
  const seen = layout.items.map((item) => (item.kind === "row" ? item.data.row : -item.process));
  assert.deepEqual(seen, [-7, 1, 3, -3, 2]);
});

test("a folded process keeps its name only", () => {
  const rows = [row({ row: 1, process: 7 }), row({ row: 2, process: 3 })];
  const layout = new Layout(rows, { folded: ["7"] });
  assert.equal(layout.items.length, 3);
  assert.equal(layout.find(1), null);
  assert.equal(layout.find(2)?.y, 2 * HEADER);
});

test("a sole process cannot be folded away", () => {
  assert.equal(new Layout([row({ row: 1, process: 7 })], { folded: ["7"] }).items.length, 1);
});

test("what is at a height, and between two", () => {
  const rows = Array.from({ length: 100_000 }, (_, at) =>
    row({ row: at + 1, lanes: 1 + (at % 3) }),
  );
  const layout = new Layout(rows);
  for (const number of [1, 2, 50_000, 100_000]) {
    const item = layout.find(number);
    assert.ok(item);
    assert.equal(layout.at(item.y), item);
    assert.equal(layout.at(item.y + item.height - 1), item);
  }
  assert.equal(layout.at(layout.height), null);
  assert.equal(layout.at(-1), null);
  const seen = layout.between(1000, 1500);
  assert.ok(seen.length > 5 && seen.length < 40);
  assert.ok((seen[0]?.y ?? 0) <= 1000);
  assert.deepEqual(layout.between(-500, 0), []);
});

for (const data of [
  row({ lanes: 4 }),
  row({ by: "object", kind: "mutex", lanes: 2 }),
  row({ by: "object", kind: "rwlock", lanes: 5 }),
  row({ lanes: 50 }),
]) {
  test(`the lanes of a ${data.kind} with ${data.lanes} do not overlap and are found again`, () => {
    const lanes = Math.min(MOST_LANES, data.lanes);
    for (let lane = 0; lane < lanes; lane++) {
      const { top, height } = laneBox(data, lane);
      assert.ok(height > 0 && top + height <= rowHeight(data));
      assert.equal(laneAt(data, top + height / 2), lane);
    }
  });
}

test("of what one pane cannot fill the other has the rest", () => {
  assert.equal(dividedBy(900, 900, 1000, 0.6), 0.6);
  assert.equal(dividedBy(100, 900, 800, 0.6), 100 / 800);
  assert.equal(dividedBy(2000, 100, 1000, 0.6), 0.9);
  assert.equal(dividedBy(300, 100, 1000, 0.6), 0.3);
});

test("rows are shown alone, left out, and pinned above the others", () => {
  const rows = [1, 2, 3, 4].map((n) => row({ row: n }));
  const shown = (arrangement: object) =>
    new Layout(rows, arrangement).items.map((item) => item.kind === "row" && item.data.row);
  assert.deepEqual(shown({ hidden: [2] }), [1, 3, 4]);
  assert.deepEqual(shown({ only: [3, 1] }), [1, 3]);
  assert.deepEqual(shown({ pinned: [4, 2] }), [4, 2, 1, 3]);
  // What is pinned is shown whatever else is.
  assert.deepEqual(shown({ pinned: [4], only: [1], hidden: [1] }), [4]);
  assert.equal(new Layout(rows, { only: [3], pinned: [1] }).left, 2);
});

test("what is pinned stays on top of what is scrolled", () => {
  const rows = Array.from({ length: 100 }, (_, at) => row({ row: at + 1 }));
  const layout = new Layout(rows, { pinned: [50] });
  const high = rowHeight(row({}));
  const seen = layout.seen(10 * high, 5 * high, true);
  const places = seen.map(({ item, y }) => [item.kind === "row" && item.data.row, y / high]);
  assert.deepEqual(places, [
    [11, 1],
    [12, 2],
    [13, 3],
    [14, 4],
    [50, 0],
  ]);
  assert.equal(layout.seen(10 * high, 5 * high, false).length, 5);
});

test("rows are grouped by how their names begin, others stand alone", () => {
  const names = ["worker-1 (11)", "audit (5)", "worker-2 (12)", "m+0x28", "m+0x50"];
  const rows = names.map((label, at) => row({ row: at + 1, label }));
  const layout = new Layout(rows, { byName: true });
  const seen = layout.items.map((item) => (item.kind === "row" ? item.data.row : item.name));
  assert.deepEqual(seen, ["worker-", 1, 3, 2, "m", 4, 5]);
  const folded = new Layout(rows, { byName: true, folded: ["0/worker-"] });
  assert.equal(folded.find(1), null);
  assert.ok(folded.find(2));
});

test("rows that did not live in what is seen are left out", () => {
  const rows = [row({ row: 1, end_ns: 10 }), row({ row: 2, start_ns: 5, end_ns: 50 })];
  const layout = new Layout(rows, { alive: { from: 20, to: 30 } });
  assert.equal(layout.find(1), null);
  assert.ok(layout.find(2));
});
