// The corner above the names, with the filter and order of the rows, and the switches of the timeline.
import type { App } from "../base/app";
import { button, h } from "../base/dom";
import { FIRST_VIEW, type RowSort } from "../base/state";

const SORTS: Readonly<Record<RowSort, string>> = {
  wait: "by waiting",
  hold: "by holding",
  start: "by start",
  name: "by name",
  row: "as created",
};
const SWITCHES = [
  ["arrows", "Arrows", "Arrows from waker to waiter, and from holder to waiter (E)"],
  [
    "byName",
    "Group names",
    "Group rows by the beginnings of their names, such as worker-*, and not by process (G)",
  ],
  ["inView", "Alive", "Only threads and locks that existed in the visible range (V)"],
  ["side", "Details", "Details of the selection, at the side (I)"],
] as const;
const TYPING_MS = 200;

export function makeCorner(app: App): HTMLElement {
  const filter = h("input", {
    type: "search",
    placeholder: "Filter rows",
    "aria-label": "Filter rows by name, kind, process or address",
    id: "row-filter",
  });
  const sort = h("select", { "aria-label": "Order of the rows", id: "row-sort" });
  for (const [value, name] of Object.entries(SORTS)) sort.append(h("option", { value }, name));

  let timer: number | undefined;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => app.store.update({ rows: filter.value.trim() }), TYPING_MS);
  });
  sort.addEventListener("change", () => {
    const chosen = (Object.keys(SORTS) as RowSort[]).find((one) => one === sort.value);
    app.store.update({ sort: chosen ?? FIRST_VIEW.sort });
  });
  app.store.watch(["rows", "sort"], (view) => {
    if (document.activeElement !== filter) filter.value = view.rows;
    sort.value = view.sort;
  });
  return h("div", { class: "corner" }, filter, sort);
}

/** Returns the buttons that switch parts of the timeline on and off. */
export function makeSwitches(app: App): HTMLElement[] {
  return SWITCHES.map(([field, name, title]) => {
    const flip = () => app.store.update({ [field]: !app.store.get()[field] });
    const made = button(name, flip, { id: field, title });
    app.store.watch([field], (view) => made.setAttribute("aria-pressed", String(view[field])));
    return made;
  });
}
