// The address holds the view, and malformed addresses do no harm.
import assert from "node:assert/strict";
import { test } from "node:test";
import { follow, format, parse } from "../src/base/address";
import { FIRST_VIEW, Store, type View } from "../src/base/state";

test("the first view needs no address", () => {
  assert.equal(format(FIRST_VIEW), "");
  assert.deepEqual(parse(""), FIRST_VIEW);
});

test("every part of a view comes back", () => {
  const view: View = {
    range: { from: 10, to: 9_007_199_254_740_991 },
    mark: { from: 1, to: 2 },
    other: { from: 3, to: 40 },
    selection: { kind: "span", by: "object", row: 3, lane: 1, at: 77 },
    filter: {
      thread: 4,
      object: 5,
      pid: "6,7",
      tid: "8",
      on: "0x10,g_lock",
      event: "MUTEX_TAKEN",
      site: "a&b=c",
      text: "<b>#?",
    },
    waits: { least: 1_500_000, kind: "", thread: 4, object: 5, site: "f+0x1 (a&b.c:3)" },
    rows: "worker 1",
    sort: "name",
    folded: ["7", "8/a,b=%-"],
    pinned: ["object:3", "thread:1"],
    hidden: ["thread:2"],
    only: ["processor:4"],
    byName: true,
    inView: true,
    tab: "findings",
    dock: false,
    side: false,
    split: 0.25,
    arrows: false,
    theme: "dark",
  };
  assert.deepEqual(parse(`#${format(view)}`), view);
});

test("a view with air before the start of the trace comes back", () => {
  const range = { from: -7179661, to: 783220262 };
  assert.deepEqual(parse(format({ ...FIRST_VIEW, range })).range, range);
});

for (const selection of [
  { kind: "row", by: "thread", row: 0 },
  { kind: "wait", wait: 12 },
  { kind: "event", position: "10-2", at: 5 },
] as const) {
  test(`a selected ${selection.kind} comes back`, () => {
    assert.deepEqual(parse(format({ ...FIRST_VIEW, selection })).selection, selection);
  });
}

for (const fragment of [
  "t=5-1",
  "t=a-b",
  "sel=thread",
  "sel=wait:x",
  "split=x",
  "theme=red",
  "folded=,x",
]) {
  test(`nonsense is as if it were not there: ${fragment}`, () => {
    assert.deepEqual(parse(fragment), FIRST_VIEW);
  });
}

test("no address is written while the view moves on its own, and one when it has come to rest", () => {
  let due: (() => void) | undefined;
  const settle = () => due?.();
  const written: string[] = [];
  const setTimeout = (then: () => void) => {
    due = then;
  };
  Object.assign(globalThis, {
    window: { setTimeout },
    location: { hash: "", pathname: "/", search: "" },
    history: {
      state: null,
      pushState: (_: unknown, __: string, address: string) => written.push(address),
    },
    addEventListener: () => undefined,
  });
  const store = new Store<View>(FIRST_VIEW);
  let moving = true;
  follow(store, () => moving);
  for (const to of [100, 50, 10]) {
    store.update({ range: { from: 0, to } });
    settle();
  }
  assert.deepEqual(written, []);
  moving = false;
  settle();
  assert.deepEqual(written, ["#t=0-10"]);
});
