// The ruler: times along the top, and the bar that is dragged to mark a range.
import { h } from "../dom";
import type { Range } from "../state";
import { duration, exact, instant } from "../units";
import type { Palette } from "./palette";
import type { Scale } from "./scale";
import { tickStep, ticks } from "./scale";
import { Surface } from "./surface";

const BETWEEN_PIXELS = 110;
/** Where a time has more steps than these, marks tell how far they are from a time that is written out. */
const MANY_STEPS = 500;

export class Ruler {
  readonly element = h("div", { class: "ruler" });
  private readonly surface: Surface;

  constructor() {
    const canvas = h("canvas", { "aria-hidden": "true" });
    this.element.append(canvas);
    this.surface = new Surface(canvas);
  }

  resize(width: number): void {
    this.surface.resize(width, this.element.clientHeight);
  }

  draw(
    scale: Scale,
    palette: Palette,
    cursor: number | null,
    mark: Range | null,
    font: string,
  ): void {
    const context = this.surface.begin();
    const { width, height } = this.surface;
    if (mark) this.band(context, scale, palette, mark, height);
    const step = tickStep(scale.nsPerPixel, BETWEEN_PIXELS);
    context.font = font;
    context.textBaseline = "middle";
    const small = step / 5;
    context.fillStyle = palette.get("line-strong");
    for (const ns of ticks(scale.range, small)) {
      context.fillRect(Math.round(scale.x(ns)), height - 4, 1, 4);
    }
    const base = baseOf(scale.range, step);
    let free = 0;
    if (base > 0) {
      const text = exact(base).replace(/( 000)+ s$/, " s");
      context.fillStyle = palette.get("text");
      context.fillText(text, 4, height / 2 - 1);
      free = 4 + context.measureText(text).width + 8;
    }
    for (const ns of ticks(scale.range, step)) {
      const x = Math.round(scale.x(ns));
      context.fillStyle = palette.get("line-strong");
      context.fillRect(x, height - 9, 1, 9);
      if (x + 4 < free) continue;
      context.fillStyle = palette.get("text-dim");
      const text = base > 0 ? `+${instant(ns - base, step)}` : instant(ns, step);
      context.fillText(text, x + 4, height / 2 - 1);
    }
    if (mark) this.length(context, scale, palette, mark, width, height);
    if (cursor !== null) this.flag(context, scale, palette, cursor, width, height);
  }

  private band(
    context: CanvasRenderingContext2D,
    scale: Scale,
    palette: Palette,
    mark: Range,
    height: number,
  ): void {
    context.fillStyle = palette.get("mark");
    context.globalAlpha = 0.25;
    context.fillRect(
      scale.x(mark.from),
      0,
      Math.max(1, scale.x(mark.to) - scale.x(mark.from)),
      height,
    );
    context.globalAlpha = 1;
  }

  /** How long the mark is, in its middle as far as that is seen. */
  private length(
    context: CanvasRenderingContext2D,
    scale: Scale,
    palette: Palette,
    mark: Range,
    width: number,
    height: number,
  ): void {
    const x0 = Math.max(0, scale.x(mark.from));
    const x1 = Math.min(width, scale.x(mark.to));
    if (x1 < 0 || x0 > width) return;
    const text = `↔ ${duration(mark.to - mark.from)}`;
    const wide = context.measureText(text).width + 10;
    const x = Math.min(width - wide, Math.max(0, (x0 + x1 - wide) / 2));
    context.fillStyle = palette.get("mark");
    context.fillRect(x, 1, wide, height - 3);
    context.fillStyle = palette.get("bg");
    context.fillText(text, x + 5, height / 2);
  }

  /** The time under the pointer, to the digits that a pixel is worth. */
  private flag(
    context: CanvasRenderingContext2D,
    scale: Scale,
    palette: Palette,
    cursor: number,
    width: number,
    height: number,
  ): void {
    const text = instant(cursor, 10 ** Math.floor(Math.log10(Math.max(1, scale.nsPerPixel))));
    const wide = context.measureText(text).width + 8;
    const x = Math.min(width - wide, Math.max(0, scale.x(cursor) - wide / 2));
    context.fillStyle = palette.get("text");
    context.fillRect(x, 1, wide, height - 3);
    context.fillStyle = palette.get("bg");
    context.fillText(text, x + 4, height / 2);
  }
}

/** Returns the time that marks are counted from, a whole one of a greater unit; 0 where they can be written whole. */
export function baseOf(range: Range, step: number): number {
  if (range.to / step <= MANY_STEPS) return 0;
  const unit = 1000 ** (Math.floor(Math.log10(step) / 3 + 1e-9) + 1);
  return Math.max(0, Math.floor(range.from / unit) * unit);
}
