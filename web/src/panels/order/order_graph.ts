// Draws the lock-order graph as SVG: boxes for locks, and an arrow from the held lock to the requested lock.

import { svg } from "../../base/dom";
import type { Order, OrderEdge, OrderNode } from "../../base/protocol";
import { drawnLabel } from "../../base/text";
import { layout } from "./order_layout";

const BOX = { width: 184, height: 26, across: 90, down: 14, margin: 12 };
const LETTERS = 24;

export interface GraphOptions {
  readonly label: (node: OrderNode) => string;
  readonly node: (node: OrderNode) => void;
  readonly edge: (edge: OrderEdge) => void;
}

export function drawOrder(order: Order, options: GraphOptions): SVGElement {
  const number = new Map(order.nodes.map((node, at) => [node.row, at]));
  const links = order.edges.map((edge) => ({
    from: number.get(edge.held_row) ?? 0,
    to: number.get(edge.wanted_row) ?? 0,
  }));
  const { layer, place, sizes } = layout(order.nodes.length, links);
  const x = (node: number) => BOX.margin + (layer[node] ?? 0) * (BOX.width + BOX.across);
  const y = (node: number) => BOX.margin + (place[node] ?? 0) * (BOX.height + BOX.down);
  const width = 2 * BOX.margin + sizes.length * (BOX.width + BOX.across) - BOX.across;
  const height = 2 * BOX.margin + Math.max(1, ...sizes) * (BOX.height + BOX.down);
  const picture = svg("svg", {
    width: Math.max(width, BOX.width),
    height,
    role: "img",
    "aria-label": "Locks, and the order in which they are taken; the table says the same",
  });
  picture.append(heads());
  order.edges.forEach((edge, at) => {
    const link = links[at];
    if (link)
      picture.append(
        arrow(edge, curve(x(link.from), y(link.from), x(link.to), y(link.to)), options),
      );
  });
  order.nodes.forEach((node, at) => {
    picture.append(box(node, x(at), y(at), options));
  });
  return picture;
}

/** Returns the heads of arrows, one for each of the two colours. */
function heads(): SVGElement {
  const made = svg("defs", {});
  for (const kind of ["plain", "cycle"]) {
    const head = svg("marker", {
      id: `head-${kind}`,
      class: `edge-head ${kind}`,
      viewBox: "0 0 8 8",
      refX: 8,
      refY: 4,
      markerWidth: 9,
      markerHeight: 9,
      markerUnits: "userSpaceOnUse",
      orient: "auto-start-reverse",
    });
    head.append(svg("path", { d: "M0 0 L8 4 L0 8 z" }));
    made.append(head);
  }
  return made;
}

/** A forward arrow leaves at the right. An arrow back, or to a lock of the same column, bends around. */
function curve(x1: number, y1: number, x2: number, y2: number): string {
  const half = BOX.height / 2;
  if (x2 > x1) {
    const middle = (x1 + BOX.width + x2) / 2;
    return `M${x1 + BOX.width} ${y1 + half} C${middle} ${y1 + half} ${middle} ${y2 + half} ${x2} ${y2 + half}`;
  }
  const [a, b] = [x1 + BOX.width / 2, x2 + BOX.width / 2];
  const low = Math.max(y1, y2) + BOX.height + 30;
  return `M${a} ${y1 + BOX.height} C${a} ${low} ${b} ${low} ${b} ${y2 + BOX.height}`;
}

function arrow(edge: OrderEdge, path: string, options: GraphOptions): SVGElement {
  const kind = edge.in_cycle && !edge.suppressed.length ? "cycle" : "plain";
  const line = svg("path", { d: path, class: `edge ${kind}`, "marker-end": `url(#head-${kind})` });
  // The visible line is thin. The area for the mouse is wider.
  const wide = svg("path", { d: path, class: "edge-hit" });
  wide.addEventListener("click", () => options.edge(edge));
  const group = svg("g", {});
  group.append(line, wide);
  return group;
}

/** Cuts a long text in the middle, as names differ at both ends. */
export function cut(text: string): string {
  if (text.length <= LETTERS) return text;
  return `${text.slice(0, LETTERS - 9)}…${text.slice(-8)}`;
}

function box(node: OrderNode, x: number, y: number, options: GraphOptions): SVGElement {
  const text = options.label(node);
  const group = svg("g", { class: "node", transform: `translate(${x} ${y})` });
  const label = svg("text", { x: BOX.width / 2, y: BOX.height / 2 + 4 });
  label.textContent = drawnLabel(cut(text));
  const title = svg("title", {});
  title.textContent = drawnLabel(`${text} of process ${node.pid}`);
  group.append(svg("rect", { width: BOX.width, height: BOX.height, rx: 3 }), label, title);
  group.addEventListener("click", () => options.node(node));
  return group;
}
