// The label of a row by its number, asked for once.
import type { App } from "../../base/app";
import type { RowKind } from "../../base/state";
import { named } from "../../model/describe";

const known = new Map<string, Promise<string>>();

export function rowLabel(app: App, by: RowKind, row: number): Promise<string> {
  const key = `${by} ${row}`;
  let label = known.get(key);
  if (!label) {
    label = ask(app, by, row).catch(() => `${by} ${row}`);
    known.set(key, label);
  }
  return label;
}

async function ask(app: App, by: RowKind, row: number): Promise<string> {
  const rows = await app.source.table("rows", { by, rows: [row], limit: 1 });
  const label = rows.label[0] ?? String(row);
  return by === "thread" ? label : named({ kind: rows.kind[0] ?? "", label });
}
