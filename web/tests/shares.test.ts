// Shares of time by column: whatever the width, areas are as times, and what is short and alone is seen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Shares } from "../src/model/shares";

const HEIGHT = 17;

/** Returns the share of the lane that each layer is drawn in. */
function areas(shares: Shares, columns: number, layers: number): number[] {
  const found = Array.from({ length: layers }, () => 0);
  for (const { layer, x0, x1, bottom, top } of shares.blocks(HEIGHT)) {
    found[layer] = (found[layer] ?? 0) + ((x1 - x0) * (top - bottom)) / (HEIGHT * columns);
  }
  return found;
}

/** Waits of one length, evenly spread, in a time that is 1 long; the rest is layer 0. */
function waits(columns: number, count: number, share: number): Shares {
  const shares = new Shares(columns, [1, 2, 0], 1, 0);
  shares.add(0, 0, columns);
  for (let n = 0; n < count; n++) {
    const from = (n + 0.3 * (1 - share)) / count;
    shares.add(1, from * columns, (from + share / count) * columns);
  }
  return shares;
}

for (const columns of [500, 800, 1024, 1600, 1920, 3840]) {
  for (const share of [0.01, 0.112, 0.5, 0.93]) {
    for (const count of [1, 40, 700, 5000, 100_000]) {
      test(`${count} waits that take ${share} in ${columns} columns`, () => {
        const [rest = 0, contended = 0] = areas(waits(columns, count, share), columns, 3);
        assert.ok(Math.abs(contended - share) < 0.02, String(contended));
        assert.ok(Math.abs(rest + contended - 1) < 0.001, String(rest));
      });
    }
  }
}

test("a short wait that is alone is seen", () => {
  const shares = new Shares(1000, [1, 2, 0], 1, 0);
  shares.add(0, 0, 1000);
  shares.add(1, 500.2, 500.21);
  const wait = shares.blocks(HEIGHT).find((block) => block.layer === 1);
  assert.deepEqual(wait, { layer: 1, x0: 500, x1: 501, bottom: 0, top: 5 });
});

test("what kept a thread lies at the bottom, and what is not known is left out", () => {
  const shares = new Shares(10, [1, 2, 0], 1, 0);
  shares.add(0, 0, 8);
  shares.add(1, 0, 4, 0.5);
  shares.add(2, 0, 4, 0.25);
  const blocks = shares.blocks(16).filter((block) => block.x0 === 0);
  assert.deepEqual(
    blocks
      .map(({ layer, bottom, top }) => [layer, bottom, top])
      .sort((a, b) => (a[1] ?? 0) - (b[1] ?? 0)),
    [
      [1, 0, 8],
      [2, 8, 12],
      [0, 12, 16],
    ],
  );
  assert.deepEqual(shares.blocks(16), [], "what was added is forgotten");
});
