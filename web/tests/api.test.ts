// Questions have one address each, and Arrow's 64-bit integers arrive as numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Int64, Table, tableToIPC, Uint64, Utf8, vectorFromArray } from "apache-arrow";
import { address } from "../src/base/api";
import { decode } from "../src/base/columns";

test("equal questions look equal", () => {
  const one = address("spans", { by: "thread", rows: [1, 2], from_ns: 0 });
  assert.equal(one, address("spans", { from_ns: 0, rows: [1, 2], by: "thread" }));
  assert.equal(one, "spans?by=thread&from_ns=0&rows=1%2C2");
});

test("what stands in the path does not stand in the query, and what is empty stands nowhere", () => {
  assert.equal(address("wait", { id: 7 }), "wait/7");
  assert.equal(address("rows", { by: "thread", filter: "" }), "rows?by=thread");
});

test("columns are decoded, with numbers for 64-bit integers", () => {
  const signed = BigInt64Array.of(-1n, 0n, 9_007_199_254_740_991n);
  const unsigned = BigUint64Array.of(1n, 4_294_967_296n, 3n);
  const table = new Table({
    signed: vectorFromArray([...signed], new Int64()),
    unsigned: vectorFromArray([...unsigned], new Uint64()),
    text: vectorFromArray(["a", "<b>", ""], new Utf8()),
  });
  const found = decode<{ signed: BigInt64Array; unsigned: BigUint64Array; text: string[] }>(
    tableToIPC(table, "stream"),
  );
  assert.equal(found.length, 3);
  assert.deepEqual([...found.signed], [-1, 0, 9_007_199_254_740_991]);
  assert.deepEqual([...found.unsigned], [1, 4_294_967_296, 3]);
  assert.deepEqual(found.text, ["a", "<b>", ""]);
});
