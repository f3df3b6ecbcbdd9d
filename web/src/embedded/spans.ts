// Spans for a width in pixels. As in the server, short neighbours of one state are merged.
import type { Columns } from "../base/columns";
import { FLAGS, type SpansColumns } from "../base/protocol";
import { take } from "./pick";

type Spans = Columns<SpansColumns>;

/** Numbers of the spans of each row, sorted by lane and time. */
export type SpanIndex = ReadonlyMap<number, readonly number[]>;

export function indexSpans(table: Spans): SpanIndex {
  const found = new Map<number, number[]>();
  for (let at = 0; at < table.length; at++) {
    const row = table.row[at] ?? 0;
    const known = found.get(row);
    if (known) known.push(at);
    else found.set(row, [at]);
  }
  const order = (a: number, b: number) =>
    (table.lane[a] ?? 0) - (table.lane[b] ?? 0) || (table.t_ns[a] ?? 0) - (table.t_ns[b] ?? 0);
  for (const spans of found.values()) spans.sort(order);
  return found;
}

/** Returns the spans of some rows within a range: at most about two for each pixel, lane and state. */
export function drawn(
  table: Spans,
  index: SpanIndex,
  rows: readonly number[],
  range: { readonly from: number; readonly to: number; readonly width: number },
): Spans {
  const pixel = (range.to - range.from) / Math.max(1, range.width);
  const made: number[] = [];
  const merges: Merge[] = [];
  for (const row of rows) mergeRow(table, index.get(row) ?? [], range, pixel, made, merges);
  const answer = take<SpansColumns>(table, made);
  for (const merge of merges) {
    answer.dur_ns[merge.place] = merge.to - (answer.t_ns[merge.place] ?? 0);
    answer.busy_ns[merge.place] = merge.busy;
    answer.count[merge.place] = merge.count;
    answer.flags[merge.place] = (answer.flags[merge.place] ?? 0) | FLAGS.merged;
    answer.depth[merge.place] = merge.depth;
    answer.wake_ns[merge.place] = 0;
    answer.wait_id[merge.place] = table.wait_id[merge.longest] ?? 0;
    answer.other[merge.place] = table.other[merge.longest] ?? 0;
  }
  return answer;
}

interface Merge {
  readonly place: number;
  to: number;
  busy: number;
  count: number;
  depth: number;
  longest: number;
}

interface Last {
  readonly at: number;
  readonly place: number;
  merge: Merge | null;
}

function mergeRow(
  table: Spans,
  spans: readonly number[],
  range: { readonly from: number; readonly to: number },
  pixel: number,
  made: number[],
  merges: Merge[],
): void {
  const last = new Map<string, Last>();
  for (const at of spans) {
    const t = table.t_ns[at] ?? 0;
    const end = t + (table.dur_ns[at] ?? 0);
    if (t >= range.to || end < range.from) continue;
    const key = `${table.lane[at]} ${table.state[at]}`;
    const before = last.get(key);
    if (before && joins(table, before, t, end, pixel)) {
      join(table, before, at, end, merges);
    } else {
      last.set(key, { at, place: made.length, merge: null });
      made.push(at);
    }
  }
}

/** Short spans are merged while together they are no wider than a pixel. */
function joins(table: Spans, before: Last, t: number, end: number, pixel: number): boolean {
  const start = table.t_ns[before.at] ?? 0;
  return end - t < pixel && t >= start && end - start <= pixel;
}

function join(table: Spans, before: Last, at: number, end: number, merges: Merge[]): void {
  if (!before.merge) {
    const first = before.at;
    before.merge = {
      place: before.place,
      to: (table.t_ns[first] ?? 0) + (table.dur_ns[first] ?? 0),
      busy: table.busy_ns[first] ?? 0,
      count: table.count[first] ?? 1,
      depth: table.depth[first] ?? 0,
      longest: first,
    };
    merges.push(before.merge);
  }
  const merge = before.merge;
  merge.to = Math.max(merge.to, end);
  merge.busy += table.busy_ns[at] ?? 0;
  merge.count += table.count[at] ?? 1;
  merge.depth = Math.max(merge.depth, table.depth[at] ?? 0);
  if ((table.dur_ns[at] ?? 0) > (table.dur_ns[merge.longest] ?? 0)) merge.longest = at;
}
