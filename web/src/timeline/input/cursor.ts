// The keyboard cursor of the timeline: a pane, a row, a lane and a span, and its movement.
import type { App } from "../../base/app";
import { describeRow, describeSpan } from "../../model/describe";
import { neighbour, type Span, spanAt } from "../../model/find";
import { lanesOf } from "../../model/layout";
import type { Motion } from "../../model/motion";
import type { Pane } from "../drawing/pane";

export class Cursor {
  span: Span | null = null;
  private lane = 0;

  constructor(
    private readonly app: App,
    private readonly motion: Motion,
    public pane: Pane,
    private readonly end: () => number,
    private readonly redraw: () => void,
  ) {}

  /** Goes to another pane: to its last row, or else to its first visible row. */
  enter(pane: Pane): void {
    this.pane = pane;
    pane.names.element.focus({ preventScroll: true });
    if (!pane.cursor) this.moveRow(0);
    else this.say();
  }

  moveRow(step: number): void {
    const { pane } = this;
    const items = pane.layout.items;
    if (!items.length) return;
    const before = pane.cursor ? pane.layout.placeOf(pane.cursor) : -1;
    const seen = pane.layout.at(pane.top);
    const start = before >= 0 ? before + step : seen ? pane.layout.placeOf(seen) : 0;
    pane.cursor = items[Math.min(items.length - 1, Math.max(0, start))] ?? null;
    // The first place is a row, not the name of its process.
    if (before < 0 && pane.cursor?.kind === "group" && !pane.cursor.folded) {
      pane.cursor = items[pane.layout.placeOf(pane.cursor) + 1] ?? pane.cursor;
    }
    this.span = null;
    this.lane = 0;
    if (pane.cursor) pane.reveal(pane.cursor);
    this.say();
    this.redraw();
  }

  moveLane(step: 1 | -1): void {
    const item = this.pane.cursor;
    if (item?.kind !== "row") return;
    this.lane = Math.min(lanesOf(item.data) - 1, Math.max(0, this.lane + step));
    const at = this.span ? this.span.t_ns : this.middle();
    this.span = this.nearest(item.data.row, at);
    this.say();
    this.redraw();
  }

  /** Goes to the next or previous span of the lane. If none is in view, the view moves on. */
  moveSpan(step: 1 | -1): void {
    const item = this.pane.cursor;
    if (item?.kind !== "row") {
      this.moveRow(1);
      return;
    }
    const range = this.motion.range();
    const inside = this.span && this.span.t_ns >= range.from - 1 && this.span.t_ns <= range.to;
    const from = inside && this.span ? this.span.t_ns : step > 0 ? range.from : range.to;
    const { pane } = this;
    const found = neighbour(
      pane.options.tiles,
      item.data.row,
      this.lane,
      pane.dense(range),
      this.end(),
      from,
      step,
    );
    if (!found) {
      this.motion.pan((range.to - range.from) * 0.6 * step);
      this.app.announce("none in view; the view moved on");
      return;
    }
    this.span = found;
    this.motion.reveal({ from: found.t_ns, to: found.t_ns + found.dur_ns });
    this.say();
    this.redraw();
  }

  private middle(): number {
    const { from, to } = this.motion.range();
    return (from + to) / 2;
  }

  private nearest(row: number, at: number): Span | null {
    const { pane } = this;
    const range = this.motion.range();
    const near = range.to - range.from;
    return spanAt(pane.options.tiles, row, this.lane, pane.dense(range), this.end(), at, near);
  }

  /** Announces the place of the cursor. */
  private say(): void {
    const item = this.pane.cursor;
    if (!item) return;
    if (item.kind === "group") {
      const name = this.pane.options.groupName(item.process, item.name);
      this.app.announce(`${name}, ${item.rows} rows, ${item.folded ? "folded" : "open"}`);
      return;
    }
    const what = this.span
      ? describeSpan(item.data, this.span, this.pane.options.nameOf(this.span.other))
      : describeRow(item.data);
    this.app.announce([what.title, ...what.facts].join(", "));
  }
}
