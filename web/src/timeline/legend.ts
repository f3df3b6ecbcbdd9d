// The legend: what the colours and patterns mean, drawn by the very code that draws the rows.
import { h } from "../dom";
import { STATES } from "../protocol";
import type { Palette } from "./palette";
import { Surface } from "./surface";

interface Entry {
  readonly name: string;
  readonly paint: (palette: Palette) => CanvasPattern | string;
}

const NAMES: Readonly<Record<string, string>> = {
  held: "holds a lock",
  shared: "shares one",
  join: "joins",
  timeout: "timed out",
};

class Legend {
  readonly element = h("ul", { class: "legend", "aria-label": "Legend" });
  private readonly swatches: { surface: Surface; entry: Entry }[] = [];

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const canvas = h("canvas", { "aria-hidden": "true" });
      this.swatches.push({ surface: new Surface(canvas), entry });
      this.element.append(h("li", {}, canvas, entry.name));
    }
  }

  draw(palette: Palette): void {
    for (const { surface, entry } of this.swatches) {
      surface.resize(18, 11);
      const context = surface.begin();
      context.fillStyle = entry.paint(palette);
      context.fillRect(0, 0, 18, 11);
    }
  }
}

export function threadLegend(): Legend {
  const entries = STATES.map((state, code) => {
    const paint = (palette: Palette) => palette.state(code).pattern;
    return { name: NAMES[state] ?? state, paint };
  });
  return new Legend([...entries, { name: "not known yet", paint: ({ unknown }) => unknown }]);
}

export function objectLegend(): Legend {
  return new Legend([
    { name: "held, a colour for each thread", paint: (palette) => palette.owner(0, false).pattern },
    { name: "shared", paint: (palette) => palette.owner(1, true).pattern },
    { name: "queue, as high as it is long", paint: (palette) => palette.state(1).pattern },
  ]);
}
