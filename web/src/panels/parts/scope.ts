// The part of the trace for the numbers of a panel: the mark or the whole trace; and the actions for this
// part.
import { address } from "../../base/api";
import type { App } from "../../base/app";
import { button, h } from "../../base/dom";
import { wholeOf } from "../../base/extent";
import { PREFIX } from "../../base/protocol";
import type { Range } from "../../base/state";
import { duration, exact } from "../../base/units";

const WHOLE = {
  served: "Whole trace",
  file: "Everything in this file: for sums of a part, use ptt ui",
};

/**
 * Returns the mark if the source has numbers for it. The one-file page has only the numbers of its
 * whole part.
 */
function marked(app: App): Range | null {
  return app.source.served ? app.store.get().mark : null;
}

/** Returns the parameters for a question about the mark or the whole trace. */
export function scope(app: App): { from_ns?: number; to_ns?: number } {
  const mark = marked(app);
  return mark ? { from_ns: Math.round(mark.from), to_ns: Math.round(mark.to) } : {};
}

/** Returns the length of the mark or the whole trace, in words. */
export function scopeLength(app: App): string {
  const { from, to } = marked(app) ?? wholeOf(app.trace());
  return duration(to - from);
}

/** Returns a bar that shows the part of the numbers, and lets the user change it. */
export function scopeBar(app: App, ...more: readonly Node[]): HTMLElement {
  const { served } = app.source;
  const text = h("span", { class: "scope" });
  const mark = button("Mark the visible part", () =>
    app.store.update({ mark: app.store.get().range }),
  );
  const clear = button("Whole trace", () => app.store.update({ mark: null }));
  const cut = button("Cut to a new trace", () => void cutOut(app));
  const save = button("Save as one file", () => saveAs(app));
  const bar = h("div", { class: "panel-bar" }, text, mark, clear, cut, save, ...more);
  app.store.watch(["mark", "range"], (view) => {
    const mine = marked(app);
    text.textContent = mine ? `Marked: ${rangeText(mine)}` : WHOLE[served ? "served" : "file"];
    mark.hidden = !served || view.range === null || same(view.range, view.mark);
    clear.hidden = mine === null;
    cut.hidden = view.mark === null || !served;
    save.hidden = !served;
  });
  return bar;
}

/** Writes the mark as a separate trace, and says where it is. */
export async function cutOut(app: App): Promise<void> {
  const { mark } = app.store.get();
  if (!mark) {
    app.notify("Mark a part to cut first");
    return;
  }
  try {
    const body = { from_ns: Math.round(mark.from), to_ns: Math.round(mark.to) };
    const made = await app.source.post("cut", body);
    app.notify(`Wrote ${made.path}: ${made.events} events`);
  } catch (error) {
    app.notify(error instanceof Error ? error.message : String(error), "error");
  }
}

/** Lets the browser save the page with this part in it. */
function saveAs(app: App): void {
  const link = h("a", { href: PREFIX + address("export", scope(app)), download: "" });
  link.click();
}

export function rangeText(range: Range): string {
  return `${exact(range.from)} – ${exact(range.to)} (${duration(range.to - range.from)})`;
}

function same(a: Range, b: Range | null): boolean {
  return b !== null && a.from === b.from && a.to === b.to;
}
