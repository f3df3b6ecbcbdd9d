// The list of waits of the one-file page: waits that pass the filters, the longest first.
import type { Columns } from "../base/columns";
import {
  FLAGS,
  STATES,
  type Wait,
  type WaitsColumns,
  type WaitsParameters,
} from "../base/protocol";

export function waitsOf(
  waits: readonly Wait[],
  asked: WaitsParameters,
  whole: { readonly from: number; readonly to: number },
): Columns<WaitsColumns> {
  const from = asked.from_ns ?? whole.from;
  const to = asked.to_ns ?? whole.to;
  const threads = new Set(asked.thread ?? []);
  const objects = new Set(asked.object ?? []);
  const site = asked.site?.toLowerCase() ?? "";
  const found = waits
    .filter(
      (wait) =>
        wait.dur_ns >= (asked.least_ns ?? 0) &&
        wait.t_ns < to &&
        wait.t_ns + wait.dur_ns >= from &&
        (!asked.wait_class || wait.wait_class === asked.wait_class) &&
        (!threads.size || threads.has(wait.thread.row)) &&
        (!objects.size || objects.has(wait.object.row)) &&
        wait.site.toLowerCase().includes(site),
    )
    .sort((a, b) => b.dur_ns - a.dur_ns);
  const inside = (wait: Wait) => Math.min(to, wait.t_ns + wait.dur_ns) - Math.max(from, wait.t_ns);
  const shown = found.slice(0, asked.limit ?? 1000);
  const sum = found.reduce((all, wait) => all + inside(wait), 0);
  const numbers = (of: (wait: Wait) => number) => Float64Array.from(shown, of);
  return {
    length: shown.length,
    metadata: new Map([
      ["total", String(found.length)],
      ["inside_ns", String(sum)],
    ]),
    wait_id: Uint32Array.from(shown, (wait) => wait.wait_id),
    state: Uint8Array.from(shown, (wait) => STATES.indexOf(wait.wait_class)),
    flags: Uint8Array.from(shown, (wait) => (wait.open ? FLAGS.open : 0)),
    t_ns: numbers((wait) => wait.t_ns),
    dur_ns: numbers((wait) => wait.dur_ns),
    inside_ns: numbers(inside),
    thread_row: Uint32Array.from(shown, (wait) => wait.thread.row),
    thread: shown.map((wait) => wait.thread.label),
    object_row: Uint32Array.from(shown, (wait) => wait.object.row),
    object: shown.map(({ object }) => `${object.kind} ${object.name || object.object}`),
    site: shown.map((wait) => wait.site),
    owner_row: Uint32Array.from(shown, (wait) => wait.owner?.row ?? 0),
    owner: shown.map((wait) => wait.owner?.label ?? ""),
  };
}
