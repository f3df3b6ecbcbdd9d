// The details without a selection: the greatest waiting and the changes, as places to start from.
import type { App } from "../base/app";
import { button, h, named } from "../base/dom";
import type { OverTime } from "../base/protocol";
import type { RowKind } from "../base/state";
import { duration, plural } from "../base/units";
import { type RowData, rowsOf } from "../model/rows";
import { changeLink } from "../panels/over_time/changes";

const MOST = 6;
/** The search for changes reads the trace once more. In a longer trace, only the panel starts this search. */
const LONG = 5_000_000;

/** The rows with most waiting in the whole trace, even if they are hidden. */
export interface Most {
  readonly object: readonly RowData[];
  readonly thread: readonly RowData[];
}

export async function mostWaited(app: App): Promise<Most> {
  const most = async (by: RowKind) => {
    return rowsOf(by, await app.source.table("rows", { by, sort: "wait", limit: MOST }));
  };
  const [object, thread] = await Promise.all([most("object"), most("thread")]);
  return { object, thread };
}

/** Returns the locks with changed waits or holds; null for a long trace or a trace that grows. */
export async function lookForChanges(app: App): Promise<OverTime | null> {
  const { state, events, detail } = app.trace();
  if (state === "running" || !detail.ready || (events > LONG && app.source.served)) return null;
  return app.source.json("over_time", {});
}

/** Returns the places to start from. */
export function startView(app: App, most: Most, changed: OverTime | null): HTMLElement[] {
  const objects = list(app, "object", most.object);
  const threads = list(app, "thread", most.thread);
  const hint =
    "Click a wait to see who held the lock, and why. Ctrl+wheel or W and S zoom, drag or A and D pan; ? shows all keys and gestures.";
  const changes = changed ? changesOf(app, changed) : null;
  if (!objects && !threads && !changes) {
    const none = app.trace().detail.ready ? "No contended wait is known." : "Reading the trace…";
    return [h("h2", {}, none), h("p", { class: "hint" }, hint)];
  }
  // The mark has its sums in the panels, not here.
  const whole = app.store.get().mark ? ", in the whole trace" : "";
  return [
    ...(objects ? [h("h2", {}, `Waited for most${whole}`), objects] : []),
    ...(threads ? [h("h2", {}, `Waited most${whole}`), threads] : []),
    ...(changes ? [h("h2", {}, "Changed during the run"), changes] : []),
    h("p", { class: "hint" }, hint),
  ];
}

function changesOf(app: App, { locks, edges_ns }: OverTime): HTMLElement | null {
  const items = locks.flatMap((lock) =>
    lock.changes.map((change) =>
      h("li", {}, named(lock.label), ", ", changeLink(app, change, lock, edges_ns)),
    ),
  );
  return items.length ? h("ul", { class: "plain" }, ...items.slice(0, MOST)) : null;
}

function list(app: App, by: RowKind, rows: readonly RowData[]): HTMLElement | null {
  const first = rows.filter((row) => row.wait_ns > 0);
  if (!first.length) return null;
  const most = first[0]?.wait_ns ?? 1;
  return h("ol", { class: "most" }, ...first.map((row) => item(app, by, row, most)));
}

function item(app: App, by: RowKind, row: RowData, most: number): HTMLElement {
  const go = () => app.store.update({ selection: { kind: "row", by, row: row.row } });
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${(100 * row.wait_ns) / most}%`;
  const several = app.trace().processes.length > 1;
  return h(
    "li",
    {},
    h("span", {}, button(named(row.label), go, { class: "link" }), several ? ` of ${row.pid}` : ""),
    h("span", { class: "figure" }, `${duration(row.wait_ns)} in ${plural(row.waits, "wait")}`),
    h("span", { class: "track" }, bar),
  );
}
