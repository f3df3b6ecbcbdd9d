// The panel of the lock order: threads held a lock and asked for another lock. It has a graph and a table.
import type { App, Panel } from "../../base/app";
import { h } from "../../base/dom";
import type { Order, OrderEdge, OrderNode } from "../../base/protocol";
import { count, exact, plural } from "../../base/units";
import { named } from "../../model/describe";
import { aboutBox } from "../parts/about";
import { Asking } from "../parts/asking";
import { rowLabel } from "../parts/labels";
import { DataTable } from "../parts/table";
import { drawOrder } from "./order_graph";

const LIMIT = 300;

export const ORDER: Panel = {
  id: "order",
  title: "Lock order",
  help: "Which lock threads held while they asked for another lock; a cycle can deadlock",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const totals = h("p", { class: "totals" });
  const graph = h("div", {
    class: "graph",
    tabindex: 0,
    role: "region",
    "aria-label": "Lock-order graph",
  });
  const about = aboutBox();
  let nodes = new Map<number, OrderNode>();
  const name = (row: number) => label(nodes.get(row));
  const describe = async (edge: OrderEdge) =>
    about.replaceChildren(await aboutEdge(app, edge, name));
  const table = new DataTable<OrderEdge>({
    label: "Lock order",
    columns: [
      {
        id: "cycle",
        title: "Cycle",
        help: "Whether the order can close a cycle of waits",
        width: "70px",
        value: (edge) => Number(edge.in_cycle) / (edge.suppressed.length ? 2 : 1),
        text: (edge) =>
          closes(edge) ? "✖ cycle" : edge.in_cycle ? edge.suppressed.join(", ") : "–",
      },
      {
        id: "held",
        title: "Held",
        help: "The lock that a thread had",
        width: "minmax(110px, 1fr)",
        value: (edge) => name(edge.held_row),
      },
      {
        id: "wanted",
        title: "Asked for",
        help: "The lock that the thread asked for meanwhile",
        width: "minmax(110px, 1fr)",
        value: (edge) => name(edge.wanted_row),
      },
      {
        id: "count",
        title: "Times",
        width: "70px",
        numeric: true,
        value: (edge) => edge.count,
        text: (edge) => count(edge.count),
      },
    ],
    sort: "cycle",
    active: (edge) => {
      if (edge) void describe(edge);
    },
    open: (edge) => show(app, edge),
  });
  const asking = new Asking<Order>({
    app,
    panel: element,
    ask: (signal) => app.source.json("order", { limit: LIMIT }, signal),
    show: (answer) => {
      nodes = new Map(answer.nodes.map((node) => [node.row, node]));
      totals.textContent = summary(answer);
      table.set(answer.edges);
      graph.replaceChildren(
        drawOrder(answer, {
          label,
          node: (node) =>
            app.store.update({ selection: { kind: "row", by: "object", row: node.row } }),
          edge: (edge) => void describe(edge),
        }),
      );
    },
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      h("div", { class: "panel-bar" }, table.saver),
      asking.element,
      totals,
      h(
        "div",
        { class: "panel-split even" },
        graph,
        h("div", { class: "panel-column" }, table.element, about),
      ),
    ),
  );
  asking.renew();
}

/** Reasons why a cycle is not reported. */
const WHY: Readonly<Record<string, string>> = {
  gate: "two of its threads held the same other lock",
  "one-thread": "two of its orders are of the same thread",
  shared: "readers do not exclude readers",
  apart: "a creation, a join or a barrier put one order before another",
  try: "a request was a try, or had a time limit",
  memory: "a lock may be a later lock at the same address",
  incomplete: "missing events may keep the orders apart",
  deadlock: "it happened, and is reported as a deadlock",
  covered: "its orders are in other cycles, which are reported",
};

function closes(edge: OrderEdge): boolean {
  return edge.in_cycle && !edge.suppressed.length;
}

function summary(answer: Order): string {
  if (!answer.edges.length) return "No lock was asked for while another was held";
  const cycles = answer.edges.filter(closes).length;
  return [
    `${plural(answer.nodes.length, "lock")}, ${plural(answer.edges_total, "order")}`,
    cycles
      ? `${cycles} of them close a cycle that can deadlock, drawn dashed: see Findings`
      : "no cycle that can deadlock",
    answer.edges_total > answer.edges.length
      ? `the ${answer.edges.length} most frequent are shown`
      : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function label(node: OrderNode | undefined): string {
  return node ? named(node) : "?";
}

async function aboutEdge(
  app: App,
  edge: OrderEdge,
  name: (row: number) => string,
): Promise<HTMLElement> {
  const thread = edge.thread_row ? await rowLabel(app, "thread", edge.thread_row) : "?";
  const guards = edge.guards.map(name).join(", ");
  const facts = [
    `${name(edge.held_row)} was held, taken at ${edge.held_site || "an unknown place"}`,
    `${name(edge.wanted_row)} was asked for at ${edge.wanted_site || "an unknown place"}`,
    `${count(edge.count)} times; first at ${exact(edge.first_ns)} by thread ${thread}`,
    edge.one_thread ? "always by this thread" : "by several threads",
    edge.blocked ? "it had to wait at least once" : "it never had to wait",
    edge.tries ? "only by try-locks, which do not wait" : "",
    guards ? `while ${guards} was always held` : "",
    closes(edge) ? "part of a cycle: other threads take these locks in another order" : "",
    ...(closes(edge)
      ? []
      : edge.suppressed.map((why) => `part of a cycle, but ${WHY[why] ?? why}`)),
  ];
  return h("ul", {}, ...facts.filter(Boolean).map((fact) => h("li", {}, fact)));
}

/** Shows the first time that an order occurred. */
function show(app: App, edge: OrderEdge): void {
  app.store.update({ selection: { kind: "row", by: "object", row: edge.wanted_row } });
  const air = Math.max(1e4, app.trace().end_ns / 1e4);
  app.zoomTo({ from: Math.max(0, edge.first_ns - air), to: edge.first_ns + air });
}
