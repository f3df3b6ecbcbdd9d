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
} from "../src/timeline/model/layout";
import { row } from "./row";

test("one process needs no group", () => {
  const layout = new Layout([row({ row: 1 }), row({ row: 2 })], []);
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
  const layout = new Layout(rows, []);
  const seen = layout.items.map((item) => (item.kind === "row" ? item.data.row : -item.process));
  assert.deepEqual(seen, [-7, 1, 3, -3, 2]);
});

test("a folded process keeps its name only", () => {
  const rows = [row({ row: 1, process: 7 }), row({ row: 2, process: 3 })];
  const layout = new Layout(rows, [7]);
  assert.equal(layout.items.length, 3);
  assert.equal(layout.find(1), null);
  assert.equal(layout.find(2)?.y, 2 * HEADER);
});

test("a sole process cannot be folded away", () => {
  assert.equal(new Layout([row({ row: 1, process: 7 })], [7]).items.length, 1);
});

test("what is at a height, and between two", () => {
  const rows = Array.from({ length: 100_000 }, (_, at) =>
    row({ row: at + 1, lanes: 1 + (at % 3) }),
  );
  const layout = new Layout(rows, []);
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
