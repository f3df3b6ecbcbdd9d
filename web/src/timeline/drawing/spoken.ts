// The visible part as a table for screen readers: the rows in view with the times of their states.
import { h } from "../../base/dom";
import { STATES } from "../../base/protocol";
import type { Range } from "../../base/state";
import { duration } from "../../base/units";
import { sums } from "../../model/find";
import type { Pane } from "./pane";

const REST_MS = 600;
const MOST_ROWS = 60;
/** The states with columns. They do not overlap. */
const WAITS = ["contended", "idle", "join", "timeout", "cancelled", "gil"].map((state) =>
  STATES.indexOf(state as (typeof STATES)[number]),
);
const DOING = [...STATES.keys()].filter((state) => state > STATES.indexOf("shared"));
const RUNNING = STATES.indexOf("running");
const SHOWN = [0, ...WAITS, ...DOING];

export class Spoken {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly caption = h("caption");
  private timer: number | undefined;

  constructor(private readonly pane: Pane) {
    const names = ["Row", ...SHOWN.map((state) => STATES[state] ?? "")];
    const columns = names.map((name) => h("th", { scope: "col" }, name));
    const table = h("table", {}, this.caption, h("thead", {}, h("tr", {}, ...columns)), this.body);
    this.element = h("div", { class: "visually-hidden" }, table);
  }

  /** Writes the table after the view has rested. */
  update(range: Range, end: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.write(range, end), REST_MS);
  }

  private write(range: Range, end: number): void {
    const { pane } = this;
    this.caption.textContent = `${pane.options.title} in view: ${duration(range.to - range.from)}`;
    const rows: HTMLElement[] = [];
    for (const number of pane.visible().slice(0, MOST_ROWS)) {
      const row = pane.options.rows.get(number);
      if (!row) continue;
      const found = sums(pane.options.tiles, number, pane.dense(range), end);
      const lived = Math.min(range.to, row.end_ns) - Math.max(range.from, row.start_ns);
      const kept = [...found.values()].reduce((sum, ns) => sum + ns, 0);
      found.set(0, Math.max(0, lived - kept));
      // The states of turns say how turns ended. The threads ran in all of them.
      const ran = [...found].reduce((sum, [state, ns]) => sum + (state ? ns : 0), 0);
      if (row.kind === "processor") found.set(RUNNING, ran);
      const cells = SHOWN.map((state) => {
        const has = row.kind === "thread" || state === (row.kind === "processor" ? RUNNING : 1);
        return h("td", {}, has ? duration(found.get(state) ?? 0) : "");
      });
      rows.push(h("tr", {}, h("th", { scope: "row" }, row.label), ...cells));
    }
    this.body.replaceChildren(...rows);
  }
}
