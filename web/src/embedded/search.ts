// The search of the one-file page: over its rows, call sites, event types and findings.
import type { Columns } from "../base/columns";
import type { EventsColumns, Findings, Hit, Hits, RowsColumns } from "../base/protocol";
import { matches } from "./rows";

export interface Searched {
  readonly threads: Columns<RowsColumns>;
  readonly objects: Columns<RowsColumns>;
  readonly events: Columns<EventsColumns>;
  readonly findings: Findings;
}

export function search(
  { threads, objects, events, findings }: Searched,
  q: string,
  limit: number,
): Hits {
  const text = q.toLowerCase();
  const hits: Hit[] = [];
  for (const [by, table] of [
    ["thread", threads],
    ["object", objects],
  ] as const) {
    for (let at = 0; at < table.length; at++) {
      if (!matches(table, at, text)) continue;
      const found = { kind: by, by, row: table.row[at] ?? 0, label: table.label[at] ?? "" };
      const what = `${table.kind[at]} ${table.object[at]}`.trim();
      hits.push({ ...found, about: `${what} of process ${table.pid[at]}`, t_ns: null });
    }
  }
  for (const [kind, words] of [
    ["site", events.site],
    ["event", events.event],
  ] as const) {
    for (const word of new Set(words)) {
      if (word?.toLowerCase().includes(text))
        hits.push({ kind, by: "", row: 0, label: word, about: "", t_ns: null });
    }
  }
  for (const one of findings.findings) {
    if (!`${one.kind} ${one.message}`.toLowerCase().includes(text)) continue;
    hits.push({
      kind: "finding",
      by: "",
      row: 0,
      label: one.message,
      about: one.kind,
      t_ns: one.ts_ns,
    });
  }
  return { hits: hits.slice(0, limit), more: hits.length > limit };
}
