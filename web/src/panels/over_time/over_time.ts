// The panel of locks over time: when threads waited for each lock and held it, and when this changed.
import type { App, Panel } from "../../base/app";
import { h } from "../../base/dom";
import type { LockOverTime, OverTime } from "../../base/protocol";
import { duration } from "../../base/units";
import { aboutBox } from "../parts/about";
import { Asking } from "../parts/asking";
import { scope, scopeBar } from "../parts/scope";
import { DataTable } from "../parts/table";
import { changeLink } from "./changes";
import { Charts, sum } from "./charts";

const BINS = 120;
/** No change is searched for in fewer waits or holds. */
const LEAST = 60;

export const OVER_TIME: Panel = {
  id: "over-time",
  title: "Over time",
  help: "Locks over time: how many threads waited, how long it took, and when this changed",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  let answer: OverTime = { edges_ns: [0, 1], locks: [] };
  let shown: LockOverTime | null = null;
  const about = aboutBox();
  const charts = new Charts({
    picked: (bin) => {
      const [from = 0, to = from] = answer.edges_ns.slice(bin, bin + 2);
      app.store.update({ mark: { from, to } });
    },
  });
  const table = new DataTable<LockOverTime>({
    label: "Locks over time",
    columns: [
      { id: "label", title: "Lock", width: "minmax(90px, 1fr)", value: ({ label }) => label },
      {
        id: "wait_ns",
        title: "Waited",
        help: "How long threads waited for the lock, added up",
        width: "88px",
        numeric: true,
        value: ({ waits }) => sum(waits.ns),
        text: ({ waits }) => duration(sum(waits.ns)),
      },
      {
        id: "changes",
        title: "Changes",
        help: "How often the length of its waits or holds changed for good",
        width: "84px",
        numeric: true,
        value: ({ changes }) => changes.length,
        text: ({ changes }) => (changes.length ? String(changes.length) : "–"),
      },
    ],
    sort: "wait_ns",
    active: (lock) => show(lock),
    open: ({ row }) =>
      app.store.update({ selection: row ? { kind: "row", by: "object", row } : null }),
  });

  function show(lock: LockOverTime | null): void {
    shown = lock;
    charts.set(lock, answer.edges_ns);
    about.replaceChildren(...(lock ? changesOf(app, lock, answer.edges_ns) : []));
  }

  const asking = new Asking<OverTime>({
    app,
    panel: element,
    ask: async (signal) => {
      const { selection } = app.store.get();
      const asked = { ...scope(app), bins: BINS };
      const most = await app.source.json("over_time", asked, signal);
      const row = selection?.kind === "row" && selection.by === "object" ? selection.row : 0;
      if (!row || !app.source.served || most.locks.some((lock) => lock.row === row)) return most;
      const one = await app.source.json("over_time", { ...asked, object: [row] }, signal);
      return { ...most, locks: [...one.locks, ...most.locks] };
    },
    show: (found) => {
      answer = found;
      table.set(found.locks);
      const { selection } = app.store.get();
      const ofLock = selection?.kind === "row" && selection.by === "object";
      const row = ofLock ? selection.row : shown?.row;
      show(found.locks.find((lock) => lock.row === row) ?? found.locks[0] ?? null);
      if (!found.locks.length) about.append(h("p", { class: "hint" }, "No lock was held here."));
    },
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      scopeBar(app, table.saver),
      asking.element,
      h(
        "div",
        { class: "panel-split flame-split" },
        charts.element,
        h("div", { class: "panel-column" }, table.element, about),
      ),
    ),
  );
  app.store.watch(["mark", "selection"], () => asking.renew());
}

function changesOf(app: App, lock: LockOverTime, edges: readonly number[]): HTMLElement[] {
  if (!lock.changes.length) {
    const many = Math.max(sum(lock.waits.count), sum(lock.holds.count));
    const none =
      many < LEAST
        ? `Fewer than ${LEAST} waits or holds: too few to find a change.`
        : "No change: the median of its waits or holds never grew by half or fell by a third.";
    return [h("p", { class: "hint" }, none)];
  }
  const items = lock.changes.map((change) => h("li", {}, changeLink(app, change, lock, edges)));
  return [h("h2", {}, "Changes"), h("ul", {}, ...items)];
}
