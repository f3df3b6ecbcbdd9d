// The panel of comparisons. It compares two parts of the trace: A is a kept mark, and B is the present mark
// or the whole. If the page was opened with an earlier run, it also compares B with this run.
import type { App, Panel } from "../../base/app";
import { button, h } from "../../base/dom";
import { wholeOf } from "../../base/extent";
import type { Contention } from "../../base/protocol";
import type { Range } from "../../base/state";
import { count, duration, plural } from "../../base/units";
import { Asking } from "../parts/asking";
import { rangeText, scope } from "../parts/scope";
import { type Column, DataTable } from "../parts/table";
import { showWorst } from "../parts/worst";
import { type By, type Pair, pairsOf, pairsOfRuns, type Sums, scaled, sumsOf } from "./pairs";

const LIMIT = 2000;
const HINT =
  "Mark a part and keep it (N), then mark another part: their sums appear here side by side.";

export const COMPARE: Panel = {
  id: "compare",
  title: "Compare",
  help: "Two parts of the trace, or two runs, side by side: how long threads waited and held locks in each",
  mount,
};

/** The things to compare, and how to compare them. */
interface Asked {
  readonly by: By;
  readonly perSecond: boolean;
}

interface Shown {
  readonly pairs: readonly Pair[];
  /** Descriptions of A and B. */
  readonly parts: readonly (HTMLElement | string)[];
}

function mount(element: HTMLElement, app: App): void {
  const choice = h("select", { "aria-label": "Compare", id: "compare-by" });
  for (const [value, text] of [
    ["object", "By object"],
    ["thread", "By thread"],
    ["site", "By call site"],
  ] as const) {
    choice.append(h("option", { value }, text));
  }
  const { before } = app.trace();
  const runs = h("select", { "aria-label": "A is", id: "compare-with" });
  runs.append(
    h("option", { value: "run" }, `With the earlier run, ${before}`),
    h("option", { value: "mark" }, "With a kept mark"),
  );
  runs.hidden = !before;
  const withRun = () => Boolean(before) && runs.value === "run";
  const rate = h("input", { type: "checkbox", id: "compare-rate" });
  const parts = h("p", { class: "totals" });
  const table = new DataTable<Pair>({
    label: "Compare",
    columns: columns(),
    sort: "more_wait_ns",
    open: (pair) =>
      withRun()
        ? showNamed(app, pair, choice.value as By)
        : void showWorst(app, pair).catch((error: unknown) => app.notify(String(error), "error")),
  });
  const asking = new Asking<Shown>({
    app,
    panel: element,
    ask: (signal) => {
      const asked = { by: choice.value as By, perSecond: rate.checked };
      return withRun() ? askRuns(app, asked, signal) : askParts(app, asked, signal);
    },
    show: (shown) => {
      parts.replaceChildren(...shown.parts);
      table.set(shown.pairs);
    },
  });
  const keep = button("Keep the mark as A", () => keepMark(app));
  const swap = button("Swap A and B", () => {
    const { other, mark } = app.store.get();
    app.store.update({ other: mark, mark: other });
  });
  const drop = button("Clear A", () => app.store.update({ other: null }));
  const arrange = () => {
    const { other, mark } = app.store.get();
    keep.hidden = mark === null || withRun();
    swap.hidden = mark === null || other === null || withRun();
    drop.hidden = other === null || withRun();
    asking.renew();
  };
  for (const input of [choice, runs, rate]) input.addEventListener("change", arrange);
  app.store.watch(["mark"], arrange);
  app.store.subscribe(({ other }, was) => {
    if (other === was.other) return;
    // A user who keeps a mark wants to compare with it.
    if (other) runs.value = "mark";
    arrange();
  });
  const rated = h("label", {}, rate, " in a second of each");
  element.append(
    h(
      "div",
      { class: "panel-column" },
      h("div", { class: "panel-bar" }, runs, keep, swap, drop, choice, rated, table.saver),
      asking.element,
      parts,
      table.element,
    ),
  );
}

/** Keeps the mark as A, the part to compare with, and clears the mark. */
export function keepMark(app: App): void {
  const { mark } = app.store.get();
  if (mark) app.store.update({ other: mark, mark: null });
  else app.notify("Mark a part to keep first");
}

async function askParts(app: App, { by, perSecond }: Asked, signal: AbortSignal): Promise<Shown> {
  const { other, mark } = app.store.get();
  if (!other) return { pairs: [], parts: [HINT] };
  const now = mark ?? wholeOf(app.trace());
  const ask = (part: Range | null) => {
    const range = part ? { from_ns: Math.round(part.from), to_ns: Math.round(part.to) } : {};
    return app.source.json("contention", { by, ...range, limit: LIMIT }, signal);
  };
  const [a, b] = [await ask(other), await ask(mark)];
  const rated = (sums: Sums, { from, to }: Range) => (perSecond ? scaled(sums, to - from) : sums);
  const pairs = pairsOf(a, b, by).map((pair) => {
    return { ...pair, a: rated(pair.a, other), b: rated(pair.b, now) };
  });
  const named = mark ? "B" : "B, the whole";
  return { pairs, parts: [markPart("A", other, a), markPart(named, now, b)] };
}

async function askRuns(app: App, { by, perSecond }: Asked, signal: AbortSignal): Promise<Shown> {
  const found = await app.source.json("diff", { by, ...scope(app) }, signal);
  const lengths = [found.runs_before, found.runs_after].map((runs) => runs[0]?.elapsed_ns ?? 0);
  const rated = (sums: Sums, side: 0 | 1) => (perSecond ? scaled(sums, lengths[side] ?? 0) : sums);
  const pairs = pairsOfRuns(found).map((pair) => {
    return { ...pair, a: rated(pair.a, 0), b: rated(pair.b, 1) };
  });
  const { before, name } = app.trace();
  const parts = (["before", "after"] as const).map((side, at) => {
    const sums = sumsOf(found.total, side);
    const what = sums.wait_ns ? contended(sums) : "no contention is known";
    const named = at === 0 ? `A, ${before}` : `B, ${name}`;
    return part(named, `${duration(lengths[at] ?? 0)}: ${what}`, sums.wait_ns);
  });
  return { pairs, parts };
}

function markPart(name: string, range: Range, { report, uncontended }: Contention): HTMLElement {
  const what = uncontended || contended(report);
  return part(name, `${rangeText(range)}: ${what}`, report.wait_ns);
}

function contended({ wait_ns, waits }: { wait_ns: number; waits: number }): string {
  return `${duration(wait_ns)} contended in ${plural(waits, "wait")}`;
}

function part(name: string, text: string, wait_ns: number): HTMLElement {
  const line = h("span", { class: "part" }, h("b", {}, name), ` ${text} `);
  line.dataset["waitNs"] = String(wait_ns);
  return line;
}

/** Shows a name of the earlier run in this run: the waits in a function, or the rows with the name. */
function showNamed(app: App, { label }: Pair, by: By): void {
  const [name = "", place] = label.split(" (");
  if (by === "site") {
    // In another build the offsets differ, so the function stands for all its calls.
    const site = name.replace(/\+0x[0-9a-f]+$/, "");
    app.store.update({ waits: { least: 0, kind: "contended", site }, tab: "waits" });
  } else if (by === "thread" || place === undefined) {
    app.store.update({ rows: label.split(",")[0] ?? "" });
  } else app.notify("It has no name: the runs only have its first call site in common");
}

function columns(): Column<Pair>[] {
  const of = (side: "a" | "b", what: keyof Sums, title: string, help: string): Column<Pair> => ({
    id: `${side}_${what}`,
    title: `${title} ${side.toUpperCase()}`,
    help,
    width: "minmax(76px, 1fr)",
    numeric: true,
    value: (pair) => pair[side][what],
    text: (pair) => shown(pair[side][what], what),
  });
  const more = (what: keyof Sums, title: string): Column<Pair> => ({
    id: `more_${what}`,
    title,
    help: "B minus A",
    width: "minmax(84px, 1fr)",
    numeric: true,
    value: (pair) => pair.b[what] - pair.a[what],
    text: (pair) => {
      const difference = pair.b[what] - pair.a[what];
      const sign = difference > 0 ? "+" : difference < 0 ? "−" : "";
      return sign + shown(Math.abs(difference), what);
    },
  });
  const waited = "How long threads waited for something that another thread had";
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
