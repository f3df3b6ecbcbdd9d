// The panel that compares two parts of the trace: A, a mark that was kept, and B, what is marked now, or the whole.
import type { App, Panel } from "../../base/app";
import { button, h } from "../../base/dom";
import { wholeOf } from "../../base/extent";
import type { Contention } from "../../base/protocol";
import type { Range } from "../../base/state";
import { count, duration, plural } from "../../base/units";
import { Asking } from "../parts/asking";
import { rangeText } from "../parts/scope";
import { type Column, DataTable } from "../parts/table";
import { showWorst } from "../parts/worst";
import { type By, type Pair, pairsOf, type Sums, scaled } from "./pairs";

const LIMIT = 2000;
const HINT = "Mark a part and keep it (N), then mark another: their sums stand here side by side.";

export const COMPARE: Panel = {
  id: "compare",
  title: "Compare",
  help: "Two parts of the trace side by side: how much was waited and held in each",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  let by: By = "object";
  let perSecond = false;
  let lengths = { a: 1, b: 1 };
  const choice = h("select", { "aria-label": "Compare", id: "compare-by" });
  for (const [value, text] of [
    ["object", "By object"],
    ["thread", "By thread"],
    ["site", "By call site"],
  ] as const) {
    choice.append(h("option", { value }, text));
  }
  const rate = h("input", { type: "checkbox", id: "compare-rate" });
  const parts = h("p", { class: "totals" });
  const value = (pair: Pair, side: "a" | "b", what: keyof Sums) =>
    scaled(pair[side][what], lengths[side], perSecond);
  const table = new DataTable<Pair>({
    label: "Compare",
    columns: columns(value),
    sort: "more_wait_ns",
    open: (pair) =>
      void showWorst(app, pair).catch((error: unknown) => app.notify(String(error), "error")),
  });
  const asking = new Asking<readonly [Contention, Contention] | null>({
    app,
    panel: element,
    ask: async (signal) => {
      const { other, mark } = app.store.get();
      if (!other) return null;
      const ask = (part: Range | null) => {
        const range = part ? { from_ns: Math.round(part.from), to_ns: Math.round(part.to) } : {};
        return app.source.json("contention", { by, ...range, limit: LIMIT }, signal);
      };
      return [await ask(other), await ask(mark)];
    },
    show: (answers) => {
      const { other, mark } = app.store.get();
      if (!answers || !other) {
        parts.textContent = HINT;
        table.set([]);
        return;
      }
      const now = mark ?? wholeOf(app.trace());
      lengths = { a: other.to - other.from, b: now.to - now.from };
      parts.replaceChildren(
        part("A", other, answers[0]),
        part(mark ? "B" : "B, the whole", now, answers[1]),
      );
      table.set(pairsOf(answers[0], answers[1], by));
    },
  });
  choice.addEventListener("change", () => {
    by = choice.value as By;
    asking.renew();
  });
  rate.addEventListener("change", () => {
    perSecond = rate.checked;
    asking.renew();
  });
  const keep = button("Keep the mark as A", () => keepMark(app));
  const swap = button("Swap A and B", () => {
    const { other, mark } = app.store.get();
    app.store.update({ other: mark, mark: other });
  });
  const drop = button("Let go of A", () => app.store.update({ other: null }));
  app.store.watch(["mark", "other"], ({ mark, other }) => {
    keep.hidden = mark === null;
    swap.hidden = mark === null || other === null;
    drop.hidden = other === null;
    asking.renew();
  });
  const rated = h("label", {}, rate, " in a second of each");
  element.append(
    h(
      "div",
      { class: "panel-column" },
      h("div", { class: "panel-bar" }, keep, swap, drop, choice, rated, table.saver),
      asking.element,
      parts,
      table.element,
    ),
  );
}

/** Keeps what is marked as the part that others are compared with, and lets go of it as the mark. */
export function keepMark(app: App): void {
  const { mark } = app.store.get();
  if (mark) app.store.update({ other: mark, mark: null });
  else app.notify("Mark what to keep first");
}

function part(name: string, range: Range, { report, uncontended }: Contention): HTMLElement {
  const what =
    uncontended || `${duration(report.wait_ns)} contended in ${plural(report.waits, "wait")}`;
  const line = h("span", { class: "part" }, h("b", {}, name), ` ${rangeText(range)}: ${what} `);
  line.dataset["waitNs"] = String(report.wait_ns);
  return line;
}

function columns(value: (pair: Pair, side: "a" | "b", what: keyof Sums) => number): Column<Pair>[] {
  const of = (side: "a" | "b", what: keyof Sums, title: string, help: string): Column<Pair> => ({
    id: `${side}_${what}`,
    title: `${title} ${side.toUpperCase()}`,
    help,
    width: "minmax(76px, 1fr)",
    numeric: true,
    value: (pair) => value(pair, side, what),
    text: (pair) => shown(value(pair, side, what), what),
  });
  const more = (what: keyof Sums, title: string): Column<Pair> => ({
    id: `more_${what}`,
    title,
    help: "B less A",
    width: "minmax(84px, 1fr)",
    numeric: true,
    value: (pair) => value(pair, "b", what) - value(pair, "a", what),
    text: (pair) => {
      const difference = value(pair, "b", what) - value(pair, "a", what);
      const sign = difference > 0 ? "+" : difference < 0 ? "−" : "";
      return sign + shown(Math.abs(difference), what);
    },
  });
  const waited = "How long threads waited for what another thread had";
  return [
    { id: "label", title: "What", width: "minmax(220px, 30%)", value: (pair) => pair.label },
    of("a", "wait_ns", "Waited", waited),
    of("b", "wait_ns", "Waited", waited),
    more("wait_ns", "Waited, B−A"),
    of("a", "waits", "Waits", "Contended waits"),
    of("b", "waits", "Waits", "Contended waits"),
    of("a", "hold_ns", "Held", "How long locks were held"),
    of("b", "hold_ns", "Held", "How long locks were held"),
    more("hold_ns", "Held, B−A"),
  ];
}

function shown(value: number, what: keyof Sums): string {
  if (!value) return "–";
  if (what.endsWith("_ns")) return duration(value);
  return Number.isInteger(value) ? count(value) : value.toFixed(1);
}
