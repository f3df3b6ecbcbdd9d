// Draws the flame graph as an icicle: a tree for the mouse and the keyboard.
import { h } from "../../base/dom";
import { plain } from "../../base/text";
import { count, duration, percent } from "../../base/units";
import { type Box, type FlameNode, isHit, layOut, pathOf, sameNode } from "./flame_tree";

const LEVEL = 20;
/** Boxes narrower than this, in pixels, are not drawn. Text needs more. */
const LEAST = 1;
const LEAST_TEXT = 24;

export interface FlameOptions {
  /** Modules of the programs themselves. All others are libraries. */
  readonly own: () => ReadonlySet<string>;
  /** A function became the current function. */
  readonly active: (node: FlameNode) => void;
  /** The user clicked a function, or pressed Enter on it. It fills the width now. */
  readonly zoomed: (node: FlameNode) => void;
}

let graphs = 0;

export class FlameGraph {
  readonly element = h("div", {
    class: "flame",
    role: "tree",
    tabindex: 0,
    "aria-label": "Flame graph",
  });
  private readonly id = `flame-${graphs++}`;
  private root: FlameNode | null = null;
  private zoom: FlameNode | null = null;
  private at: FlameNode | null = null;
  private word = "";
  private boxes: Box[] = [];

  constructor(private readonly options: FlameOptions) {
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("pointerover", (event) => {
      const box = this.boxOf(event.target);
      if (box) this.options.active(box.node);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Shows another tree. The zoom stays if its function is in the new tree. */
  set(root: FlameNode): void {
    const keep = this.zoom ? pathOf(this.zoom) : [];
    this.root = root;
    this.zoom = sameNode(root, keep);
    this.at = this.zoom;
    this.draw();
  }

  /** Marks the functions that contain a text. */
  search(word: string): void {
    this.word = word;
    this.draw();
  }

  /** Shows everything. */
  reset(): void {
    if (this.root) this.zoomTo(this.root);
  }

  private zoomTo(node: FlameNode): void {
    this.zoom = this.at = node;
    this.draw();
    this.options.active(node);
    this.options.zoomed(node);
  }

  private draw(): void {
    const { width } = this.element.getBoundingClientRect();
    if (!this.root || !this.zoom || !width) return;
    this.boxes = layOut(this.zoom, LEAST / width);
    const levels = Math.max(...this.boxes.map((box) => box.level)) + 1;
    const sheet = h("div", { class: "flame-sheet", role: "presentation" });
    sheet.style.height = `${levels * LEVEL}px`;
    sheet.append(...this.boxes.map((box, at) => this.item(box, at, width)));
    this.element.replaceChildren(sheet);
    this.mark();
  }

  private item(box: Box, at: number, width: number): HTMLElement {
    const { node } = box;
    const name = node.frame?.name ?? "all";
    const share = this.root?.ns ? percent(node.ns / this.root.ns) : "–";
    const label = `${name}: ${duration(node.ns)}, ${share}, ${count(node.count)} times`;
    const classes = ["flame-box", this.kind(node)];
    if (box.above) classes.push("above");
    if (isHit(node, this.word)) classes.push("hit");
    const item = h("div", {
      class: classes.join(" "),
      role: "treeitem",
      id: `${this.id}-${at}`,
      "aria-label": label,
      "aria-level": box.level + 1,
      "aria-selected": false,
      title: label,
    });
    if (node.children.length) item.setAttribute("aria-expanded", "true");
    item.dataset["name"] = name.slice(0, 200);
    item.dataset["ns"] = String(node.ns);
    item.style.left = `${box.x * 100}%`;
    item.style.width = `${box.width * 100}%`;
    item.style.top = `${box.level * LEVEL}px`;
    if (box.width * width >= LEAST_TEXT) item.textContent = plain(name);
    return item;
  }

  private kind(node: FlameNode): string {
    if (!node.frame) return "all";
    if (!node.frame.module) return "unknown";
    return this.options.own().has(node.frame.module) ? "own" : "library";
  }

  private boxOf(target: EventTarget | null): Box | undefined {
    const item = target instanceof Element ? target.closest(".flame-box") : null;
    return item ? this.boxes[Number(item.id.slice(this.id.length + 1))] : undefined;
  }

  private click(event: MouseEvent): void {
    const box = this.boxOf(event.target);
    if (box) this.zoomTo(box.node);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.at) return;
    const { at } = this;
    const beside = at.parent?.children ?? [];
    const place = beside.indexOf(at);
    const to: Record<string, FlameNode | null | undefined> = {
      ArrowDown: at.children[0],
      ArrowUp: at.parent,
      ArrowLeft: beside[place - 1],
      ArrowRight: beside[place + 1],
      Home: this.root,
    };
    if (event.key in to) this.go(to[event.key]);
    else if (event.key === "Enter") this.zoomTo(at);
    else if (event.key === "Backspace" && this.zoom?.parent) this.zoomTo(this.zoom.parent);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private go(node: FlameNode | null | undefined): void {
    if (!node || !this.boxes.some((box) => box.node === node)) return;
    this.at = node;
    this.mark();
    this.options.active(node);
  }

  /** Marks the function with the keyboard focus. */
  private mark(): void {
    const at = this.boxes.findIndex((box) => box.node === this.at);
    for (const one of this.element.querySelectorAll("[aria-selected=true]"))
      one.setAttribute("aria-selected", "false");
    const item = at < 0 ? null : this.element.querySelector(`#${this.id}-${at}`);
    item?.setAttribute("aria-selected", "true");
    if (item) this.element.setAttribute("aria-activedescendant", item.id);
    item?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
