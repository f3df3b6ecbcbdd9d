// The filters of the event list: fields to type into, and chips for a thread, a lock or a process.
import type { App } from "../../base/app";
import { button, h } from "../../base/dom";
import type { Filter } from "../../base/state";
import { chip } from "../parts/chip";
import { rowLabel } from "../parts/labels";

const FIELDS = [
  { key: "text", label: "Text", width: 14 },
  { key: "event", label: "Event types", width: 12 },
  { key: "site", label: "Call site", width: 12 },
] as const;
const CHIPS = [
  ["pid", "process"],
  ["tid", "thread id"],
  ["on", "object"],
] as const;
const TYPING_MS = 300;

/** Changes the filter. An undefined field is removed from the filter. */
export function restrict(
  app: App,
  change: { readonly [K in keyof Filter]: Filter[K] | undefined },
): void {
  const merged = Object.entries({ ...app.store.get().filter, ...change });
  const filter = Object.fromEntries(
    merged.filter(([, value]) => value !== undefined && value !== ""),
  );
  app.store.update({ filter: filter as Filter });
}

/** Returns the bar. It follows the filter of the view. */
export function filterBar(app: App): HTMLElement {
  const chips = h("span", { class: "chips" });
  const clear = button("Show all", () => app.store.update({ filter: {} }));
  const bar = h("div", { class: "panel-bar", role: "group", "aria-label": "Filter" });
  const inputs = FIELDS.map(({ key, label, width }) => {
    const input = h("input", {
      type: "search",
      size: width,
      placeholder: label,
      "aria-label": label,
    });
    input.id = `filter-${key}`;
    let timer: number | undefined;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        timer = undefined;
        restrict(app, { [key]: input.value.trim() || undefined });
      }, TYPING_MS);
    });
    bar.append(input);
    return { key, input, typing: () => timer !== undefined };
  });
  const readings = h("input", { type: "checkbox", id: "filter-readings" });
  readings.addEventListener("change", () =>
    restrict(app, { readings: readings.checked ? "shown" : undefined }),
  );
  const title = "Events of the scheduler: when threads got and lost processors";
  bar.append(h("label", { title }, readings, " Scheduler events"), chips, clear);
  app.store.watch(["filter"], ({ filter }) => {
    for (const { key, input, typing } of inputs) {
      // New text in the field is not in the filter yet, and must not be lost.
      if (document.activeElement !== input && !typing()) input.value = filter[key] ?? "";
    }
    readings.checked = Boolean(filter.readings);
    clear.hidden = Object.keys(filter).length === 0;
    void showChips(app, chips, filter);
  });
  return bar;
}

async function showChips(app: App, chips: HTMLElement, filter: Filter): Promise<void> {
  const found: HTMLElement[] = [];
  for (const by of ["thread", "object"] as const) {
    const row = filter[by];
    if (row === undefined) continue;
    found.push(chip(await rowLabel(app, by, row), () => restrict(app, { [by]: undefined })));
  }
  for (const [key, what] of CHIPS) {
    const value = filter[key];
    if (value === undefined) continue;
    found.push(chip(`${what} ${value}`, () => restrict(app, { [key]: undefined })));
  }
  if (app.store.get().filter === filter) chips.replaceChildren(...found);
}
