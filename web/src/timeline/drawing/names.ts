// The names at the left of a pane: a tree of the visible rows, with keyboard navigation.
import { h, named } from "../../base/dom";
import { plain } from "../../base/text";
import { count, duration } from "../../base/units";
import { describeRow } from "../../model/describe";
import type { Item, Layout, Placed } from "../../model/layout";

export interface NamesOptions {
  readonly label: string;
  readonly prefix: string;
  readonly groupName: (process: number, name: string) => string;
  readonly picked: (item: Item) => void;
  /** The user asked for the menu of a name, at a place of the window. */
  readonly menu: (item: Item, x: number, y: number) => void;
  /** The pointer came to the name of a row, or left it. */
  readonly pointed: (row: number) => void;
}

export class Names {
  readonly element: HTMLElement;
  private shown = new Map<string, { readonly element: HTMLElement; item: Item }>();
  private drawn: readonly unknown[] = [];

  constructor(private readonly options: NamesOptions) {
    this.element = h("div", {
      class: "names",
      role: "tree",
      "aria-multiselectable": "true",
      tabindex: 0,
      "aria-label": options.label,
    });
  }

  /** Puts the names of the visible rows at the places of their rows. */
  draw(
    layout: Layout,
    places: readonly Placed[],
    cursor: Item | null,
    selected: readonly number[],
  ): void {
    const now = [layout, cursor, ...selected, ...places.flatMap(({ item, y }) => [item, y])];
    // If the view moves only in time, the names stay as they are.
    const same = now.length === this.drawn.length && now.every((one, at) => one === this.drawn[at]);
    if (same) return;
    this.drawn = now;
    const seen = new Map<string, { readonly element: HTMLElement; item: Item }>();
    for (const { item, y } of places) {
      const key = keyOf(item);
      const shown = this.shown.get(key) ?? { element: this.make(item), item };
      const { element } = shown;
      if (shown.item !== item) this.renew(shown, item);
      put(element, item, y);
      element.classList.toggle("pinned", item.pinned);
      element.setAttribute("aria-setsize", String(layout.items.length));
      element.setAttribute("aria-posinset", String(layout.placeOf(item) + 1));
      element.classList.toggle("cursor", cursor !== null && keyOf(cursor) === key);
      const isSelected = item.kind === "row" && selected.includes(item.data.row);
      element.setAttribute("aria-selected", String(isSelected));
      if (item.kind === "group") element.setAttribute("aria-expanded", String(!item.folded));
      seen.set(key, shown);
    }
    for (const [key, { element }] of this.shown) if (!seen.has(key)) element.remove();
    for (const { element } of seen.values()) {
      if (element.parentElement !== this.element) this.element.append(element);
    }
    this.shown = seen;
    if (cursor && seen.has(keyOf(cursor))) {
      this.element.setAttribute("aria-activedescendant", this.idOf(cursor));
    } else {
      this.element.removeAttribute("aria-activedescendant");
    }
  }

  /** Forgets the shown names, as the rows have changed. */
  clear(): void {
    for (const { element } of this.shown.values()) element.remove();
    this.shown.clear();
    this.drawn = [];
  }

  private idOf(item: Item): string {
    return `${this.options.prefix}-${keyOf(item)}`;
  }

  private make(item: Item): HTMLElement {
    const element = h("div", { role: "treeitem", id: this.idOf(item), class: `name ${item.kind}` });
    this.fill(element, item);
    element.addEventListener("click", () => {
      this.options.picked(this.shown.get(keyOf(item))?.item ?? item);
    });
    element.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.options.menu(this.shown.get(keyOf(item))?.item ?? item, event.clientX, event.clientY);
    });
    if (item.kind === "row") {
      element.addEventListener("pointerenter", () => this.options.pointed(item.data.row));
      element.addEventListener("pointerleave", () => this.options.pointed(0));
    }
    return element;
  }

  /** Updates the figures of a row. */
  private renew(shown: { readonly element: HTMLElement; item: Item }, item: Item): void {
    const data = shown.item.kind === "row" ? shown.item.data : null;
    shown.item = item;
    if (item.kind === "row" && item.data !== data) this.fill(shown.element, item);
  }

  private fill(element: HTMLElement, item: Item): void {
    element.replaceChildren();
    if (item.kind === "group") {
      const name = this.options.groupName(item.process, item.name);
      element.append(
        h("span", { class: "fold", "aria-hidden": "true" }),
        h("span", { class: "label" }, named(name)),
        h("span", { class: "figure" }, count(item.rows)),
      );
      element.setAttribute("aria-level", "1");
      element.title = plain(name);
    } else {
      const { title, facts } = describeRow(item.data);
      const ns = item.data.by === "processor" ? item.data.hold_ns : item.data.wait_ns;
      const figure = ns ? duration(ns) : "";
      const again = item.data.by === "object" && item.data.generations > 1;
      element.append(
        h("span", { class: "label" }, named(item.data.label)),
        again ? h("span", { class: "badge" }, `×${count(item.data.generations)}`) : "",
        h("span", { class: "figure" }, figure),
        h("span", { class: "visually-hidden" }, facts.join(", ")),
      );
      element.title = plain([title, ...facts].join("\n"));
    }
  }
}

function put(element: HTMLElement, item: Item, y: number): void {
  element.style.transform = `translateY(${y}px)`;
  element.style.height = `${item.height}px`;
}

export function keyOf(item: Item): string {
  // A folded group has another element than an open group. Otherwise it would keep the listener of the old
  // item.
  if (item.kind === "row") return `row-${item.data.row}`;
  return `group-${item.key}-${item.folded ? "folded" : "open"}-${item.rows}`;
}
