// What the details show while nothing is selected: what was waited for most, as a place to start from.
import type { App } from "../app";
import { button, h } from "../dom";
import type { RowKind } from "../state";
import type { RowData, Rows } from "../timeline/rows";
import { duration, plural } from "../units";

const MOST = 6;

/** Returns the places to start from. */
export function startView(app: App, rows: { thread: Rows; object: Rows }): HTMLElement[] {
  const objects = list(app, "object", rows.object.all());
  const threads = list(app, "thread", rows.thread.all());
  const hint =
    "Click a wait to see who held what it waited for, and why. Ctrl+wheel or W and S zoom, drag or A and D pan; ? tells all keys.";
  if (!objects && !threads) {
    const none = app.trace().detail.ready ? "No thread waited for another." : "Reading the trace…";
    return [h("h2", {}, none), h("p", { class: "hint" }, hint)];
  }
  return [
    ...(objects ? [h("h2", {}, "Waited for most"), objects] : []),
    ...(threads ? [h("h2", {}, "Waited most"), threads] : []),
    h("p", { class: "hint" }, hint),
  ];
}

function list(app: App, by: RowKind, rows: readonly RowData[]): HTMLElement | null {
  const first = [...rows]
    .sort((a, b) => b.wait_ns - a.wait_ns)
    .slice(0, MOST)
    .filter((row) => row.wait_ns > 0);
  if (!first.length) return null;
  const most = first[0]?.wait_ns ?? 1;
  return h("ol", { class: "most" }, ...first.map((row) => item(app, by, row, most)));
}

function item(app: App, by: RowKind, row: RowData, most: number): HTMLElement {
  const go = () => app.store.update({ selection: { kind: "row", by, row: row.row } });
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${(100 * row.wait_ns) / most}%`;
  return h(
    "li",
    {},
    button(row.label, go, { class: "link" }),
    h("span", { class: "figure" }, `${duration(row.wait_ns)} in ${plural(row.waits, "wait")}`),
    h("span", { class: "track" }, bar),
  );
}
