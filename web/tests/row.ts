// Rows for tests: what matters is said, the rest is as in a quiet trace.
import type { RowData } from "../src/model/rows";

export function row(change: Partial<RowData>): RowData {
  return {
    by: "thread",
    row: 1,
    kind: "thread",
    label: "main",
    process: 0,
    pid: 1,
    tid: 1,
    object: "",
    generations: 1,
    threads: 1,
    lanes: 1,
    start_ns: 0,
    end_ns: 1000,
    waits: 0,
    wait_ns: 0,
    wait_max_ns: 0,
    idle_ns: 0,
    other_ns: 0,
    holds: 0,
    hold_ns: 0,
    caused_ns: 0,
    max_waiters: 0,
    ...change,
  };
}
