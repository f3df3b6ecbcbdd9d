// Arrows between threads: from the waker to the waiter, and from the holder of a lock to the waiter.
import { isAbort, NotYet, type Source } from "../../base/api";
import type { Columns } from "../../base/columns";
import { ARROW_KINDS, type ArrowsColumns } from "../../base/protocol";
import { Signal } from "../../base/signal";
import type { Range } from "../../base/state";
import type { About } from "../../model/about";
import { Scale } from "../../model/scale";
import type { Palette } from "./palette";
import type { Pane } from "./pane";

const REST_MS = 120;
const MOST = 150;
/** More strong lines than these would hide the spans. */
const MOST_STRONG = 40;
const HEAD_PIXELS = 5;
const HOLD = ARROW_KINDS.indexOf("hold");

export class Arrows {
  readonly changed = new Signal();
  private table: Columns<ArrowsColumns> | null = null;
  private asking: AbortController | null = null;
  private asked = "";
  private timer: number | undefined;

  constructor(
    private readonly source: Source,
    private readonly failed: (error: unknown) => void,
  ) {}

  outdate(): void {
    this.asked = "";
  }

  /** Asks for the arrows of the visible part after the view has rested. */
  want(rows: readonly number[], range: Range, width: number): void {
    const question = {
      rows: [...rows].slice(0, 250),
      from_ns: Math.max(0, Math.floor(range.from)),
      to_ns: Math.max(1, Math.ceil(range.to)),
      width: Math.max(1, Math.round(width)),
      limit: MOST,
    };
    const key = JSON.stringify(question);
    if (key === this.asked || !rows.length) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      this.asked = key;
      this.asking?.abort();
      this.asking = new AbortController();
      try {
        this.table = await this.source.table("arrows", question, this.asking.signal);
        this.changed.emit();
      } catch (error) {
        if (!isAbort(error) && !(error instanceof NotYet)) this.failed(error);
      }
    }, REST_MS);
  }

  /** Draws the arrows over the threads. Arrows of the selection are strong, and the others are weak. */
  draw(
    context: CanvasRenderingContext2D,
    pane: Pane,
    range: Range,
    palette: Palette,
    about: About | null,
  ): void {
    const { table } = this;
    if (!table) return;
    const scale = new Scale(range, pane.width);
    const faint = about ? 0.12 : Math.min(0.7, Math.max(0.25, 25 / table.length));
    const strong = table.length > MOST_STRONG ? 1 : 2;
    for (let at = 0; at < table.length; at++) {
      const mine = about?.({
        wait: table.wait_id[at] ?? 0,
        object: table.object_row[at] ?? 0,
        threads: [table.from_row[at] ?? 0, table.to_row[at] ?? 0],
      });
      const from = pane.box(table.from_row[at] ?? 0, 0);
      const to = pane.box(table.to_row[at] ?? 0, 0);
      if (!from || !to) continue;
      const hold = table.kind[at] === HOLD;
      const colour = palette.get(hold ? "arrow-hold" : "arrow-wake");
      context.globalAlpha = mine ? 1 : faint;
      context.lineWidth = mine ? strong : 1;
      context.strokeStyle = context.fillStyle = colour;
      context.setLineDash(hold ? [4, 3] : []);
      const down = to.y > from.y;
      arrow(
        context,
        scale.x(table.from_ns[at] ?? 0),
        from.y + (down ? from.height : 0),
        scale.x(table.to_ns[at] ?? 0),
        to.y + (down ? 0 : to.height),
      );
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
  }
}

/** Draws a curve that leaves and arrives vertically, with an arrowhead at the end. */
function arrow(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  const bend = (y1 - y0) * 0.45;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  context.stroke();
  const back = y1 > y0 ? -HEAD_PIXELS : HEAD_PIXELS;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - HEAD_PIXELS * 0.6, y1 + back);
  context.lineTo(x1 + HEAD_PIXELS * 0.6, y1 + back);
  context.fill();
}
