// The panel of findings: the findings of `ptt check`, with their proof, and a way to see them on the
// timeline.
import type { App, Panel } from "../base/app";
import { button, h } from "../base/dom";
import type { Finding, FindingEvent, FindingRows, Findings } from "../base/protocol";
import type { Selection } from "../base/state";
import { count, exact, plural, sentence } from "../base/units";
import { Asking } from "./parts/asking";

const SHOWN = 200;
/** A finding at a single moment is shown with this much of the trace on both sides. */
const AROUND_NS = 1e6;

export const FINDINGS: Panel = {
  id: "findings",
  title: "Findings",
  help: "Bugs and suspicious patterns, with the events that prove them",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const summary = h("p", { class: "totals" });
  const list = h("ul", { class: "cards", "aria-label": "Findings" });
  const asking = new Asking<Findings>({
    app,
    panel: element,
    ask: (signal) => app.source.json("findings", {}, signal),
    show: (answer) => {
      summary.textContent = summaryOf(answer);
      const cards = answer.findings
        .slice(0, SHOWN)
        .map((found, at) => card(app, found, answer.rows[at]));
      list.replaceChildren(...cards);
    },
  });
  element.append(h("div", { class: "panel-text" }, asking.element, summary, list));
  asking.renew();
}

function summaryOf(answer: Findings): string {
  const { findings } = answer;
  const parts = [
    findings.length
      ? plural(findings.length, "finding")
      : `Nothing found of: ${answer.kinds.join(", ")}`,
  ];
  if (findings.length > SHOWN) parts.push(`the first ${SHOWN} are shown`);
  if (answer.partial) parts.push("events are missing: findings that need all events were left out");
  if (answer.futex_waits)
    parts.push(`not covered: ${plural(answer.futex_waits, "wait")} for futexes by system call`);
  parts.push(...answer.uncovered.map(({ module, why }) => `not covered: ${module}: ${why}`));
  parts.push(...answer.failures.map((failure) => `Not looked for: ${sentence(failure)}`));
  if (answer.lost) parts.push(`${count(answer.lost)} events were lost`);
  return parts.join(" · ");
}

function card(app: App, found: Finding, rows: FindingRows | undefined): HTMLElement {
  const times = found.count > 1 ? `, ${count(found.count)} times` : "";
  const text = sentence(found.title);
  const title = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  const events = [...found.events].sort((a, b) => a.ts_ns - b.ts_ns);
  return h(
    "li",
    { class: `card ${found.severity}` },
    h(
      "div",
      { class: "card-head" },
      h("b", { class: "severity" }, found.severity === "error" ? "✖ error" : "▲ warning"),
      h("b", {}, found.kind),
      h("span", {}, `at ${exact(found.ts_ns)} in process ${found.pid}${times}`),
      found.suspect ? h("span", {}, "possible only") : null,
      button("Show me", () => show(app, found, rows), { class: "primary" }),
    ),
    h("p", {}, title),
    h("ul", { class: "proof" }, ...events.map((event) => proof(app, event))),
  );
}

function proof(app: App, event: FindingEvent): HTMLElement {
  const site = event.site ? ` at ${event.site}` : "";
  const go = button(exact(event.ts_ns), () => void showEvent(app, event), {
    class: "time",
    title: "Show this event in the list",
  });
  return h("li", {}, go, ` thread ${event.tid} ${sentence(event.text)}${site}`);
}

/** Zooms to the events that prove a finding, and selects its thread or object. */
function show(app: App, found: Finding, rows: FindingRows | undefined): void {
  const times = [found.ts_ns, ...found.events.map((event) => event.ts_ns)];
  const from = Math.min(...times);
  const to = Math.max(...times);
  const selection = selectionOf(found, rows);
  if (selection) app.store.update({ selection });
  const air = to > from ? 0 : AROUND_NS;
  app.zoomTo({ from: Math.max(0, from - air), to: to + air });
  app.announce(`Showing ${found.kind} at ${exact(found.ts_ns)}`);
}

/**
 * Returns the subject of a finding. For a cycle of waits this is the wait that closed the cycle,
 * with its chain.
 */
function selectionOf(found: Finding, rows: FindingRows | undefined): Selection | null {
  const object = rows?.objects.find((row) => row > 0);
  const thread = rows?.threads.find((row) => row > 0);
  const last = found.events.find((event) => event.ts_ns === found.ts_ns);
  const waiter = rows?.threads[found.threads.indexOf(last?.tid ?? 0)];
  if (found.kind === "deadlock" && waiter) {
    return { kind: "span", by: "thread", row: waiter, lane: 0, at: found.ts_ns };
  }
  if (object) return { kind: "row", by: "object", row: object };
  return thread ? { kind: "row", by: "thread", row: thread } : null;
}

/** Goes to the event of a thread at a time. */
async function showEvent(app: App, event: FindingEvent): Promise<void> {
  const found = await app.source.table("events", { t_ns: event.ts_ns, count: 50 });
  let at = 0;
  while (at < found.length - 1 && found.tid[at] !== event.tid) at++;
  const position = found.position[at];
  if (position === undefined) return;
  const selection = { kind: "event", position, at: found.ts_ns[at] ?? event.ts_ns } as const;
  app.store.update({ selection, filter: {}, tab: "events" });
}
