// The panel of waits: waits longer than a given length, in the mark, of a thread, a lock or a call site.
import type { App, Panel } from "../../base/app";
import type { Columns } from "../../base/columns";
import { button, h } from "../../base/dom";
import { FLAGS, STATES, type WaitsColumns } from "../../base/protocol";
import { type Selection, WAIT_CLASSES, type WaitFilter } from "../../base/state";
import { count, duration, exact, parsedDuration, plural } from "../../base/units";
import { Asking } from "../parts/asking";
import { chip } from "../parts/chip";
import { rowLabel } from "../parts/labels";
import { scope, scopeBar } from "../parts/scope";
import { type Column, DataTable } from "../parts/table";

const LIMIT = 5000;
const TYPING_MS = 300;

interface Line {
  readonly wait: number;
  readonly state: string;
  readonly open: boolean;
  readonly t_ns: number;
  readonly dur_ns: number;
  readonly inside_ns: number;
  readonly thread_row: number;
  readonly thread: string;
  readonly object: string;
  readonly site: string;
  readonly owner: string;
}

export const WAITS: Panel = {
  id: "waits",
  title: "Waits",
  help: "Waits one by one: long waits, or the waits of a lock, thread or call site",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const totals = h("p", { class: "totals" });
  const table = new DataTable<Line>({
    label: "Waits",
    columns: columns(),
    sort: "dur_ns",
    open: (line) => show(app, line),
  });
  const asking = new Asking<Columns<WaitsColumns>>({
    app,
    panel: element,
    ask: (signal) => {
      const { least, kind, thread, object, site } = app.store.get().waits;
      const rows = {
        ...(thread ? { thread: [thread] } : {}),
        ...(object ? { object: [object] } : {}),
        ...(site ? { site } : {}),
      };
      const asked = { ...rows, ...scope(app), least_ns: least, wait_class: kind, limit: LIMIT };
      return app.source.table("waits", asked, signal);
    },
    show: (answer) => {
      totals.textContent = said(answer);
      totals.dataset["waits"] = answer.metadata.get("total") ?? "0";
      totals.dataset["insideNs"] = answer.metadata.get("inside_ns") ?? "0";
      table.set(linesOf(answer));
    },
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      scopeBar(app, ...fields(app), table.saver),
      asking.element,
      totals,
      table.element,
    ),
  );
  app.store.watch(["mark", "waits"], () => asking.renew());
}

function said(answer: Columns<WaitsColumns>): string {
  const total = Number(answer.metadata.get("total") ?? answer.length);
  const inside = duration(Number(answer.metadata.get("inside_ns") ?? 0));
  const parts = [total ? `${plural(total, "wait")}: ${inside}` : "No such wait"];
  if (total > answer.length) parts.push(`the ${count(answer.length)} longest are listed`);
  return parts.join(" · ");
}

/** Shows a wait and selects it. A wait that goes on is selected by its place in the row of its thread. */
function show(app: App, line: Line): void {
  const at = Math.round(line.t_ns + line.dur_ns / 2);
  const selection: Selection = line.wait
    ? { kind: "wait", wait: line.wait }
    : { kind: "span", by: "thread", row: line.thread_row, lane: 0, at };
  app.store.update({ selection });
  app.zoomTo({ from: line.t_ns, to: line.t_ns + Math.max(1, line.dur_ns) });
}

function linesOf(table: Columns<WaitsColumns>): Line[] {
  return Array.from({ length: table.length }, (_, at) => ({
    wait: table.wait_id[at] ?? 0,
    state: STATES[table.state[at] ?? 0] ?? "",
    open: Boolean((table.flags[at] ?? 0) & FLAGS.open),
    t_ns: table.t_ns[at] ?? 0,
    dur_ns: table.dur_ns[at] ?? 0,
    inside_ns: table.inside_ns[at] ?? 0,
    thread_row: table.thread_row[at] ?? 0,
    thread: table.thread[at] ?? "",
    object: table.object[at] ?? "",
    site: table.site[at] ?? "",
    owner: table.owner[at] ?? "",
  }));
}

function columns(): Column<Line>[] {
  let most = 1;
  const text = (id: keyof Line & string, title: string, width: string): Column<Line> => {
    return { id, title, width, value: (line) => String(line[id]) };
  };
  return [
    {
      id: "dur_ns",
      title: "Waited",
      help: "The whole wait, also outside of the mark",
      width: "minmax(96px, 1fr)",
      numeric: true,
      value: (line) => line.dur_ns,
      text: (line) => duration(line.dur_ns) + (line.open ? ", not ended" : ""),
      bar: (line) => {
        most = Math.max(most, line.dur_ns);
        return line.dur_ns / most;
      },
    },
    {
      id: "inside_ns",
      title: "Inside",
      help: "The part in the mark, or in the trace",
      width: "minmax(70px, 0.7fr)",
      numeric: true,
      value: (line) => line.inside_ns,
      text: (line) => duration(line.inside_ns),
    },
    {
      id: "t_ns",
      title: "Since",
      width: "minmax(120px, 1fr)",
      numeric: true,
      least: true,
      value: (line) => line.t_ns,
      text: (line) => exact(line.t_ns),
    },
    text("thread", "Thread", "minmax(120px, 1.2fr)"),
    text("object", "For", "minmax(140px, 1.4fr)"),
    text("state", "Class", "minmax(80px, 0.7fr)"),
    text("owner", "Held by", "minmax(120px, 1.2fr)"),
    text("site", "At", "minmax(220px, 2fr)"),
  ];
}

/** The filters: a length, a class, and a thread, lock or call site. */
function fields(app: App): HTMLElement[] {
  const change = (part: Partial<WaitFilter>) => {
    app.store.update({ waits: { ...app.store.get().waits, ...part } });
  };
  const length = h("input", {
    type: "text",
    id: "waits-least",
    size: 8,
    placeholder: "1 ms",
    "aria-label": "Only waits of at least this length, as in 1 ms",
    title: "Only waits of at least this length: a number and ns, µs, ms or s",
  });
  const kind = h("select", { id: "waits-class", "aria-label": "Class of the waits" });
  kind.append(h("option", { value: "" }, "of any class"));
  for (const name of WAIT_CLASSES) kind.append(h("option", { value: name }, name));
  const chips = h("span", { class: "chips" });
  let timer: number | undefined;
  length.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      timer = undefined;
      const least = length.value.trim() ? parsedDuration(length.value) : 0;
      length.setAttribute("aria-invalid", String(least === null));
      if (least !== null) change({ least });
    }, TYPING_MS);
  });
  kind.addEventListener("change", () => {
    change({ kind: WAIT_CLASSES.find((name) => name === kind.value) ?? "" });
  });
  app.store.watch(["waits"], ({ waits }) => {
    kind.value = waits.kind;
    if (document.activeElement !== length && timer === undefined) {
      length.value = waits.least ? duration(waits.least) : "";
      length.setAttribute("aria-invalid", "false");
    }
    void showChips(app, chips, waits);
  });
  const ofSelected = button("Of the selection", () => {
    const { selection } = app.store.get();
    if (selection?.kind === "row" || selection?.kind === "span") {
      change({ [selection.by]: selection.row });
    }
  });
  app.store.watch(["selection", "waits"], ({ selection, waits }) => {
    const row = selection?.kind === "row" || selection?.kind === "span" ? selection : null;
    ofSelected.hidden = row === null || waits[row.by] === row.row;
  });
  return [h("label", {}, "at least ", length), kind, ofSelected, chips];
}

async function showChips(app: App, chips: HTMLElement, waits: WaitFilter): Promise<void> {
  const found: HTMLElement[] = [];
  for (const key of ["thread", "object", "site"] as const) {
    const value = waits[key];
    if (value === undefined) continue;
    const label =
      typeof value === "string" ? value : await rowLabel(app, key as "thread", Number(value));
    const { [key]: _, ...others } = waits;
    found.push(chip(label, () => app.store.update({ waits: others })));
  }
  if (app.store.get().waits === waits) chips.replaceChildren(...found);
}
