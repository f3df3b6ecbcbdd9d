// What a critical path leads through, in words, and what of it went through the run queue.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PathLink, PathThread } from "../src/base/protocol";
import { queued, through } from "../src/panels/critical";

const link = (kind: string, name: string, object: string, count: number): PathLink =>
  ({ kind, name, object, count }) as PathLink;

test("ends of several threads are one link of the path", () => {
  const links = [
    link("thread", "", "0x7f0000000700", 1),
    link("mutex", "hot", "0x404060", 2),
    link("thread", "", "0x7f0000000e00", 3),
  ];
  assert.deepEqual(through(links), ["ends of threads (4 times)", "mutex hot (2 times)"]);
});

test("locks that follow one another at an address are entries of their own", () => {
  const links = [link("mutex", "", "0x404060", 1), link("mutex", "", "0x404060", 4)];
  assert.deepEqual(through(links), ["mutex 0x404060 (4 times)", "mutex 0x404060 (1 time)"]);
});

test("what has no name is called by its address", () => {
  assert.deepEqual(through([link("mutex", "", "0x404060", 1)]), ["mutex 0x404060 (1 time)"]);
});

const part = (ready_ns: number | null): PathThread => ({ ready_ns }) as PathThread;

test("what went through the run queue is said as far as it is known", () => {
  assert.match(queued([part(2_000_000), part(0)]), /^2.* ms through the run queue$/);
  assert.match(queued([part(2_000_000), part(null)]), /^at least 2.* ms through the run queue$/);
  assert.equal(queued([part(null), part(0)]), "");
  assert.equal(queued([]), "");
});
