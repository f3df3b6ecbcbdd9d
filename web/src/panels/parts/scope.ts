// Which part of the trace the numbers of a panel are for: what is marked, or the whole; and what can be done with it.
import { address } from "../../base/api";
import type { App } from "../../base/app";
import { button, h } from "../../base/dom";
import { wholeOf } from "../../base/extent";
import { PREFIX } from "../../base/protocol";
import type { Range } from "../../base/state";
import { duration, exact } from "../../base/units";

const WHOLE = {
  served: "Whole trace",
  file: "All that is in this file: of a part, ptt ui has sums",
};

/** Returns what is marked, as far as there are numbers of it: the one-file page has those of all that is in it. */
function marked(app: App): Range | null {
  return app.source.served ? app.store.get().mark : null;
}

/** Returns the parameters that ask about what is marked, or about the whole. */
export function scope(app: App): { from_ns?: number; to_ns?: number } {
  const mark = marked(app);
  return mark ? { from_ns: Math.round(mark.from), to_ns: Math.round(mark.to) } : {};
}

/** Returns how long that is, in words. */
export function scopeLength(app: App): string {
  const { from, to } = marked(app) ?? wholeOf(app.trace());
  return duration(to - from);
}

/** Returns a bar that says what the numbers are for, and lets it be changed. */
export function scopeBar(app: App, ...more: readonly Node[]): HTMLElement {
  const { served } = app.source;
  const text = h("span", { class: "scope" });
  const mark = button("Mark what is shown", () =>
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

/** Writes what is marked as a trace of its own, and says where it is. */
export async function cutOut(app: App): Promise<void> {
  const { mark } = app.store.get();
  if (!mark) {
    app.notify("Mark what to cut first");
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
