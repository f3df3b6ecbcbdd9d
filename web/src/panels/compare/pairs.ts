// Lines of two reports or runs side by side: entries of both, or of only one of them.
import type { Contention, Diff, DiffMetric, Figures } from "../../base/protocol";
import type { RowKind } from "../../base/state";

export type By = "object" | "thread" | "site";

/** An entry with its figures in A and in B. */
export interface Pair {
  readonly label: string;
  readonly by: RowKind;
  readonly row: number;
  readonly site: string;
  readonly a: Sums;
  readonly b: Sums;
}

export interface Sums {
  readonly wait_ns: number;
  readonly waits: number;
  readonly hold_ns: number;
  readonly holds: number;
}

const NONE: Sums = { wait_ns: 0, waits: 0, hold_ns: 0, holds: 0 };

interface Line {
  readonly label: string;
  readonly by: RowKind;
  readonly row: number;
  readonly site: string;
  readonly sums: Sums;
}

/** Returns the entries of two answers. An entry may be in only one of them. */
export function pairsOf(a: Contention, b: Contention, by: By): Pair[] {
  const found = new Map<string, Pair>();
  for (const [side, answer] of [["a", a] as const, ["b", b] as const]) {
    for (const [key, { sums, ...line }] of linesOf(answer, by)) {
      const known = found.get(key) ?? { ...line, a: NONE, b: NONE };
      found.set(key, { ...known, [side]: sums });
    }
  }
  return [...found.values()];
}

function linesOf({ report, object_rows, thread_rows }: Contention, by: By): [string, Line][] {
  switch (by) {
    case "object":
      return report.objects.map((item, at) => {
        const row = object_rows[at] ?? 0;
        const label = `${item.kind} ${item.name || item.object}`;
        return [`${item.pid} ${item.kind} ${item.object}`, line(label, "object", row, "", item)];
      });
    case "thread":
      return report.threads.map((item, at) => {
        const row = thread_rows[at] ?? 0;
        const label = `${item.tid} ${item.name}`.trim();
        return [`${item.pid} ${item.tid} ${row}`, line(label, "thread", row, "", item)];
      });
    case "site":
      return (report.sites ?? []).map((item) => {
        const key = `${item.pid} ${item.kind} ${item.site_address}`;
        return [key, line(item.site, "object", 0, item.site_address, item)];
      });
  }
}

function line(label: string, by: RowKind, row: number, site: string, figures: Figures): Line {
  const { wait_ns, waits, hold_ns, holds } = figures;
  return { label, by, row, site, sums: { wait_ns, waits, hold_ns, holds } };
}

/** Returns the entries of two runs. They have no rows and no addresses. */
export function pairsOfRuns({ rows }: Diff): Pair[] {
  return rows.map(({ site, name, metrics }) => {
    const label = site ?? name ?? "";
    const place = { label, by: "object", row: 0, site: "" } as const;
    return { ...place, a: sumsOf(metrics, "before"), b: sumsOf(metrics, "after") };
  });
}

export function sumsOf(
  metrics: Readonly<Record<string, DiffMetric>>,
  side: "before" | "after",
): Sums {
  const value = (name: keyof Sums) => metrics[name]?.[side] ?? 0;
  return {
    wait_ns: value("wait_ns"),
    waits: value("waits"),
    hold_ns: value("hold_ns"),
    holds: value("holds"),
  };
}

/** Returns the sums per second of a part of this length. */
export function scaled(sums: Sums, length_ns: number): Sums {
  const times = 1e9 / Math.max(1, length_ns);
  return {
    wait_ns: sums.wait_ns * times,
    waits: sums.waits * times,
    hold_ns: sums.hold_ns * times,
    holds: sums.holds * times,
  };
}
