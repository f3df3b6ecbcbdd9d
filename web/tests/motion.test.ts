// Motion: a flight ends where it was to end, whatever is asked for on its way.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { App } from "../src/base/app";
import { FIRST_VIEW, Store, type View } from "../src/base/state";
import { Motion } from "../src/model/motion";
import { withAir } from "../src/model/scale";

/** A screen that shows the next picture when the test says so. */
function slowScreen() {
  const waiting: FrameRequestCallback[] = [];
  Object.assign(globalThis, {
    requestAnimationFrame: (step: FrameRequestCallback) => waiting.push(step),
    matchMedia: () => ({ matches: false }),
  });
  return (now: number) => {
    for (const step of waiting.splice(0)) step(now);
  };
}

function viewOf(end_ns: number) {
  const store = new Store<View>(FIRST_VIEW);
  const app = { store, trace: () => ({ first_ns: 0, end_ns, processes: [] }) } as unknown as App;
  return { store, motion: new Motion(app, () => null) };
}

test("what a flight goes to is not shown again while it flies", () => {
  const show = slowScreen();
  const { store, motion } = viewOf(1_000_000);
  const wait = { from: 10_000, to: 12_000 };
  motion.flyTo(wait);
  const start = performance.now();
  show(start);
  show(start + 50);
  // At the edge of what is in sight now, it would be moved to the middle, at this width.
  motion.reveal(wait);
  for (let ms = 100; ms < 1000; ms += 50) show(start + ms);
  assert.deepEqual(store.get().range, withAir(wait));
});

test("what lies elsewhere is flown to even so", () => {
  const show = slowScreen();
  const { store, motion } = viewOf(1_000_000);
  motion.flyTo({ from: 10_000, to: 12_000 });
  const start = performance.now();
  show(start);
  motion.reveal({ from: 500_000, to: 500_100 });
  for (let ms = 50; ms < 1000; ms += 50) show(start + ms);
  const range = store.get().range;
  assert(range && range.from < 500_000 && range.to > 500_100);
});

test("who shows something else ends a flight, also before its first picture", () => {
  for (const pictures of [0, 1, 3]) {
    for (const range of [{ from: 5, to: 6000 }, null]) {
      const show = slowScreen();
      const { store, motion } = viewOf(1_000_000);
      motion.flyTo({ from: 10_000, to: 12_000 });
      assert.ok(motion.moving);
      const start = performance.now();
      for (let n = 0; n < pictures; n++) show(start + 50 * n);
      store.update({ range });
      assert.ok(!motion.moving);
      for (let ms = 200; ms < 1000; ms += 50) show(start + ms);
      assert.deepEqual(store.get().range, range);
    }
  }
});
