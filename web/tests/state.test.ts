// The store tells of changes, once, and of changes only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "../src/base/state";

test("listeners hear of a change once, and not of none", () => {
  const store = new Store({ a: 1, b: 2 });
  const heard: [number, number][] = [];
  store.subscribe((now, before) => heard.push([before.a, now.a]));
  store.update({ a: 5, b: 6 });
  store.update({ a: 5 });
  assert.deepEqual(heard, [[1, 5]]);
});

test("a watcher is called at once and for its fields only", () => {
  const store = new Store({ a: 1, b: 2 });
  let calls = 0;
  const end = store.watch(["a"], () => calls++);
  store.update({ b: 3 });
  assert.equal(calls, 1);
  store.update({ a: 3 });
  assert.equal(calls, 2);
  end();
  store.update({ a: 4 });
  assert.equal(calls, 2);
});
