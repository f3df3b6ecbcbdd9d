// The view in the address. The page writes it after each change, and reads it at the start and when the user
// goes back.
import {
  FIRST_VIEW,
  type Filter,
  type Range,
  type RowRef,
  type RowSort,
  type Selection,
  type Theme,
  type View,
  type ViewStore,
  WAIT_CLASSES,
  type WaitFilter,
} from "./state";

const SORTS: readonly RowSort[] = ["wait", "hold", "start", "name", "row"];
const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const NUMBERS = ["thread", "object"] as const;
const ROWS = ["pinned", "hidden", "only"] as const;
const TEXTS = ["pid", "tid", "on", "event", "site", "text", "readings"] as const;
/** A drag is one step back, not a hundred: the address is written after this long without a change. */
const SETTLED_MS = 400;

/** Returns the fragment for a view. Fields with their first values are left out. */
export function format(view: View): string {
  const out = new URLSearchParams();
  if (view.range) out.set("t", formatRange(view.range));
  if (view.mark) out.set("mark", formatRange(view.mark));
  if (view.other) out.set("other", formatRange(view.other));
  if (view.selection) out.set("sel", formatSelection(view.selection));
  for (const key of [...NUMBERS, ...TEXTS]) {
    const value = view.filter[key];
    if (value !== undefined) out.set(`f.${key}`, String(value));
  }
  if (view.waits.least) out.set("w.least", String(view.waits.least));
  if (view.waits.kind !== FIRST_VIEW.waits.kind) out.set("w.class", view.waits.kind || "all");
  for (const key of [...NUMBERS, "site"] as const) {
    const value = view.waits[key];
    if (value !== undefined) out.set(`w.${key}`, String(value));
  }
  if (view.rows) out.set("rows", view.rows);
  if (view.sort !== FIRST_VIEW.sort) out.set("sort", view.sort);
  if (view.folded.length) out.set("folded", view.folded.map(encodeURIComponent).join(","));
  for (const key of ROWS) if (view[key].length) out.set(key, view[key].join(","));
  if (view.byName) out.set("names", "1");
  if (view.inView) out.set("alive", "1");
  if (view.tab !== FIRST_VIEW.tab) out.set("tab", view.tab);
  if (!view.dock) out.set("dock", "0");
  if (!view.side) out.set("side", "0");
  if (view.split !== FIRST_VIEW.split) out.set("split", view.split.toFixed(3));
  if (!view.arrows) out.set("arrows", "0");
  if (view.theme !== FIRST_VIEW.theme) out.set("theme", view.theme);
  return out.toString();
}

/** Returns the view of a fragment. A missing or malformed field gets its first value. */
export function parse(fragment: string): View {
  const found = new URLSearchParams(fragment.replace(/^#/, ""));
  const filter: { -readonly [K in keyof Filter]: Filter[K] } = {};
  for (const key of NUMBERS) {
    const value = number(found.get(`f.${key}`));
    if (value !== null) filter[key] = value;
  }
  for (const key of TEXTS) {
    const value = found.get(`f.${key}`);
    if (value) filter[key] = value;
  }
  const split = number(found.get("split"));
  return {
    range: parseRange(found.get("t")),
    mark: parseRange(found.get("mark")),
    other: parseRange(found.get("other")),
    selection: parseSelection(found.get("sel")),
    filter,
    waits: parseWaits(found),
    rows: found.get("rows") ?? "",
    sort: SORTS.find((sort) => sort === found.get("sort")) ?? FIRST_VIEW.sort,
    folded: list(found.get("folded"))
      .map(decoded)
      .filter((key) => /^\d+(\/|$)/.test(key)),
    pinned: refs(found.get("pinned")),
    hidden: refs(found.get("hidden")),
    only: refs(found.get("only")),
    byName: found.get("names") === "1",
    inView: found.get("alive") === "1",
    tab: found.get("tab") ?? FIRST_VIEW.tab,
    dock: found.get("dock") !== "0",
    side: found.get("side") !== "0",
    split: split === null ? FIRST_VIEW.split : Math.min(1, Math.max(0, split)),
    arrows: found.get("arrows") !== "0",
    theme: THEMES.find((theme) => theme === found.get("theme")) ?? FIRST_VIEW.theme,
  };
}

/** Goes back and forth through the earlier views; false if there is no view in that direction. */
export interface Steps {
  readonly back: () => boolean;
  readonly forth: () => boolean;
}

/**
 * Keeps the address and the store the same from now on. While the view moves on its own, no address
 * is written, however slow the movement is: nobody wants to go back to the middle of a flight.
 */
export function follow(store: ViewStore, moving: () => boolean): Steps {
  let timer: number | undefined;
  /** How many views of this page lie before the present view, and before the last view. */
  let at = stepOf(history.state);
  let last = at;
  let written = location.hash.replace(/^#/, "");
  const wait = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => (moving() ? wait() : write()), SETTLED_MS);
  };
  const write = () => {
    const now = format(store.get());
    if (now === written) return;
    written = now;
    last = ++at;
    history.pushState({ at }, "", now ? `#${now}` : `${location.pathname}${location.search}`);
  };
  store.subscribe(wait);
  const read = () => {
    clearTimeout(timer);
    at = stepOf(history.state);
    const now = location.hash.replace(/^#/, "");
    if (now === written) return;
    written = now;
    store.update(parse(now));
  };
  addEventListener("popstate", read);
  addEventListener("hashchange", read);
  return {
    back: () => {
      // The newest change is the step to take back.
      clearTimeout(timer);
      write();
      if (at > 0) history.back();
      return at > 0;
    },
    forth: () => {
      if (at < last) history.forward();
      return at < last;
    },
  };
}

function stepOf(state: unknown): number {
  const at = (state as { at?: unknown } | null | undefined)?.at;
  return typeof at === "number" ? at : 0;
}

function number(text: string | null): number | null {
  if (text === null || !/^-?\d+(\.\d+)?$/.test(text)) return null;
  return Number(text);
}

function formatRange(range: Range): string {
  return `${Math.round(range.from)}-${Math.round(range.to)}`;
}

function parseRange(text: string | null): Range | null {
  const found = /^(-?\d+)-(-?\d+)$/.exec(text ?? "");
  if (!found) return null;
  const range = { from: Number(found[1]), to: Number(found[2]) };
  return range.from < range.to ? range : null;
}

function list(text: string | null): string[] {
  return text ? text.split(",") : [];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // half of an escape
  }
}

function refs(text: string | null): RowRef[] {
  return list(text).filter((ref): ref is RowRef => /^(thread|object|processor):\d+$/.test(ref));
}

function parseWaits(found: URLSearchParams): WaitFilter {
  const [least, thread, object] = ["least", ...NUMBERS].map((key) => number(found.get(`w.${key}`)));
  const kind = found.get("w.class");
  const site = found.get("w.site");
  return {
    least: Math.max(0, least ?? 0),
    kind: kind === "all" ? "" : (WAIT_CLASSES.find((one) => one === kind) ?? FIRST_VIEW.waits.kind),
    ...(thread ? { thread } : {}),
    ...(object ? { object } : {}),
    ...(site ? { site } : {}),
  };
}

function formatSelection(selection: Selection): string {
  switch (selection.kind) {
    case "row":
      return `${selection.by}:${selection.row}`;
    case "span":
      return `${selection.by}:${selection.row}:${selection.lane}:${Math.round(selection.at)}`;
    case "wait":
      return `wait:${selection.wait}`;
    case "event":
      return `event:${selection.position}:${Math.round(selection.at)}`;
  }
}

function parseSelection(text: string | null): Selection | null {
  const [kind, ...rest] = (text ?? "").split(":");
  const [first, second, third] = rest.map((part) => number(part));
  if (kind === "wait" && first !== null && first !== undefined)
    return { kind: "wait", wait: first };
  if (kind === "event" && rest[0] && second !== null && second !== undefined) {
    return { kind: "event", position: rest[0], at: second };
  }
  if ((kind !== "thread" && kind !== "object") || first === null || first === undefined)
    return null;
  if (second === null || second === undefined || third === null || third === undefined) {
    return { kind: "row", by: kind, row: first };
  }
  return { kind: "span", by: kind, row: first, lane: second, at: third };
}
