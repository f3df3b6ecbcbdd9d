// The panel of statistics: the figures of the mark, or of the whole trace.
import type { App, Panel } from "../base/app";
import { h } from "../base/dom";
import type { Figures, Statistics } from "../base/protocol";
import { count, duration, percent, plural } from "../base/units";
import { aboutBox } from "./parts/about";
import { Asking } from "./parts/asking";
import { rangeText, scope, scopeBar } from "./parts/scope";
import { DataTable } from "./parts/table";

interface TypeCount {
  readonly type: string;
  readonly count: number;
  readonly share: number;
}

export const STATISTICS: Panel = {
  id: "statistics",
  title: "Statistics",
  help: "Numbers of events by type, and sums of waits and holds",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const facts = h("dl", { class: "facts" });
  const table = new DataTable<TypeCount>({
    label: "Events by type",
    columns: [
      { id: "type", title: "Event type", width: "minmax(160px, 1fr)", value: (row) => row.type },
      {
        id: "count",
        title: "Events",
        width: "110px",
        numeric: true,
        value: (row) => row.count,
        text: (row) => count(row.count),
        bar: (row) => row.share,
      },
      {
        id: "share",
        title: "Share",
        width: "80px",
        numeric: true,
        value: (row) => row.share,
        text: (row) => percent(row.share),
      },
    ],
    sort: "count",
    open: (row) => app.store.update({ filter: { event: row.type }, tab: "events" }),
  });
  const asking = new Asking<Statistics>({
    app,
    panel: element,
    ask: (signal) => app.source.json("statistics", scope(app), signal),
    show: (answer) => {
      facts.replaceChildren(...factsOf(answer));
      table.set(
        Object.entries(answer.event_types).map(([type, n]) => ({
          type,
          count: n,
          share: n / Math.max(1, answer.events),
        })),
      );
    },
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      scopeBar(app, table.saver),
      asking.element,
      h("div", { class: "panel-split" }, table.element, aboutBox(facts)),
    ),
  );
  app.store.watch(["mark"], () => asking.renew());
}

function factsOf(answer: Statistics): HTMLElement[] {
  const { figures } = answer;
  const kinds: readonly (readonly [string, keyof Figures, keyof Figures])[] = [
    ["Contended", "waits", "wait_ns"],
    ["Idle", "idle_waits", "idle_ns"],
    ["Joining", "join_waits", "join_ns"],
    ["Timed out", "timeout_waits", "timeout_ns"],
    ["Cancelled", "cancelled_waits", "cancelled_ns"],
    ["Unknown", "unknown_waits", "unknown_ns"],
    ["For the GIL", "gil_waits", "gil_ns"],
  ];
  return [
    ...fact("Range", rangeText({ from: answer.from_ns, to: answer.to_ns })),
    ...fact("Events", count(answer.events), answer.events),
    ...fact("Threads", count(answer.threads), answer.threads),
    ...fact("Not waiting", duration(answer.running_ns), answer.running_ns),
    ...fact("Waiting", duration(answer.blocked_ns), answer.blocked_ns),
    ...kinds
      .filter(([name, n]) => figures[n] || name === "Contended")
      .flatMap(([name, n, ns]) =>
        fact(
          name,
          `${duration(figures[ns] ?? 0)} in ${plural(figures[n] ?? 0, "wait")}`,
          figures[ns] ?? 0,
        ),
      ),
    ...fact(
      "Longest, p99",
      `${duration(figures.wait_max_ns)}, ≈ ${duration(figures.wait_p99_ns ?? 0)}`,
    ),
    ...fact("Holds", `${count(figures.holds)} for ${duration(figures.hold_ns)}`, figures.hold_ns),
    ...fact("Longest hold", duration(figures.hold_max_ns), figures.hold_max_ns),
  ];
}

function fact(name: string, text: string, value?: number): HTMLElement[] {
  const shown = h("dd", {}, text);
  shown.dataset["fact"] = name;
  if (value !== undefined) shown.dataset["value"] = String(value);
  return [h("dt", {}, name), shown];
}
