// A pane: the visible rows of one kind, with their names.
import { button, h } from "../../base/dom";
import type { PaneKind, Range } from "../../base/state";
import { count } from "../../base/units";
import { type Span, spanAt } from "../../model/find";
import {
  type Arrangement,
  HEADER,
  type Item,
  Layout,
  laneAt,
  laneBox,
  type Placed,
} from "../../model/layout";
import type { RowData, Rows } from "../../model/rows";
import { Scale } from "../../model/scale";
import type { Tiles } from "../../model/tiles";
import { Names } from "./names";
import { type Brush, paintRow, paintTexts } from "./paint";
import type { Palette } from "./palette";
import { Surface } from "./surface";

/** The greatest distance of the pointer from a span. */
const NEAR_PIXELS = 4;

/** The lane of a row at a point, and the span there if any. */
export interface Hit {
  readonly data: RowData;
  readonly lane: number;
  readonly ns: number;
  readonly span: Span | null;
}

export interface PaneOptions {
  readonly by: PaneKind;
  readonly title: string;
  readonly rows: Rows;
  readonly tiles: Tiles;
  readonly legend: HTMLElement;
  readonly groupName: (process: number, name: string) => string;
  readonly nameOf: (row: number) => string;
  readonly picked: (item: Item) => void;
  readonly pointed: (row: number) => void;
  readonly menu: (item: Item, x: number, y: number) => void;
  readonly scrolled: () => void;
  /** Shows the hidden rows. */
  readonly showAll: () => void;
}

export class Pane {
  readonly element: HTMLElement;
  readonly names: Names;
  readonly canvas = h("canvas", { class: "spans" });
  readonly scroller = h("div", { class: "pane-scroll" });
  layout = new Layout([]);
  /** The states of threads that were drawn so far. */
  readonly states = new Set<number>();
  /** The row with the keyboard focus. */
  cursor: Item | null = null;
  private readonly base: Surface;
  private readonly over: Surface;
  private readonly space = h("div", { class: "pane-space" });
  private readonly view = h("div", { class: "pane-view" });
  private readonly amount = h("span", { class: "amount" });
  /** Shows how many rows are hidden. A click shows the rows again. */
  readonly left = button("", () => this.options.showAll(), { class: "left-out", hidden: true });
  private readonly empty = h("div", { class: "empty", hidden: true });

  constructor(readonly options: PaneOptions) {
    this.names = new Names({
      label: options.title,
      prefix: options.by,
      groupName: options.groupName,
      picked: options.picked,
      pointed: options.pointed,
      menu: options.menu,
    });
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute(
      "aria-label",
      `${options.title} by time; their names are in a list beside it`,
    );
    const over = h("canvas", { class: "over", "aria-hidden": "true" });
    const drawing = h("div", { class: "drawing" }, this.canvas, over, this.empty);
    this.view.append(this.names.element, drawing);
    this.scroller.append(this.view, this.space);
    const title = h("h2", {}, options.title, " ", this.amount, " ", this.left);
    const head = h("div", { class: "pane-head" }, title, options.legend);
    this.element = h(
      "section",
      { class: "pane", "aria-label": options.title },
      head,
      this.scroller,
    );
    this.base = new Surface(this.canvas);
    this.over = new Surface(over);
    this.scroller.addEventListener("scroll", () => options.scrolled(), { passive: true });
  }

  get by(): PaneKind {
    return this.options.by;
  }

  get width(): number {
    return this.base.width;
  }

  get height(): number {
    return this.base.height;
  }

  get top(): number {
    return this.scroller.scrollTop;
  }

  /** Takes the present rows. */
  arrange(arrangement: Arrangement, empty: string, filter: string): void {
    const cursor = this.cursor;
    const before = this.layout.items;
    this.layout = new Layout(this.options.rows.all(), arrangement);
    if (before.length === 0 || before.length > this.layout.items.length) this.names.clear();
    this.space.style.height = `${this.layout.height}px`;
    const { rows } = this.options;
    const all =
      filter && !rows.filter && rows.total ? ": no row matches the filter, all rows are shown" : "";
    this.amount.textContent = count(rows.total) + all;
    this.left.textContent = `${count(this.layout.left)} hidden: show`;
    this.left.hidden = !this.layout.left;
    this.empty.textContent = this.layout.left ? "All rows are hidden" : empty;
    this.empty.hidden = this.layout.items.length > 0;
    if (cursor) this.cursor = this.layout.same(cursor);
  }

  /** Returns the height that shows all rows. */
  needed(): number {
    const head = this.element.offsetHeight - this.scroller.offsetHeight;
    return head + Math.max(this.layout.height, HEADER);
  }

  resize(namesWidth: number): void {
    const width = Math.max(50, this.scroller.clientWidth - namesWidth);
    const height = Math.max(0, this.scroller.clientHeight);
    this.view.style.height = `${height}px`;
    this.view.style.marginBottom = `${-height}px`;
    this.base.resize(width, height);
    this.over.resize(width, height);
  }

  /** Whether pinned rows stay at the top. If they take most of the pane, they scroll. */
  get sticks(): boolean {
    return this.layout.pinnedHeight <= this.height / 2;
  }

  /** Returns the visible items in drawing order. */
  seen(): readonly Placed[] {
    return this.layout.seen(this.top, this.height, this.sticks);
  }

  /** Returns the item at a height of the window. */
  itemAt(clientY: number): Placed | null {
    const below = clientY - this.canvas.getBoundingClientRect().top;
    const stuck = this.sticks && below < this.layout.pinnedHeight;
    const item = this.layout.at(stuck ? below : below + this.top);
    return item && { item, y: stuck ? item.y : item.y - this.top };
  }

  /** Numbers of the visible rows, and of some rows beyond them. */
  visible(extra = 0): number[] {
    const rows: number[] = [];
    const { top, height } = this;
    for (const { item } of this.layout.seen(top - extra, height + 2 * extra, this.sticks)) {
      if (item.kind === "row") rows.push(item.data.row);
    }
    return rows;
  }

  draw(
    range: Range,
    palette: Palette,
    end: number,
    family: string,
    selected: readonly number[],
  ): void {
    const context = this.base.begin();
    const scale = new Scale(range, this.width);
    const nameOf = this.options.nameOf;
    const { states } = this;
    let brush: Brush = { context, scale, palette, end, nameOf, states, texts: [] };
    const seen = this.seen();
    for (const { item, y } of seen) {
      if (item.pinned && y === 0 && brush.texts.length) {
        // Pinned rows cover everything below them, texts included.
        paintTexts(brush, family);
        brush = { ...brush, texts: [] };
      }
      if (item.pinned) context.clearRect(0, y, this.width, item.height);
      if (item.kind === "group") {
        context.fillStyle = palette.get("bg-raised");
        context.fillRect(0, y, this.width, item.height);
        continue;
      }
      if (selected.includes(item.data.row)) {
        context.fillStyle = palette.get("bg-selected");
        context.fillRect(0, y, this.width, item.height);
      }
      paintRow(brush, this.options.tiles, item.data, y);
      context.fillStyle = palette.get("line");
      context.fillRect(0, y + item.height - 1, this.width, 1);
    }
    paintTexts(brush, family);
    const { pinnedHeight } = this.layout;
    if (pinnedHeight && this.sticks) {
      context.fillStyle = palette.get("line-strong");
      context.fillRect(0, pinnedHeight - 1, this.width, 1);
    }
    this.names.draw(this.layout, seen, this.cursor, selected);
  }

  /** Clears the layer over the spans and returns its context. */
  beginOver(): CanvasRenderingContext2D {
    return this.over.begin();
  }

  /** Asks for the missing tiles of the visible part. */
  want(range: Range, end: number): void {
    this.options.tiles.want(
      this.visible(this.height / 2),
      new Scale(range, this.width * devicePixelRatio),
      end,
    );
  }

  /** Returns the thing at a point of the window. */
  hit(clientX: number, clientY: number, range: Range, end: number): Hit | null {
    const box = this.canvas.getBoundingClientRect();
    const placed = this.itemAt(clientY);
    if (placed?.item.kind !== "row") return null;
    const { data } = placed.item;
    const scale = new Scale(range, this.width);
    const ns = scale.ns(clientX - box.left);
    const lane = laneAt(data, clientY - box.top - placed.y);
    const near = NEAR_PIXELS * scale.nsPerPixel;
    const span =
      lane < 0
        ? null
        : spanAt(this.options.tiles, data.row, lane, this.dense(range), end, ns, near);
    return { data, lane, ns, span };
  }

  /** Returns whether there is a queue at a point, and nobody has the lock. */
  isFree({ data, lane, ns }: Hit, range: Range, end: number): boolean {
    if (data.by !== "object" || lane !== 0 || data.lanes < 2) return false;
    const { tiles } = this.options;
    const lanes = Array.from({ length: data.lanes - 1 }, (_, at) => at + 1);
    return lanes.every((own) => !spanAt(tiles, data.row, own, this.dense(range), end, ns, 0));
  }

  /** Returns the scale for fetching spans, in device pixels. */
  dense(range: Range): Scale {
    return new Scale(range, this.width * devicePixelRatio);
  }

  /** Returns the present place of a lane of a row, or null if the row is not shown. */
  box(row: number, lane: number): { y: number; height: number } | null {
    const item = this.layout.find(row);
    if (item?.kind !== "row") return null;
    const { top, height } = laneBox(item.data, lane);
    if (item.pinned && this.sticks) return { y: item.y + top, height };
    const y = item.y - this.top;
    return this.sticks &&
      y < this.layout.pinnedHeight &&
      y + item.height > 0 &&
      this.layout.pinnedHeight
      ? null
      : { y: y + top, height };
  }

  /** Scrolls as little as needed to show an item. */
  reveal(item: Item): void {
    const bottom = item.y + item.height;
    const covered = this.sticks ? this.layout.pinnedHeight : 0;
    if (item.pinned && covered) return;
    if (item.y < this.top + covered) this.scroller.scrollTop = item.y - covered;
    else if (bottom > this.top + this.height) this.scroller.scrollTop = bottom - this.height;
  }
}
