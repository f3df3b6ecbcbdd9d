// Rows that are pinned change places with others of their kind.
import assert from "node:assert/strict";
import { test } from "node:test";
import { movedBy } from "../src/timeline/input/row_menu";

test("a row moves beyond the next of its kind, and not beyond the last", () => {
  const refs = ["thread:1", "object:9", "thread:2"] as const;
  assert.deepEqual(movedBy(refs, "thread:1", 1), ["thread:2", "object:9", "thread:1"]);
  assert.equal(movedBy(refs, "thread:1", -1), null);
  assert.equal(movedBy(refs, "object:9", 1), null);
  assert.equal(movedBy(refs, "thread:7", 1), null);
});
