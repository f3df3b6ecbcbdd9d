// Time and pixels: the scale of a range in a width, and how a range moves and zooms. All times in ns.
import type { Range } from "../base/state";

/** The shortest range: below it, time stamps have no more detail. */
export const SHORTEST_NS = 50;
/** Share of the view that may be empty at each end of the trace. */
const BEYOND = 0.05;

export class Scale {
  readonly nsPerPixel: number;

  constructor(
    readonly range: Range,
    readonly width: number,
  ) {
    this.nsPerPixel = (range.to - range.from) / Math.max(1, width);
  }

  x(ns: number): number {
    return (ns - this.range.from) / this.nsPerPixel;
  }

  ns(x: number): number {
    return this.range.from + x * this.nsPerPixel;
  }
}

/** Returns the nearest range that lies in the whole, apart from a small margin. */
export function within(range: Range, whole: Range): Range {
  if (!Number.isFinite(range.to - range.from)) return whole;
  const room = (whole.to - whole.from) * (1 + 2 * BEYOND);
  const length = Math.min(room, Math.max(SHORTEST_NS, range.to - range.from));
  const middle = (range.from + range.to) / 2;
  const air = Math.max(SHORTEST_NS / 2, Math.min(length, whole.to - whole.from) * BEYOND);
  const latest = whole.to + air - length;
  const from = Math.max(whole.from - air, Math.min(latest, middle - length / 2));
  return { from, to: from + length };
}

/** Returns the range after a zoom that keeps a time in place. A factor below 1 shows less. */
export function zoomed(range: Range, factor: number, about: number): Range {
  return { from: about - (about - range.from) * factor, to: about + (range.to - about) * factor };
}

export function moved(range: Range, ns: number): Range {
  return { from: range.from + ns, to: range.to + ns };
}

/** Returns the range with a margin at both sides. */
export function withAir(range: Range, air = 0.12): Range {
  const more = Math.max(SHORTEST_NS / 2, (range.to - range.from) * air);
  return { from: range.from - more, to: range.to + more };
}

/**
 * Returns the step between marks of a ruler: 1, 2 or 5 times a power of ten, and at least so many
 * pixels wide.
 */
export function tickStep(nsPerPixel: number, pixels: number): number {
  const least = Math.max(1, nsPerPixel * pixels);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const times of [1, 2, 5]) if (power * times >= least * 0.9999) return power * times;
  return power * 10;
}

/** Returns the times of the marks of a ruler. */
export function ticks(range: Range, step: number): number[] {
  const out: number[] = [];
  for (let n = Math.ceil(range.from / step); n * step <= range.to; n++) out.push(n * step);
  return out;
}
