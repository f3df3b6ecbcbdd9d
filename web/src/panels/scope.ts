// Which part of the trace the numbers of a panel are for: what is marked, or the whole; and what can be done with it.
import { address } from "../api";
import type { App } from "../app";
import { button, h } from "../dom";
import { PREFIX } from "../protocol";
import type { Range } from "../state";
import { duration, exact } from "../units";

/** Returns the parameters that ask about what is marked, or about the whole. */
export function scope(app: App): { from_ns?: number; to_ns?: number } {
  const mark = app.store.get().mark;
  return mark ? { from_ns: Math.round(mark.from), to_ns: Math.round(mark.to) } : {};
}

/** Returns a bar that says what the numbers are for, and lets it be changed. */
export function scopeBar(app: App, ...more: readonly Node[]): HTMLElement {
  const text = h("span", { class: "scope" });
  const mark = button("Mark what is shown", () =>
    app.store.update({ mark: app.store.get().range }),
  );
  const clear = button("Whole trace", () => app.store.update({ mark: null }));
  const cut = button("Cut to a new trace", () => void cutOut(app));
  const save = button("Save as one file", () => saveAs(app));
  const bar = h("div", { class: "panel-bar" }, text, mark, clear, cut, save, ...more);
  app.store.watch(["mark", "range"], (view) => {
    text.textContent = view.mark ? `Marked: ${rangeText(view.mark)}` : "Whole trace";
    mark.hidden = view.range === null || same(view.range, view.mark);
    clear.hidden = view.mark === null;
    cut.hidden = view.mark === null || !app.source.served;
    save.hidden = !app.source.served;
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
