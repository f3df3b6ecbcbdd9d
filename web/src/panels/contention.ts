// The panel of contention: the numbers of `ptt report`, by object, thread, call site, or thread and object.
import type { App, Panel } from "../base/app";
import { h } from "../base/dom";
import type {
  Contention,
  Figures,
  ReportObject,
  ReportPair,
  ReportSite,
  ReportThread,
} from "../base/protocol";
import type { RowKind } from "../base/state";
import { count, duration, plural } from "../base/units";
import { causesOf, holdersOf } from "./blame";
import { aboutBox } from "./parts/about";
import { Asking } from "./parts/asking";
import { scope, scopeBar, scopeLength } from "./parts/scope";
import { type Column, DataTable } from "./parts/table";
import { showWorst } from "./parts/worst";

type By = "object" | "thread" | "site" | "thread,object";
const VIEWS: readonly (readonly [By, string])[] = [
  ["object", "By object"],
  ["thread", "By thread"],
  ["site", "By call site"],
  ["thread,object", "By thread and object"],
];
const LIMIT = 2000;

/** A line of the table: figures, a label, and the rows of the timeline for it. */
interface Line extends Figures {
  readonly label: string;
  readonly by: RowKind;
  readonly row: number;
  readonly site: string;
  readonly caused: number;
  /**
   * How long a thread could have run without a processor; null if not known or if the line is not a
   * thread.
   */
  readonly ready: number | null;
  readonly about: () => HTMLElement | null;
}

export const CONTENTION: Panel = {
  id: "contention",
  title: "Contention",
  help: "Which threads waited for other threads, how long, and where",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  let by: By = "object";
  const choice = h("select", { "aria-label": "Add up", id: "contention-by" });
  for (const [value, text] of VIEWS) choice.append(h("option", { value }, text));
  const totals = h("p", { class: "totals" });
  const about = aboutBox();
  const table = new DataTable<Line>({
    label: "Contention",
    columns: columns(),
    sort: "wait_ns",
    active: (line) => {
      const found = line?.about();
      about.replaceChildren(...(found ? [found] : []));
    },
    open: (line) =>
      void showWorst(app, line).catch((error: unknown) => app.notify(String(error), "error")),
  });
  const asking = new Asking<Contention>({
    app,
    panel: element,
    ask: (signal) => app.source.json("contention", { by, ...scope(app), limit: LIMIT }, signal),
    show: (answer) => {
      const lines = linesOf(answer, by);
      showTotals(totals, answer, by, lines.length, lengthOf(app, answer));
      about.replaceChildren(h("p", { class: "hint" }, "Pick a line to see its longest wait"));
      table.set(lines);
    },
  });
  choice.addEventListener("change", () => {
    by = choice.value as By;
    asking.renew();
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      scopeBar(app, choice, table.saver),
      asking.element,
      totals,
      h("div", { class: "panel-split" }, table.element, about),
    ),
  );
  app.store.watch(["mark"], () => asking.renew());
}

/** While a recording goes on, the answer is about the events at the time of the question. */
function lengthOf(app: App, { report }: Contention): string {
  const grows = app.trace().state === "running" && !app.store.get().mark;
  return grows ? duration(report.elapsed_ns) : scopeLength(app);
}

function showTotals(
  totals: HTMLElement,
  answer: Contention,
  by: By,
  shown: number,
  length: string,
): void {
  const { report } = answer;
  const all = {
    object: answer.objects_total,
    thread: shown,
    site: answer.sites_total,
    "thread,object": answer.pairs_total,
  }[by];
  const apart = [
    report.idle_ns ? `idle ${duration(report.idle_ns)}` : "",
    report.join_ns ? `joining ${duration(report.join_ns)}` : "",
    report.timeout_ns ? `timed out ${duration(report.timeout_ns)}` : "",
    report.cancelled_ns ? `cancelled ${duration(report.cancelled_ns)}` : "",
    report.gil_ns ? `for the GIL ${duration(report.gil_ns)}` : "",
  ].filter(Boolean);
  totals.dataset["waitNs"] = String(report.wait_ns);
  totals.dataset["waits"] = String(report.waits);
  totals.dataset["elapsedNs"] = String(report.elapsed_ns);
  totals.textContent = [
    report.waits
      ? `${length}: contended for ${duration(report.wait_ns)} in ${plural(report.waits, "wait")}`
      : `${length}: ${answer.uncontended}`,
    apart.length ? `not contention: ${apart.join(", ")}` : "",
    report.unknown_waits
      ? `of unknown purpose: ${duration(report.unknown_ns)} in ${plural(report.unknown_waits, "wait")}`
      : "",
    report.uncovered.length
      ? `not covered: ${report.uncovered.map(({ module, why }) => `${module}: ${why}`).join(", ")}`
      : "",
    report.lost ? `${count(report.lost)} events were lost: this is incomplete` : "",
    all > shown ? `the ${count(shown)} with most waiting of ${count(all)}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function columns(): Column<Line>[] {
  let most = 1;
  const time = (id: keyof Figures, title: string, help: string): Column<Line> => ({
    id,
    title,
    help,
    width: "minmax(66px, 1fr)",
    numeric: true,
    value: (line) => line[id] ?? 0,
    text: (line) => (line[id] ? duration(line[id]) : "–"),
  });
  const about = (id: keyof Figures, title: string, help: string): Column<Line> => ({
    ...time(id, title, help),
    width: "minmax(82px, 1fr)",
    text: (line) => (line[id] ? `≈ ${duration(line[id])}` : "–"),
  });
  const number = (id: keyof Figures, title: string, help: string): Column<Line> => ({
    id,
    title,
    help,
    width: "minmax(62px, 0.8fr)",
    numeric: true,
    value: (line) => line[id] ?? 0,
    text: (line) => (line[id] ? count(line[id]) : "–"),
  });
  const wait = time(
    "wait_ns",
    "Waited",
    "How long threads waited for something that another thread had",
  );
  return [
    { id: "label", title: "What", width: "minmax(240px, 38%)", value: (line) => line.label },
    {
      ...wait,
      width: "minmax(82px, 1fr)",
      bar: (line) => {
        most = Math.max(most, line.wait_ns);
        return line.wait_ns / most;
      },
    },
    {
      ...time(
        "held_ns",
        "While held",
        "The part in which a thread held the object: the holder caused it",
      ),
      width: "minmax(84px, 1fr)",
    },
    {
      ...time(
        "wake_ns",
        "Until awake",
        "The rest: the lock was already free, or the signal was already sent",
      ),
      width: "minmax(88px, 1fr)",
    },
    number("waits", "Waits", "Contended waits"),
    time("wait_max_ns", "Longest", "The longest contended wait"),
    about("wait_p50_ns", "Median", "Half of the contended waits were shorter; within 3 %"),
    about("wait_p99_ns", "p99", "99 of 100 contended waits were shorter; within 3 %"),
    {
      id: "caused",
      title: "Caused",
      help: "How long other threads waited because of it, as far as the holders are known",
      width: "minmax(66px, 1fr)",
      numeric: true,
      value: (line) => line.caused,
      text: (line) => (line.caused ? duration(line.caused) : "–"),
    },
    time("idle_ns", "Idle", "Waiting for work, which is not contention"),
    number("holds", "Holds", "How often a lock was held"),
    time("hold_ns", "Held", "How long locks were held"),
    { ...time("hold_max_ns", "Longest hold", "The longest hold"), width: "minmax(94px, 1fr)" },
    {
      id: "ready",
      title: "No processor",
      help: "For threads: how long they could have run and had no processor, in waits or not; – if the trace does not say",
      width: "minmax(92px, 1fr)",
      numeric: true,
      value: (line) => line.ready ?? -1,
      text: (line) => (line.ready ? duration(line.ready) : "–"),
    },
  ];
}

function linesOf(answer: Contention, by: By): Line[] {
  const { report } = answer;
  const pids = new Set(report.threads.map((thread) => thread.pid)).size > 1;
  const of = (pid: number) => (pids ? ` of ${pid}` : "");
  const object = (kind: string, name: string, address: string, init = "") =>
    `${kind} ${name || (init ? `of ${init} ${address}` : address)}`;
  const none = { by: "object" as RowKind, row: 0, site: "", caused: 0, ready: null };
  switch (by) {
    case "object":
      return report.objects.map((item: ReportObject, at) => ({
        ...none,
        ...item,
        label: object(item.kind, item.name, item.object, item.init_site) + of(item.pid),
        row: answer.object_rows[at] ?? 0,
        caused: item.blamed.reduce((sum, one) => sum + one.wait_caused_ns, 0),
        about: () => holdersOf(item),
      }));
    case "thread":
      return report.threads.map((item: ReportThread, at) => ({
        ...item,
        label: threadName(item.tid, item.name) + of(item.pid),
        by: "thread",
        row: answer.thread_rows[at] ?? 0,
        site: "",
        caused: item.wait_caused_ns,
        ready: item.ready_ns,
        about: () => causesOf(item),
      }));
    case "site":
      return (report.sites ?? []).map((item: ReportSite) => ({
        ...none,
        ...item,
        label: `${item.site}${of(item.pid)}`,
        site: item.site_address,
        caused: item.wait_caused_ns,
        about: () => null,
      }));
    case "thread,object":
      return (report.pairs ?? []).map((item: ReportPair, at) => ({
        ...none,
        ...item,
        label: `${threadName(item.tid, item.thread_name)}, ${object(item.kind, item.object_name, item.object)}${of(item.pid)}`,
        row: answer.pair_rows[at]?.[1] ?? 0,
        caused: item.wait_caused_ns,
        about: () => null,
      }));
  }
}

function threadName(tid: number, name: string): string {
  return `${tid} ${name}`.trim();
}
