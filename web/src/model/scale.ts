// Time and pixels: what a range looks like in a width, and how it is moved and zoomed. All times in ns.
import type { Range } from "../base/state";

/** Nothing shorter is shown: below this, time stamps say no more. */
export const SHORTEST_NS = 50;
/** How much of the view may be empty at either end of the trace. */
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

/** Returns the range nearest to this one that lies in the whole, but for a little air. */
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

/** Returns the range after a zoom that leaves one time where it is; a factor below 1 shows less. */
export function zoomed(range: Range, factor: number, about: number): Range {
  return { from: about - (about - range.from) * factor, to: about + (range.to - about) * factor };
}

export function moved(range: Range, ns: number): Range {
  return { from: range.from + ns, to: range.to + ns };
}

/** Returns the range with air at both sides, for something that is to be seen whole. */
export function withAir(range: Range, air = 0.12): Range {
  const more = Math.max(SHORTEST_NS / 2, (range.to - range.from) * air);
  return { from: range.from - more, to: range.to + more };
}

/** Returns how far apart the marks of a ruler are: 1, 2 or 5 times a power of ten, at least so many pixels. */
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
