// Arrow tables as plain columns. 64-bit integers become numbers, which are exact up to 104 days in ns.
import { tableFromIPC } from "apache-arrow";

/** The declared columns, with numbers in place of 64-bit integers. */
export type Columns<C> = {
  readonly [K in keyof C]: C[K] extends BigInt64Array | BigUint64Array
    ? Float64Array
    : C[K] extends string[]
      ? readonly string[]
      : C[K];
} & { readonly length: number; readonly metadata: ReadonlyMap<string, string> };

/** Returns the columns of an Arrow IPC stream. */
export function decode<C>(bytes: Uint8Array): Columns<C> {
  const table = tableFromIPC(bytes);
  const columns: Record<string, unknown> = {
    length: table.numRows,
    metadata: table.schema.metadata,
  };
  for (const field of table.schema.fields) {
    const found: unknown = table.getChild(field.name)?.toArray();
    columns[field.name] = plain(found);
  }
  return columns as Columns<C>;
}

function plain(column: unknown): unknown {
  if (column instanceof BigInt64Array) return numbers(column, new Int32Array(0));
  if (column instanceof BigUint64Array) return numbers(column, new Uint32Array(0));
  if (ArrayBuffer.isView(column)) return column;
  return Array.from(column as Iterable<unknown>, String);
}

/** Reads the two halves of each integer. Making a BigInt of each would take most of the time. */
function numbers(
  column: BigInt64Array | BigUint64Array,
  high: Int32Array | Uint32Array,
): Float64Array {
  const low = new Uint32Array(column.buffer, column.byteOffset, column.length * 2);
  const Half = high.constructor as Int32ArrayConstructor;
  const top = new Half(column.buffer as ArrayBuffer, column.byteOffset, column.length * 2);
  const out = new Float64Array(column.length);
  for (let at = 0; at < out.length; at++) {
    out[at] = (top[2 * at + 1] ?? 0) * 4294967296 + (low[2 * at] ?? 0);
  }
  return out;
}
