// The details at the side: the selection, with links to everything related.
import type { App } from "../base/app";
import { named as bidi, button, h } from "../base/dom";
import type { Hold, OverTime, Wait } from "../base/protocol";
import type { Range, RowKind, WaitFilter } from "../base/state";
import { count, duration, exact } from "../base/units";
import { describeRow, longestOf, named } from "../model/describe";
import type { RowData, Rows } from "../model/rows";
import { showWorst } from "../panels/parts/worst";
import { listWaits } from "../panels/waits/listed";
import { chainView } from "./chain";
import { facts, type Links, site, stack } from "./parts";
import type { EventLine, Selected, SelectedThing } from "./selected";
import { lookForChanges, type Most, mostWaited, startView } from "./start";

export function mountDetails(
  element: HTMLElement,
  app: App,
  selected: SelectedThing,
  rows: { thread: Rows; object: Rows },
): void {
  const body = h("div", { class: "details" });
  const close = button("×", () => app.store.update({ side: false }), {
    class: "close",
    "aria-label": "Close the details",
  });
  element.append(close, body);
  const links = makeLinks(app);
  let most: Most = { object: [], thread: [] };
  let changed: OverTime | null = null;
  const draw = () => {
    const { now } = selected;
    body.replaceChildren(...(now ? content(now, app, links) : startView(app, most, changed)));
  };
  selected.changed.listen(() => {
    draw();
    if (selected.now) app.announce(spoken(selected.now));
  });
  for (const kind of [rows.thread, rows.object]) {
    kind.changed.listen(async () => {
      most = await mostWaited(app).catch(() => most);
      if (!selected.now) draw();
    });
  }
  app.store.subscribe((view, before) => {
    // Figures of rows are for the whole trace. Beside a mark, the page has to say so.
    const figures = !selected.now || selected.now.kind === "row";
    if (figures && view.mark !== before.mark) draw();
  });
  let looking = false;
  const look = async () => {
    if (changed || looking) return;
    looking = true;
    // A failed or missing answer is asked for again after the next change.
    changed = await lookForChanges(app).catch(() => null);
    looking = false;
    if (changed && !selected.now) draw();
  };
  app.onChange(() => void look());
  void look();
  app.store.watch(["side"], (view) => {
    element.hidden = !view.side;
  });
  draw();
}

function content(now: Selected, app: App, links: Links): HTMLElement[] {
  switch (now.kind) {
    case "wait":
      return [...chainView(now.chain, now.later, links), ...beside(now.chain[0], app)];
    case "hold":
      return holdView(now.hold, links);
    case "row":
      return rowView(now.row, app);
    case "event":
      return eventView(now.event, app, links);
    case "failed":
      return [h("p", { class: "failed" }, now.line)];
  }
}

/** Links to related waits. */
function beside(wait: Wait | undefined, app: App): HTMLElement[] {
  if (!wait) return [];
  const list = (text: string, of: Partial<WaitFilter>) => button(text, () => listWaits(app, of));
  return [
    h(
      "div",
      { class: "actions" },
      wait.object.row ? list("Waits for this object", { object: wait.object.row }) : "",
      wait.site ? list("Waits at this call site", { site: wait.site }) : "",
      list("Waits of this thread", { thread: wait.thread.row }),
    ),
  ];
}

function spoken(now: Selected): string {
  const wait = now.kind === "wait" ? now.chain[0] : undefined;
  if (wait) {
    const holder = wait.holders?.threads[0]?.thread ?? wait.owner;
    const owner = holder ? `, held by ${holder.label}` : "";
    const length = duration(wait.dur_ns);
    return `${wait.thread.label} waited ${length} for ${wait.object.label}${owner}`;
  }
  if (now.kind === "hold") {
    return `${now.hold.thread.label} held ${now.hold.object.label} for ${duration(now.hold.dur_ns)}`;
  }
  if (now.kind === "row") {
    const { title, facts } = describeRow(now.row);
    return [title, ...facts].join(", ");
  }
  if (now.kind === "event") return now.event.sentence;
  return now.kind === "failed" ? now.line : "";
}

function makeLinks(app: App): Links {
  const toRow = (by: RowKind, row: number, label: string, title: string) => {
    const go = () => app.store.update({ selection: { kind: "row", by, row } });
    const link = button(bidi(label), go, { class: "link", title });
    return row ? link : bidi(label);
  };
  return {
    thread: (thread) => toRow("thread", thread.row, thread.label, `Thread ${thread.tid}`),
    object: (object) => {
      return toRow("object", object.row, object.label, `${object.kind} ${object.object}`);
    },
    time: (ns, range) => {
      return button(exact(ns), () => app.zoomTo(range), { class: "link time", title: "Show it" });
    },
    wait: (id, range, text) => {
      const go = () => {
        app.store.update({ selection: { kind: "wait", wait: id } });
        app.zoomTo(range);
      };
      return button(text, go, { class: "link" });
    },
  };
}

function holdView(hold: Hold, links: Links): HTMLElement[] {
  const range = { from: hold.t_ns, to: hold.t_ns + hold.dur_ns };
  const how = hold.mode === "shared" ? "shared " : "held ";
  const waited = hold.max_waiters === 1 ? "1 thread" : `${count(hold.max_waiters)} threads`;
  return [
    h("h2", {}, links.thread(hold.thread), ` ${how}`, links.object(hold.object)),
    facts([
      ["For", h("strong", {}, duration(hold.dur_ns), hold.open ? ", and had it at the end" : "")],
      ["Since", links.time(hold.t_ns, range)],
      ["Taken at", site(hold.site)],
      ["Released at", hold.open ? "–" : site(hold.release_site)],
      ["Waited meanwhile", hold.max_waiters ? `${waited} at most` : "nobody"],
      ["Object", `${hold.object.kind} ${hold.object.object}`],
    ]),
    ...stack("Taken in", hold.stack),
  ];
}

function rowView(row: RowData, app: App): HTMLElement[] {
  const { facts: lines } = describeRow(row);
  const lived = { from: row.start_ns, to: row.end_ns };
  const by: RowKind = row.by === "thread" ? "thread" : "object";
  const only = () => {
    app.store.update({ filter: { [by]: row.row }, tab: "events", dock: true });
  };
  const worst = () => {
    const failed = (error: unknown) => app.notify(String(error), "error");
    void showWorst(app, { by, row: row.row, site: "" }).catch(failed);
  };
  return [
    h("h2", {}, named(row)),
    ...(app.store.get().mark ? [h("p", { class: "hint" }, "In the whole trace:")] : []),
    h(
      "ul",
      { class: "plain" },
      ...lines.map((line) => h("li", {}, ...linked(line, longestOf(row), worst))),
    ),
    facts([
      ["First seen", exact(row.start_ns)],
      ["Last seen", exact(row.end_ns)],
    ]),
    h(
      "div",
      { class: "actions" },
      row.waits ? button("Show its longest wait", worst) : "",
      row.waits || row.idle_ns || row.other_ns
        ? button("List its waits", () => listWaits(app, { [by]: row.row }))
        : "",
      button("Show its time", () => app.zoomTo(lived)),
      button("Only its events", only),
    ),
  ];
}

/** Returns a line. If the line contains the part, the part is a link. */
function linked(line: string, part: string, go: () => void): (string | HTMLElement)[] {
  const at = line.indexOf(part);
  if (at < 0) return [line];
  const link = button(part, go, { class: "link", title: "Show this wait" });
  return [line.slice(0, at), link, line.slice(at + part.length)];
}

function eventView(event: EventLine, app: App, links: Links): HTMLElement[] {
  const about: Range = { from: event.ts_ns - 5000, to: event.ts_ns + 5000 };
  const thread = { row: event.thread_row, pid: 0, tid: 0, name: "", label: event.thread };
  const only = () => {
    app.store.update({ filter: { object: event.object_row }, tab: "events", dock: true });
  };
  return [
    h("h2", {}, event.event),
    h("p", {}, event.sentence),
    facts([
      ["Thread", links.thread(thread)],
      ["Time", links.time(event.ts_ns, about)],
      ["Call", event.site ? site(event.site) : "–"],
    ]),
    event.object_row
      ? h("div", { class: "actions" }, button("Only events of its object", only))
      : h("div"),
  ];
}
