// The panel of the flame graph: the origin of waiting, by the call stacks of waiters or of holders.
import type { App, Panel } from "../../base/app";
import { button, h } from "../../base/dom";
import type { Flame } from "../../base/protocol";
import { count, duration, percent, plural } from "../../base/units";
import { aboutBox } from "../parts/about";
import { Asking } from "../parts/asking";
import { scope, scopeBar, scopeLength } from "../parts/scope";
import { DataTable } from "../parts/table";
import { FlameGraph } from "./flame_graph";
import {
  type FlameNode,
  type FunctionLine,
  flameTree,
  functionLines,
  hitTime,
  pathOf,
} from "./flame_tree";

type Show = "waits" | "holders" | "holds" | "idle" | "inside";
const SHOWN: readonly (readonly [Show, string])[] = [
  ["waits", "Contended waits, by waiter"],
  ["holders", "Contended waits, by holder"],
  ["holds", "Holds"],
  ["idle", "Idle waits"],
  ["inside", "Contended waits, by what the holder did"],
];
const LIMIT = 5000;
/** With more threads than these, nobody could read the filter of rows. */
const THREADS = 20;
const TYPING_MS = 200;

export const FLAME: Panel = {
  id: "flame",
  title: "Flame graph",
  help: "Where the waiting comes from: call stacks of waiters or of holders",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  let show: Show = "waits";
  let bottomUp = false;
  let flame: Flame | null = null;
  let root: FlameNode | null = null;
  const choice = h("select", { "aria-label": "What is shown", id: "flame-show" });
  for (const [value, text] of SHOWN) choice.append(h("option", { value }, text));
  const order = h("select", { "aria-label": "What is at the top", id: "flame-order" });
  order.append(
    h("option", { value: "callers" }, "Callers at the top"),
    h("option", { value: "sites" }, "Call sites at the top"),
  );
  const search = h("input", {
    type: "search",
    placeholder: "Find function",
    "aria-label": "Find functions",
    id: "flame-search",
  });
  const all = button("Show all", () => graph.reset());
  const totals = h("p", { class: "totals" });
  const about = aboutBox();
  const graph = new FlameGraph({
    own: () => new Set(app.trace().processes.map(({ exe }) => exe.split("/").pop() ?? "")),
    active: (node) => about.replaceChildren(...aboutNode(node, root)),
    zoomed: (node) => {
      all.hidden = node === root;
      app.store.update({ rows: threadsOf(node, app) });
    },
  });
  const table = new DataTable<FunctionLine>({
    label: "Functions",
    columns: [
      { id: "name", title: "Function", width: "minmax(110px, 1fr)", value: (line) => line.name },
      {
        id: "ns",
        title: "Total",
        help: "In stacks that contain this function",
        width: "76px",
        numeric: true,
        value: (line) => line.ns,
        text: (line) => duration(line.ns),
        bar: (line) => (root?.ns ? line.ns / root.ns : 0),
      },
      {
        id: "own",
        title: "Here",
        help: "In stacks with this function as call site",
        width: "72px",
        numeric: true,
        value: (line) => line.own,
        text: (line) => (line.own ? duration(line.own) : "–"),
      },
      {
        id: "count",
        title: "Times",
        width: "60px",
        numeric: true,
        value: (line) => line.count,
        text: (line) => count(line.count),
      },
    ],
    sort: "ns",
    open: (line) => {
      search.value = line.name;
      find();
    },
  });

  function find(): void {
    graph.search(search.value.trim());
    summarize();
  }

  function summarize(): void {
    if (!flame || !root) return;
    const word = search.value.trim();
    const many = plural(flame.count, show === "holds" ? "hold" : "wait");
    totals.dataset["ns"] = String(flame.ns);
    totals.textContent = [
      flame.count
        ? `${scopeLength(app)}: ${flame.title}, ${duration(flame.ns)} in ${many}`
        : `${scopeLength(app)}: no ${flame.title}`,
      word && root.ns ? `found: ${percent(hitTime(root, word) / root.ns)}` : "",
      root.ns < flame.ns ? `the ${count(flame.stacks.length)} stacks with most time` : "",
    ]
      .filter(Boolean)
      .join(" · ");
  }

  function draw(): void {
    if (!flame) return;
    root = flameTree(flame, bottomUp);
    graph.set(root);
    about.replaceChildren(...aboutNode(root, root));
  }

  const asking = new Asking<Flame>({
    app,
    panel: element,
    ask: (signal) => app.source.json("flame", { show, ...scope(app), limit: LIMIT }, signal),
    show: (answer) => {
      flame = answer;
      draw();
      table.set(functionLines(answer));
      find();
    },
  });
  choice.addEventListener("change", () => {
    show = choice.value as Show;
    asking.renew();
  });
  order.addEventListener("change", () => {
    bottomUp = order.value === "sites";
    draw();
  });
  let timer: number | undefined;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(find, TYPING_MS);
  });
  all.hidden = true;
  element.append(
    h(
      "div",
      { class: "panel-column" },
      scopeBar(app, choice, order, search, all),
      asking.element,
      totals,
      h(
        "div",
        { class: "panel-split flame-split" },
        graph.element,
        h("div", { class: "panel-column" }, table.element, about),
      ),
    ),
  );
  app.store.watch(["mark"], () => asking.renew());
}

/**
 * Returns the filter of rows that shows the threads of a function. If there are many, it has the
 * threads with most time.
 */
function threadsOf(node: FlameNode, app: App): string {
  if (!node.frame || node.threads.size === app.trace().threads) return "";
  const order = [...node.threads].sort((a, b) => b[1] - a[1]);
  return order
    .slice(0, THREADS)
    .map(([tid]) => tid)
    .join(",");
}

function aboutNode(node: FlameNode, root: FlameNode | null): HTMLElement[] {
  if (!node.frame) return [h("p", { class: "hint" }, "Pick a function to show only its threads")];
  const share = root?.ns ? percent(node.ns / root.ns) : "–";
  const places = [...node.places].sort((a, b) => b[1] - a[1]);
  const path = pathOf(node).map((one) => h("li", {}, h("code", {}, one.frame?.name ?? "")));
  return [
    h("p", {}, h("code", {}, node.frame.name)),
    h("p", {}, `${duration(node.ns)}, ${share}, ${plural(node.count, "time")}`),
    h("p", {}, node.frame.module || "in no known module"),
    h("ul", {}, ...places.map(([place, ns]) => h("li", {}, `${duration(ns)} ${place}`))),
    h("ol", { class: "flame-path", "aria-label": "The stack, from the top" }, ...path),
  ];
}
