// The layers of the lock-order graph: arrows go to the right, cycles end, nothing lies on another.
import assert from "node:assert/strict";
import { test } from "node:test";
import { layout } from "../src/panels/order/order_layout";

test("arrows lead to the right", () => {
  const links = [
    { from: 0, to: 1 },
    { from: 1, to: 2 },
    { from: 0, to: 2 },
    { from: 3, to: 2 },
  ];
  const { layer } = layout(4, links);
  for (const { from, to } of links) assert.ok((layer[from] ?? 0) < (layer[to] ?? 0));
});

test("a cycle is laid out all the same", () => {
  const { layer, sizes } = layout(3, [
    { from: 0, to: 1 },
    { from: 1, to: 2 },
    { from: 2, to: 0 },
    { from: 1, to: 1 },
  ]);
  assert.deepEqual([...layer].sort(), [0, 1, 2]);
  assert.deepEqual(sizes, [1, 1, 1]);
});

test("no two nodes have one place", () => {
  const links = Array.from({ length: 60 }, (_, n) => ({ from: n % 7, to: (n * 5) % 20 }));
  const { layer, place } = layout(20, links);
  const places = layer.map((column, node) => `${column} ${place[node]}`);
  assert.equal(new Set(places).size, 20);
});

test("a chain of thousands", () => {
  const links = Array.from({ length: 4999 }, (_, n) => ({ from: n, to: n + 1 }));
  const { layer } = layout(5000, links);
  assert.equal(layer[4999], 4999);
});

test("nothing at all", () => {
  assert.deepEqual(layout(0, []).layer, []);
});
