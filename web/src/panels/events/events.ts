// The panel of events: the list, its filters, and the next and previous event of the same object.
import type { App, Panel } from "../../base/app";
import { button, h } from "../../base/dom";
import type { Filter, Selection, View } from "../../base/state";
import { exact } from "../../base/units";
import { EventList } from "./event_list";
import type { Anchor, TraceEvent } from "./event_window";
import { filterBar, restrict } from "./filter_bar";
import { pick, stepObject } from "./step";

/** The list follows the timeline after the timeline has stood still for this long. */
const SETTLED_MS = 250;

export const EVENTS: Panel = {
  id: "events",
  title: "Events",
  help: "All events in the order of time",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const said = h("span", { class: "said", role: "status" });
  const list = new EventList({
    app,
    picked: (event) => pick(app, event),
    opened: (event) => lookClosely(app, list, event),
    moved: () => say(),
  });
  const say = () => {
    const { searching, last } = list;
    const seen = app.store.get().range?.from ?? 0;
    said.textContent =
      searching !== null
        ? `Searching: ${exact(searching)}`
        : last !== null && last < seen
          ? `No events ${app.source.served ? "" : "in this file "}after ${exact(last)}`
          : "";
  };
  app.store.watch(["range"], say);
  const only = onlyButtons(app, list);
  const step = (by: 1 | -1) => void stepObject(app, by);
  const previous = button("[ Previous", () => step(-1), { title: "Of the same object" });
  const next = button("] Next", () => step(1), { title: "Of the same object" });
  const bar = filterBar(app);
  bar.append(h("span", { class: "scope" }, "Only this"), ...only, previous, next, said);
  element.append(h("div", { class: "panel-column" }, bar, list.element));
  follow(app, list);
}

/** Keeps the list at the selection and the view of the page. */
function follow(app: App, list: EventList): void {
  let shown: { filter: Filter; anchor: string } | null = null;
  const show = (view: View, anchor: Anchor) => {
    const key = JSON.stringify(anchor);
    if (shown && shown.filter === view.filter && shown.anchor === key) return;
    shown = { filter: view.filter, anchor: key };
    void list.show(view.filter, anchor);
  };
  const start = async (view: View) => {
    const { selection } = view;
    if (
      selection?.kind === "event" &&
      shown?.filter === view.filter &&
      list.go(selection.position)
    ) {
      shown = { filter: view.filter, anchor: JSON.stringify({ position: selection.position }) };
      return;
    }
    const anchor = await anchorOf(app, selection);
    const now = app.store.get();
    // If the user has moved on, nothing changes.
    if (now.selection !== selection || now.filter !== view.filter) return;
    if (now.tab === EVENTS.id && now.dock) show(view, anchor ?? { ts: view.range?.from ?? 0 });
  };
  let timer: number | undefined;
  app.store.subscribe((view, before) => {
    if (view.tab !== EVENTS.id || !view.dock) {
      shown = null;
      return;
    }
    if (view.filter !== before.filter && list.current) {
      // The current event stays visible, if it passes the filter.
      show(view, { ts: list.current.ts });
    } else if (
      view.selection !== before.selection ||
      view.filter !== before.filter ||
      view.tab !== before.tab ||
      view.dock !== before.dock
    ) {
      void start(view);
    } else if (view.range !== before.range && view.range) {
      const range = view.range;
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        const inside = list.shown().some((event) => event.ts >= range.from && event.ts < range.to);
        if (!inside) show(app.store.get(), { ts: range.from });
      }, SETTLED_MS);
    }
  });
  void start(app.store.get());
}

async function anchorOf(app: App, selection: Selection | null): Promise<Anchor | null> {
  switch (selection?.kind) {
    case "event":
      return { position: selection.position };
    case "span":
      return { ts: selection.at };
    case "wait": {
      // If the wait is not known, or not yet, the list stays. The details say so.
      const found = await app.source.json("wait", { id: selection.wait }).catch(() => null);
      return found?.chain[0] ? { ts: found.chain[0].t_ns } : null;
    }
    default:
      return null;
  }
}

/** Zooms to the visible events around this event. */
function lookClosely(app: App, list: EventList, event: TraceEvent): void {
  const shown = list.shown();
  const from = Math.min(event.ts, shown[0]?.ts ?? event.ts);
  const to = Math.max(event.ts, shown[shown.length - 1]?.ts ?? event.ts);
  app.zoomTo({ from, to: Math.max(to, from + 1000) });
}

/** Buttons that restrict the list to the object, thread or call site of the current event or selected row. */
function onlyButtons(app: App, list: EventList): HTMLElement[] {
  const row = (by: "thread" | "object") => () => {
    const { selection } = app.store.get();
    const picked = selection?.kind === "row" || selection?.kind === "span" ? selection : null;
    const event = by === "thread" ? list.current?.threadRow : list.current?.objectRow;
    return picked?.by === by ? picked.row : event || undefined;
  };
  const wanted: readonly [string, () => { [K in keyof Filter]: Filter[K] | undefined } | null][] = [
    ["thread", () => given("thread", row("thread")())],
    ["object", () => given("object", row("object")())],
    ["type", () => given("event", list.current?.event)],
    ["call site", () => given("site", list.current?.site || undefined)],
  ];
  return wanted.map(([text, change]) => {
    const press = () => {
      const found = change();
      if (found) restrict(app, found);
      else app.notify("Pick an event first, or a row of the timeline");
    };
    return button(text, press, { "aria-label": `Only this ${text}` });
  });
}

function given<K extends keyof Filter>(key: K, value: Filter[K] | undefined) {
  return value === undefined ? null : { [key]: value };
}
