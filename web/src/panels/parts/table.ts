// A table with any number of rows. The user can sort it by each column, with the mouse or the keyboard.
import { button, h, named } from "../../base/dom";
import { csvOf, save } from "../../base/save";
import { plain } from "../../base/text";
import { VirtualRows } from "./rows";

export interface Column<T> {
  readonly id: string;
  readonly title: string;
  /** The meaning of the column, shown at its head. */
  readonly help?: string;
  /** The width of the column, in the syntax of CSS grids. */
  readonly width: string;
  readonly value: (row: T) => number | string;
  /** Whether the column is aligned to the right, as numbers are. */
  readonly numeric?: boolean;
  /** The text to show; by default the value itself. */
  readonly text?: (row: T) => string;
  /** Whether the least value comes first at the first sort; so for texts. */
  readonly least?: boolean;
  /** A share of the width to fill, 0 to 1, for quick comparison. */
  readonly bar?: (row: T) => number;
}

export interface TableOptions<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  /** The first column to sort by. */
  readonly sort: string;
  /** A row became the current row, or none is current (null). */
  readonly active?: (row: T | null) => void;
  /** The user clicked a row, or pressed Enter on it. */
  readonly open?: (row: T) => void;
}

export const ROW_HEIGHT = 22;
let tables = 0;

export class DataTable<T> {
  readonly element: HTMLElement;
  /** A button that saves all rows in their present order. */
  readonly saver: HTMLElement;
  private readonly id = `table-${tables++}`;
  private readonly body: VirtualRows;
  private readonly heads = new Map<string, HTMLElement>();
  private sorted: T[] = [];
  private at = -1;
  private by: string;
  /** Whether the sort is in the first direction of the column. */
  private down = true;

  constructor(private readonly options: TableOptions<T>) {
    this.by = options.sort;
    this.body = new VirtualRows(ROW_HEIGHT, (from, to) => this.fill(from, to), ROW_HEIGHT);
    const head = h("div", { class: "table-row table-head", role: "row" });
    for (const column of options.columns) head.append(this.head(column));
    this.element = h(
      "div",
      { class: "table", role: "grid", tabindex: 0, "aria-label": options.label },
      h("div", { class: "table-top", role: "rowgroup" }, head),
      this.body.element,
    );
    this.saver = button("Save as CSV", () => {
      const name = `${options.label.toLowerCase().replaceAll(" ", "-")}.csv`;
      save(new Blob([this.csv()], { type: "text/csv" }), name);
    });
    this.body.within(this.element);
    this.element.style.setProperty("--columns", options.columns.map((c) => c.width).join(" "));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("copy", copyRows);
    this.mark();
  }

  /** Sets the rows, in any order. */
  set(rows: readonly T[]): void {
    this.sorted = [...rows];
    this.at = -1;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.sort();
  }

  /** The CSV has plain numbers, and times in ns. */
  private csv(): string {
    const { columns } = this.options;
    const rows = this.sorted.map((row) => columns.map(({ value }) => value(row)));
    return csvOf([columns.map(({ id }) => id), ...rows]);
  }

  private head(column: Column<T>): HTMLElement {
    const name = button(column.title, () => this.sortBy(column.id), { tabindex: -1 });
    if (column.help) name.title = column.help;
    const kind = column.numeric ? "table-cell number" : "table-cell";
    const head = h("div", { role: "columnheader", class: kind }, name);
    this.heads.set(column.id, head);
    return head;
  }

  private sortBy(id: string): void {
    this.down = this.by === id ? !this.down : true;
    this.by = id;
    this.sort();
  }

  private sort(): void {
    const value = this.options.columns.find((column) => column.id === this.by)?.value;
    const sign = this.ascends() ? 1 : -1;
    if (value) {
      this.sorted.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (typeof x === "string" || typeof y === "string") {
          return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
        }
        return sign * (x - y);
      });
    }
    this.mark();
    this.body.set(this.sorted.length);
  }

  /** Returns whether the least value comes first. At the first sort this is so for texts and times only. */
  private ascends(): boolean {
    const column = this.options.columns.find(({ id }) => id === this.by);
    const any = this.sorted[0];
    const text = any !== undefined && typeof column?.value(any) === "string";
    return (column?.least ?? text) === this.down;
  }

  private mark(): void {
    const sorted = this.ascends() ? "ascending" : "descending";
    for (const [id, head] of this.heads) {
      head.setAttribute("aria-sort", id === this.by ? sorted : "none");
    }
  }

  private fill(from: number, to: number): readonly HTMLElement[] {
    return this.sorted.slice(from, to).map((row, n) => this.row(row, from + n));
  }

  private row(row: T, at: number): HTMLElement {
    const element = h("div", {
      class: "table-row",
      role: "row",
      id: `${this.id}-${at}`,
      "aria-rowindex": at + 2,
      "aria-selected": at === this.at,
    });
    for (const column of this.options.columns) element.append(cell(column, row));
    element.setAttribute("aria-selected", String(at === this.at));
    element.addEventListener("click", () => {
      this.go(at);
      this.options.open?.(row);
    });
    return element;
  }

  private go(at: number): void {
    this.at = Math.max(0, Math.min(this.sorted.length - 1, at));
    const row = this.sorted[this.at];
    if (row === undefined) return;
    this.element.setAttribute("aria-activedescendant", `${this.id}-${this.at}`);
    this.body.reveal(this.at);
    this.options.active?.(row);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return;
    const page = this.body.page();
    const to: Record<string, number> = {
      ArrowDown: this.at + 1,
      ArrowUp: this.at - 1,
      PageDown: this.at + page,
      PageUp: this.at - page,
      Home: 0,
      End: this.sorted.length - 1,
    };
    const next = to[event.key];
    const row = this.sorted[this.at];
    if (next !== undefined) this.go(next);
    else if (event.key === "Enter" && row !== undefined) this.options.open?.(row);
    else if (/^[<>]$/.test(event.key)) this.sortBesides(event.key === ">" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  /** Sorts by a column beside the present sort column. */
  private sortBesides(step: number): void {
    const columns = this.options.columns;
    const now = columns.findIndex((column) => column.id === this.by);
    const next = columns[(now + step + columns.length) % columns.length];
    if (next) this.sortBy(next.id);
  }
}

/** Puts the selected part of several cells into the clipboard, in the format of spreadsheets. */
function copyRows(event: ClipboardEvent): void {
  const selected = getSelection();
  if (!selected?.rangeCount) return;
  const part = selected.getRangeAt(0).cloneContents();
  const rows = [...part.querySelectorAll(".table-row")];
  const lines = rows.length ? rows : [part];
  const texts = lines.map((row) =>
    [...row.querySelectorAll(".table-cell")].map((one) => one.textContent),
  );
  if (!texts.some((cells) => cells.length > 1)) return;
  event.clipboardData?.setData("text/plain", texts.map((cells) => cells.join("\t")).join("\n"));
  event.preventDefault();
}

function cell<T>(column: Column<T>, row: T): HTMLElement {
  const value = column.value(row);
  const text = column.text?.(row) ?? String(value);
  const element = h("div", {
    class: column.numeric ? "table-cell number" : "table-cell",
    role: "gridcell",
  });
  element.dataset["column"] = column.id;
  element.dataset["value"] = typeof value === "number" ? String(value) : value.slice(0, 200);
  const bar = column.bar?.(row) ?? 0;
  if (bar > 0) {
    const filled = h("span", { class: "bar", "aria-hidden": "true" });
    filled.style.width = `${Math.min(1, bar) * 100}%`;
    element.append(filled);
  }
  element.append(h("span", { class: "cell-text" }, column.numeric ? text : named(text)));
  if (!column.numeric) element.title = plain(text);
  return element;
}
