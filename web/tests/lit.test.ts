// What a span of a thread has to do with a lock: had it, had it while others wanted it, or waited for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { STATES } from "../src/base/protocol";
import type { Spans } from "../src/model/tiles";
import { type Lit, litBy } from "../src/timeline/drawing/lit";

const LOCK = 7;

test("holds and waits of the lock are lit, and nothing else", () => {
  const cases: [state: (typeof STATES)[number], other: number, depth: number, lit: Lit | null][] = [
    ["held", LOCK, 0, "held"],
    ["held", LOCK, 2, "wanted"],
    ["shared", LOCK, 1, "wanted"],
    ["contended", LOCK, 3, "waiting"],
    ["timeout", LOCK, 1, "waiting"],
    ["held", 8, 2, null],
    // Of a sleeper it is the number of a call.
    ["asleep", LOCK, 0, null],
    ["not waiting", LOCK, 0, null],
  ];
  const table = {
    state: cases.map(([state]) => STATES.indexOf(state)),
    other: cases.map(([, other]) => other),
    depth: cases.map(([, , depth]) => depth),
  } as unknown as Spans;
  for (const [at, [state, , , lit]] of cases.entries()) {
    assert.equal(litBy(table, at, LOCK), lit, state);
    assert.equal(litBy(table, at, 0), null);
  }
});
