// Rows of threads and locks in the one-file page: some rows by number, or filtered and sorted.
import type { Columns } from "../base/columns";
import type { RowsColumns, RowsParameters } from "../base/protocol";
import { take, where } from "./pick";

type Rows = Columns<RowsColumns>;

export function rowsOf(table: Rows, asked: RowsParameters): Rows {
  if (asked.rows?.length) {
    const place = new Map(Array.from(table.row, (row, at) => [row, at]));
    const at = asked.rows.map((row) => place.get(row)).filter((n) => n !== undefined);
    return take<RowsColumns>(table, at, new Map([["total", String(at.length)]]));
  }
  const words = (asked.filter ?? "")
    .toLowerCase()
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
  const found = where(
    table.length,
    (at) => !words.length || words.some((word) => matches(table, at, word)),
  );
  sort(table, found, asked.sort ?? "wait");
  const from = asked.offset ?? 0;
  const total = new Map([["total", String(found.length)]]);
  return take<RowsColumns>(table, found.slice(from, from + (asked.limit ?? 1000)), total);
}

export function matches(table: Rows, at: number, text: string): boolean {
  const words = [table.label[at], table.kind[at], table.pid[at], table.tid[at], table.object[at]];
  return words.some((word) =>
    String(word ?? "")
      .toLowerCase()
      .includes(text),
  );
}

/** The rows are stored in the order by waiting. */
function sort(table: Rows, found: number[], by: NonNullable<RowsParameters["sort"]>): void {
  const number = (column: ArrayLike<number>, sign: 1 | -1) => (a: number, b: number) =>
    sign * ((column[a] ?? 0) - (column[b] ?? 0));
  const order = {
    wait: (a: number, b: number) => a - b,
    hold: number(table.hold_ns, -1),
    start: number(table.start_ns, 1),
    name: (a: number, b: number) =>
      (table.label[a] ?? "").localeCompare(table.label[b] ?? "", undefined, { numeric: true }),
    row: number(table.row, 1),
  }[by];
  found.sort(order);
}
