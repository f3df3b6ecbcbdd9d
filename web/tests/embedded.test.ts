// The one-file page answers as the server does: events from both sides, filters, rows, spans for pixels.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Columns } from "../src/base/columns";
import type { EventsColumns, RowsColumns, SpansColumns, Wait } from "../src/base/protocol";
import { eventsOf } from "../src/embedded/events";
import { rowsOf } from "../src/embedded/rows";
import { drawn, indexSpans } from "../src/embedded/spans";
import { waitsOf } from "../src/embedded/waits";

const COUNT = 10;

function numbers(value: (n: number) => number, count = COUNT): Float64Array {
  return Float64Array.from({ length: count }, (_, n) => value(n));
}

function words(value: (n: number) => string, count = COUNT): string[] {
  return Array.from({ length: count }, (_, n) => value(n));
}

/** Ten events, one each ten ns, of threads 1 and 2 on objects 0 to 2. */
function events(): Columns<EventsColumns> {
  return {
    length: COUNT,
    metadata: new Map(),
    position: words((n) => `p${n}`),
    ts_ns: numbers((n) => 10 * n),
    pid: Uint32Array.from(numbers(() => 7)),
    tid: Uint32Array.from(numbers((n) => n % 2)),
    cpu: Int32Array.from(numbers(() => -1)),
    thread_row: Uint32Array.from(numbers((n) => 1 + (n % 2))),
    thread: words(() => "x"),
    event: words((n) => (n % 2 ? "MUTEX_FREE" : "MUTEX_TAKEN")),
    object: words(() => "0x40"),
    object_row: Uint32Array.from(numbers((n) => n % 3)),
    site: words((n) => `f+${n}`),
    sentence: words((n) => `Thread says ${n}`),
  };
}

test("events from a time on, and on from where they ended", () => {
  const first = eventsOf(events(), { t_ns: 15, count: 3 });
  assert.deepEqual(first.position, ["p2", "p3", "p4"]);
  assert.equal(first.metadata.get("done"), "0");
  const next = first.metadata.get("next") ?? "";
  const rest = eventsOf(events(), { position: next, count: 100 });
  assert.deepEqual(rest.position, ["p5", "p6", "p7", "p8", "p9"]);
  assert.equal(rest.metadata.get("done"), "1");
});

test("events backward end before the place, in the order of the trace", () => {
  const found = eventsOf(events(), { position: "p5", direction: "backward", count: 2 });
  assert.deepEqual(found.position, ["p3", "p4"]);
  const more = eventsOf(events(), {
    position: found.metadata.get("next") ?? "",
    direction: "backward",
    count: 9,
  });
  assert.deepEqual(more.position, ["p0", "p1", "p2"]);
  assert.equal(more.metadata.get("done"), "1");
});

test("filters are all kept", () => {
  const positions = (asked: object) => eventsOf(events(), asked).position;
  assert.deepEqual(positions({ thread: [2], object: [0] }), ["p3", "p9"]);
  assert.deepEqual(positions({ event: "mutex_f", text: "SAYS 7" }), ["p7"]);
  assert.deepEqual(positions({ site: "f+1,f+2" }), ["p1", "p2"]);
  assert.deepEqual(positions({ pid: "8" }), []);
  assert.deepEqual(positions({ on: "0X40", tid: "99" }), []);
  assert.equal(positions({ on: "0x30,0X40" }).length, 10);
});

test("a name chooses the events that it chose when the page was made", () => {
  const chosen = { "Lock of main, here": [2, 3, 7] };
  const positions = (asked: object) => eventsOf(events(), asked, chosen).position;
  assert.deepEqual(positions({ on: "Lock of main, here" }), ["p2", "p3", "p7"]);
  assert.deepEqual(positions({ on: "Lock of main, here", event: "MUTEX_T" }), ["p2"]);
  assert.deepEqual(positions({ on: "toString" }), []);
});

function rows(): Columns<RowsColumns> {
  const zeros = () => numbers(() => 0, 3);
  const small = () => new Uint32Array(3);
  return {
    length: 3,
    metadata: new Map(),
    row: Uint32Array.of(5, 3, 9),
    kind: words(() => "mutex", 3),
    label: ["b10", "b9", "a"],
    name: words(() => "", 3),
    process: small(),
    pid: Uint32Array.of(1, 1, 2),
    tid: small(),
    object: ["0x10", "0x20", "0x30"],
    generations: small(),
    threads: small(),
    lanes: new Uint16Array(3),
    start_ns: numbers((n) => 3 - n, 3),
    end_ns: zeros(),
    waits: zeros(),
    wait_ns: zeros(),
    wait_max_ns: zeros(),
    idle_ns: zeros(),
    other_ns: zeros(),
    holds: zeros(),
    hold_ns: numbers((n) => n, 3),
    caused_ns: zeros(),
    max_waiters: small(),
  };
}

test("rows by number, filtered, sorted, and a page of them", () => {
  const labels = (asked: object) => rowsOf(rows(), { by: "object", ...asked }).label;
  assert.deepEqual(labels({ rows: [9, 5, 77] }), ["a", "b10"]);
  assert.deepEqual(labels({ filter: "B" }), ["b10", "b9"]);
  assert.deepEqual(labels({ sort: "name" }), ["a", "b9", "b10"]);
  assert.deepEqual(labels({ sort: "hold" }), ["a", "b9", "b10"]);
  assert.deepEqual(labels({ offset: 1, limit: 1 }), ["b9"]);
  const page = rowsOf(rows(), { by: "object", offset: 1, limit: 1 });
  assert.equal(page.metadata.get("total"), "3");
});

/** A thousand short waits, one each 1000 ns, and a long one behind them. */
function spans(): Columns<SpansColumns> {
  const count = 1001;
  const dur = numbers((n) => (n < 1000 ? 10 : 50_000), count);
  return {
    length: count,
    metadata: new Map(),
    row: new Uint32Array(count).fill(4),
    lane: new Uint16Array(count),
    state: new Uint8Array(count).fill(1),
    flags: new Uint8Array(count),
    t_ns: numbers((n) => 1000 * n, count),
    dur_ns: dur,
    busy_ns: Float64Array.from(dur),
    wake_ns: Float64Array.from(dur, () => 0),
    count: new Uint32Array(count).fill(1),
    other: new Uint32Array(count).fill(6),
    depth: new Uint32Array(count).fill(2),
    wait_id: Uint32Array.from({ length: count }, (_, n) => n + 1),
  };
}

test("short spans become one, and none of their time is lost", () => {
  const table = spans();
  const index = indexSpans(table);
  const coarse = drawn(table, index, [4], { from: 0, to: 1_050_000, width: 21 });
  assert.ok(coarse.length <= 2 * 21);
  assert.equal(
    coarse.busy_ns.reduce((a, b) => a + b),
    1000 * 10 + 50_000,
  );
  assert.equal(
    coarse.count.reduce((a, b) => a + b),
    1001,
  );
  const last = coarse.length - 1;
  assert.deepEqual([coarse.wait_id[last], coarse.dur_ns[last]], [1001, 50_000]);
});

test("what is wide enough is drawn as it is", () => {
  const table = spans();
  const fine = drawn(table, indexSpans(table), [4], { from: 5000, to: 8000, width: 3000 });
  assert.deepEqual([...fine.t_ns], [5000, 6000, 7000]);
  assert.equal(drawn(table, indexSpans(table), [5], { from: 0, to: 9000, width: 9 }).length, 0);
});

test("waits that are wanted, the longest first, and their part of a range", () => {
  const wait = (wait_id: number, t_ns: number, dur_ns: number, row: number) =>
    ({
      wait_id,
      t_ns,
      dur_ns,
      wait_class: row === 9 ? "idle" : "contended",
      thread: { row, label: `t${row}` },
      object: { row: 3, kind: "mutex", name: "m", object: "0x10" },
      site: "f+0x1",
    }) as Wait;
  const all = [wait(1, 0, 10, 1), wait(2, 5, 30, 2), wait(3, 50, 20, 1), wait(4, 60, 5, 9)];
  const ids = (asked: object) => Array.from(waitsOf(all, asked, { from: 0, to: 100 }).wait_id);
  assert.deepEqual(ids({}), [2, 3, 1, 4]);
  assert.deepEqual(ids({ limit: 1 }), [2]);
  assert.deepEqual(ids({ least_ns: 20, thread: [1] }), [3]);
  assert.deepEqual(ids({ wait_class: "idle", site: "F+" }), [4]);
  assert.deepEqual(ids({ object: [4] }), []);
  const part = waitsOf(all, { from_ns: 8, to_ns: 20 }, { from: 0, to: 100 });
  assert.deepEqual(Array.from(part.inside_ns), [12, 2]);
  assert.equal(part.metadata.get("inside_ns"), "14");
});
