// What is seen, as a table for those who do not see it: the rows in view and what they did meanwhile.
import { h } from "../dom";
import { STATES } from "../protocol";
import type { Range } from "../state";
import { duration } from "../units";
import { sums } from "./find";
import type { Pane } from "./pane";

const REST_MS = 600;
const MOST_ROWS = 60;

export class Spoken {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly caption = h("caption");
  private timer: number | undefined;

  constructor(private readonly pane: Pane) {
    const columns = ["Row", ...STATES.slice(0, 6)].map((name) => h("th", { scope: "col" }, name));
    const table = h("table", {}, this.caption, h("thead", {}, h("tr", {}, ...columns)), this.body);
    this.element = h("div", { class: "visually-hidden" }, table);
  }

  /** Writes the table when the view has rested. */
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
      const cells = STATES.slice(0, 6).map((_, state) => {
        return h(
          "td",
          {},
          row.kind === "thread" || state === 1 ? duration(found.get(state) ?? 0) : "",
        );
      });
      rows.push(h("tr", {}, h("th", { scope: "row" }, row.label), ...cells));
    }
    this.body.replaceChildren(...rows);
  }
}
