// The ruler: times along the top, and a bar. Drag the bar to mark a range.
import { h } from "../../base/dom";
import type { Range } from "../../base/state";
import { duration, exact, instant } from "../../base/units";
import type { Scale } from "../../model/scale";
import { tickStep, ticks } from "../../model/scale";
import type { Palette } from "./palette";
import { Surface } from "./surface";

const BETWEEN_PIXELS = 110;
/** If a time has more steps than this, marks show the distance from a time that is written in full. */
const MANY_STEPS = 500;

/** The place of a text, in pixels. */
interface Place {
  readonly x: number;
  readonly wide: number;
}

interface Plate extends Place {
  readonly text: string;
  readonly fill: "mark" | "text";
}

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
    const most = scale.range.to - base;
    const plates = [
      mark ? this.markPlate(context, scale, mark) : null,
      cursor === null ? null : this.flagPlate(context, scale, cursor),
    ].filter((plate) => plate !== null);
    const taken: Place[] = [...plates];
    if (base > 0) {
      const text = `${exact(base).replace(/( 000)+ s$/, " s")} +`;
      context.fillStyle = palette.get("text");
      context.fillText(text, 4, height / 2 - 1);
      taken.push({ x: 0, wide: 4 + context.measureText(text).width + 8 });
    }
    for (const ns of ticks(scale.range, step)) {
      const x = Math.round(scale.x(ns));
      context.fillStyle = palette.get("line-strong");
      context.fillRect(x, height - 9, 1, 9);
      const text = `${base > 0 ? "+" : ""}${instant(ns - base, step, most)}`;
      const place = { x: x + 4, wide: context.measureText(text).width };
      // A text is left out if it would be cut, or covered by a plate.
      if (place.x < 0 || place.x + place.wide > width || taken.some((one) => meet(one, place))) {
        continue;
      }
      context.fillStyle = palette.get("text-dim");
      context.fillText(text, place.x, height / 2 - 1);
    }
    for (const { x, wide, text, fill } of plates) {
      context.fillStyle = palette.get(fill);
      context.fillRect(x, 1, wide, height - 3);
      context.fillStyle = palette.get("bg");
      context.fillText(text, x + 5, height / 2);
    }
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

  /** The length of the mark, in the middle of its visible part. */
  private markPlate(context: CanvasRenderingContext2D, scale: Scale, mark: Range): Plate | null {
    const x0 = Math.max(0, scale.x(mark.from));
    const x1 = Math.min(scale.width, scale.x(mark.to));
    if (x1 < 0 || x0 > scale.width) return null;
    const text = `↔ ${duration(mark.to - mark.from)}`;
    return this.plate(context, text, (x0 + x1) / 2, "mark");
  }

  /** The time under the pointer, with the digits of a pixel's length. */
  private flagPlate(context: CanvasRenderingContext2D, scale: Scale, cursor: number): Plate {
    const step = 10 ** Math.floor(Math.log10(Math.max(1, scale.nsPerPixel)));
    return this.plate(context, instant(cursor, step, scale.range.to), scale.x(cursor), "text");
  }

  private plate(
    context: CanvasRenderingContext2D,
    text: string,
    middle: number,
    fill: Plate["fill"],
  ): Plate {
    const wide = context.measureText(text).width + 10;
    const x = Math.min(this.surface.width - wide, Math.max(0, middle - wide / 2));
    return { x, wide, text, fill };
  }
}

function meet(one: Place, other: Place): boolean {
  return one.x < other.x + other.wide && other.x < one.x + one.wide;
}

/**
 * Returns the base time of the marks, a multiple of a greater unit; 0 if the marks can be written
 * in full.
 */
export function baseOf(range: Range, step: number): number {
  if (range.to / step <= MANY_STEPS) return 0;
  const unit = 1000 ** (Math.floor(Math.log10(step) / 3 + 1e-9) + 1);
  return Math.max(0, Math.floor(range.from / unit) * unit);
}
