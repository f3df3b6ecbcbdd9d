// Selects rows of tables, as the server does.
import type { Columns } from "../base/columns";

type AnyColumns = { readonly length: number; readonly metadata: ReadonlyMap<string, string> };

/** Returns some rows of a table, by their numbers in the table. */
export function take<C>(
  table: Columns<C>,
  at: readonly number[],
  metadata: ReadonlyMap<string, string> = new Map(),
): Columns<C> {
  const made: Record<string, unknown> = { length: at.length, metadata };
  for (const [name, column] of Object.entries(table as AnyColumns & Record<string, unknown>)) {
    if (Array.isArray(column)) made[name] = at.map((n) => column[n]);
    else if (ArrayBuffer.isView(column)) made[name] = picked(column as Float64Array, at);
  }
  return made as Columns<C>;
}

function picked(column: Float64Array, at: readonly number[]): Float64Array {
  const Kind = column.constructor as Float64ArrayConstructor;
  const made = new Kind(at.length);
  at.forEach((n, place) => {
    made[place] = column[n] ?? 0;
  });
  return made;
}

/** Returns the numbers of the rows that pass the filter. */
export function where(length: number, passes: (at: number) => boolean): number[] {
  const found: number[] = [];
  for (let at = 0; at < length; at++) if (passes(at)) found.push(at);
  return found;
}
