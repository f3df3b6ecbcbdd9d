// The actions of clicks and keys in the timeline: select, mark, fold, fit.
import type { App } from "../../base/app";
import { FLAGS } from "../../base/protocol";
import type { PaneKind, Range, Selection } from "../../base/state";
import { duration } from "../../base/units";
import type { SelectedThing } from "../../details/selected";
import type { Span } from "../../model/find";
import { groupOf, type Item } from "../../model/layout";
import type { Motion } from "../../model/motion";
import type { RowData } from "../../model/rows";
import type { Pane } from "../drawing/pane";
import type { Cursor } from "./cursor";
import type { Menu } from "./menu";
import { rowEntries } from "./row_menu";

export class Actions {
  constructor(
    private readonly app: App,
    private readonly motion: Motion,
    private readonly panes: Readonly<Record<PaneKind, Pane>>,
    private readonly cursor: Cursor,
    private readonly selected: SelectedThing,
    private readonly redraw: () => void,
    private readonly rowMenu: Menu,
  ) {}

  /** Selects the thing at a point of the window. */
  click(pane: Pane, x: number, y: number): void {
    this.cursor.pane = pane;
    pane.names.element.focus({ preventScroll: true });
    const hit = pane.hit(x, y, this.motion.range(), this.motion.whole().to);
    if (!hit) {
      const item = pane.itemAt(y)?.item;
      if (item?.kind === "group") this.pick(pane.by, item);
      else this.app.store.update({ selection: null });
      return;
    }
    pane.cursor = pane.layout.find(hit.data.row);
    this.cursor.span = hit.span;
    const { by } = pane;
    const row = rowSelection(by, hit.data.row);
    this.app.store.update({ selection: hit.span ? selectionOf(by, hit.span) : row });
  }

  /** A double click shows a thing as wide as it fits. */
  open(pane: Pane, x: number, y: number): void {
    const span = pane.hit(x, y, this.motion.range(), this.motion.whole().to)?.span;
    if (span) this.motion.flyTo({ from: span.t_ns, to: span.t_ns + span.dur_ns });
  }

  /** Selects a row, or folds or unfolds a process. */
  pick(by: PaneKind, item: Item): void {
    const pane = this.panes[by];
    pane.cursor = item;
    this.cursor.pane = pane;
    this.cursor.span = null;
    if (item.kind === "group") this.fold(item.key, !item.folded);
    else this.app.store.update({ selection: rowSelection(by, item.data.row) });
  }

  /** Selects the thing at the keyboard cursor. */
  activate(): boolean {
    const item = this.cursor.pane.cursor;
    if (!item) return false;
    const { span } = this.cursor;
    if (span && item.kind === "row") {
      this.app.store.update({ selection: selectionOf(this.cursor.pane.by, span) });
    } else this.pick(this.cursor.pane.by, item);
    return true;
  }

  toggleGroup(): void {
    const item = this.cursor.pane.cursor;
    if (item?.kind === "group") this.fold(item.key, !item.folded);
    else if (item) this.fold(groupOf(item.data, this.app.store.get().byName), true);
  }

  fold(group: string, fold: boolean): void {
    const { folded } = this.app.store.get();
    const others = folded.filter((one) => one !== group);
    this.app.store.update({ folded: fold ? [...others, group] : others });
  }

  /** Shows the menu for the thing at a point of the window. */
  menu(pane: Pane, x: number, y: number): void {
    const hit = pane.hit(x, y, this.motion.range(), this.motion.whole().to);
    if (hit) this.show(hit.data, hit.span, hit.ns, x, y);
  }

  /** Shows the menu for a row, at its name. */
  menuOf(item: Item, x: number, y: number): void {
    if (item.kind === "row") this.show(item.data, null, null, x, y);
  }

  /** Shows the menu for the thing at the keyboard cursor. */
  menuAtCursor(): boolean {
    const { pane, span } = this.cursor;
    const item = pane.cursor;
    if (item?.kind !== "row") return false;
    const box = pane.names.element.getBoundingClientRect();
    const y = box.top + (pane.box(item.data.row, 0)?.y ?? 0);
    this.show(item.data, span, null, box.left + 24, y + 18);
    return true;
  }

  private show(row: RowData, span: Span | null, at: number | null, x: number, y: number): void {
    const zoomTo = (range: Range) => this.motion.flyTo(range);
    this.rowMenu.show(rowEntries(this.app, row, span, at, zoomTo), x, y);
  }

  /** Shows the selection. If the view already shows it, shows the whole trace. */
  fit(): void {
    const target = this.selected.range();
    const view = this.motion.range();
    const length = target ? target.to - target.from : 0;
    const shown = target && target.from >= view.from && target.to <= view.to;
    const wide = length > (view.to - view.from) * 0.6;
    if (!target || (shown && wide)) this.motion.showAll();
    else this.motion.flyTo(target);
  }

  /** Marks the selection, or the visible range. If this range is marked already, clears the mark. */
  mark(): void {
    const target = this.selected.range();
    const whole = this.motion.whole();
    const view = this.motion.range();
    const seen = { from: Math.max(whole.from, view.from), to: Math.min(whole.to, view.to) };
    const mark = target && target.to > target.from ? target : seen;
    const before = this.app.store.get().mark;
    if (before && before.from === mark.from && before.to === mark.to) {
      this.app.store.update({ mark: null });
      return;
    }
    this.app.store.update({ mark: { from: Math.round(mark.from), to: Math.round(mark.to) } });
    this.app.announce(`Marked ${duration(mark.to - mark.from)}`);
  }

  markRange(range: Range): void {
    const from = Math.max(0, Math.round(range.from));
    this.app.store.update({ mark: { from, to: Math.max(from + 1, Math.round(range.to)) } });
  }

  /** Clears the selection, else the mark. Returns whether there was one. */
  escape(): boolean {
    const { selection, mark } = this.app.store.get();
    if (this.cursor.span) this.cursor.span = null;
    if (selection) this.app.store.update({ selection: null });
    else if (mark) this.app.store.update({ mark: null });
    else return false;
    this.redraw();
    return true;
  }
  /** Goes from the threads to the processors, if there are any, to the locks and back. */
  switchPane(): void {
    const { thread, processor, object } = this.panes;
    const all = processor.layout.items.length ? [thread, processor, object] : [thread, object];
    this.cursor.enter(all[(all.indexOf(this.cursor.pane) + 1) % all.length] ?? thread);
  }
}

/** A turn leads to its thread. Merged turns may have several threads. */
export function selectionOf(by: PaneKind, span: Span): Selection | null {
  if (by === "processor") {
    const merged = (span.flags & FLAGS.merged) !== 0;
    return merged ? null : { kind: "row", by: "thread", row: span.other };
  }
  if (span.wait_id) return { kind: "wait", wait: span.wait_id };
  const at = Math.round(span.t_ns + span.dur_ns / 2);
  return { kind: "span", by, row: span.row, lane: span.lane, at };
}

/** A processor has no details beyond its row. */
function rowSelection(by: PaneKind, row: number): Selection | null {
  return by === "processor" ? null : { kind: "row", by, row };
}
