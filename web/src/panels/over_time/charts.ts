// Draws a lock over time: the number of waiters, the share of time it was held, and the lengths, over a
// common time axis.
import { h, named, svg } from "../../base/dom";
import type { Lengths, LockOverTime } from "../../base/protocol";
import { duration, exact, percent, plural } from "../../base/units";

const HEIGHT = 100;

export interface ChartOptions {
  /** A bin was picked, by its number. */
  readonly picked: (bin: number) => void;
}

/** The charts of a lock, with a current bin for the pointer or the arrow keys. */
export class Charts {
  private readonly rows = h("div", { class: "charts-rows" });
  private readonly line = h("p", { class: "totals", role: "status" });
  private readonly at = h("div", { class: "charts-at", "aria-hidden": "true" });
  readonly element = h(
    "div",
    { class: "charts", tabindex: 0, role: "group", "aria-label": "Over time" },
    this.line,
    this.rows,
  );
  private lock: LockOverTime | null = null;
  private edges: readonly number[] = [];
  private bin = -1;

  constructor(private readonly options: ChartOptions) {
    this.rows.addEventListener("pointermove", (event) => this.go(this.binAt(event.clientX)));
    this.rows.addEventListener("pointerleave", () => this.go(-1));
    this.rows.addEventListener("click", (event) => {
      this.go(this.binAt(event.clientX));
      this.pick();
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Shows a lock, or none. */
  set(lock: LockOverTime | null, edges: readonly number[]): void {
    this.lock = lock;
    this.edges = edges;
    this.rows.replaceChildren(...(lock ? charts(lock, edges) : []), this.at);
    this.go(-1);
  }

  private binAt(x: number): number {
    const { left, width } = this.rows.getBoundingClientRect();
    const bins = this.edges.length - 1;
    const bin = Math.floor(((x - left) / Math.max(1, width)) * bins);
    return Math.max(0, Math.min(bins - 1, bin));
  }

  private go(bin: number): void {
    const { lock } = this;
    const bins = this.edges.length - 1;
    this.bin = lock ? Math.min(bin, bins - 1) : -1;
    this.at.hidden = this.bin < 0;
    this.at.style.left = `${(100 * this.bin) / bins}%`;
    this.at.style.width = `${100 / bins}%`;
    if (!lock) this.line.textContent = "";
    else {
      const line = this.bin < 0 ? wholeLine(lock) : this.binLine(lock, this.bin);
      this.line.replaceChildren(named(lock.label), ` · ${line}`);
    }
  }

  private pick(): void {
    if (this.bin >= 0) this.options.picked(this.bin);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to: Record<string, number> = {
      ArrowRight: this.bin + 1,
      ArrowLeft: Math.max(0, this.bin - 1),
      Home: 0,
      End: this.edges.length - 2,
    };
    const next = to[event.key];
    if (next !== undefined) this.go(next);
    else if (event.key === "Enter") this.pick();
    else return;
    event.preventDefault();
  }

  private binLine(lock: LockOverTime, bin: number): string {
    const from = this.edges[bin] ?? 0;
    const wide = (this.edges[bin + 1] ?? from) - from;
    const said = (what: Lengths, one: string, many: string) =>
      `${one} ${duration(what.ns[bin] ?? 0)}` +
      ((what.count[bin] ?? 0) > 0
        ? `, ${plural(what.count[bin] ?? 0, many)} ended: median ${duration(what.p50_ns[bin] ?? 0)}, 99 % within ${duration(what.p99_ns[bin] ?? 0)}`
        : "");
    return `${exact(from)} + ${duration(wide)}: ${said(lock.waits, "waited", "wait")} · ${said(lock.holds, "held", "hold")}`;
  }
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function wholeLine(lock: LockOverTime): string {
  const waits = plural(sum(lock.waits.count), "wait");
  const holds = plural(sum(lock.holds.count), "hold");
  return `waited ${duration(sum(lock.waits.ns))} in ${waits} · held ${duration(sum(lock.holds.ns))} in ${holds}`;
}

function charts(lock: LockOverTime, edges: readonly number[]): HTMLElement[] {
  const share = ({ ns }: Lengths) =>
    ns.map((one, bin) => one / Math.max(1, (edges[bin + 1] ?? 0) - (edges[bin] ?? 0)));
  const changes = lock.changes.map(({ t_ns }) => t_ns);
  const place = (t: number) => {
    const [first, last] = [edges[0] ?? 0, edges[edges.length - 1] ?? 1];
    return (t - first) / Math.max(1, last - first);
  };
  const at = changes.map(place);
  const waiting = share(lock.waits);
  const held = share(lock.holds);
  return [
    chart("Threads that wait, on average", `0 – ${greatest(waiting).toFixed(2)}`, at, [
      filled(waiting, greatest(waiting), "waits"),
    ]),
    chart(...shareHeld(greatest(held)), at, [filled(held, greatest(held), "holds")]),
    lengths("Waits took, median and 99 %", lock.waits, "waits", at),
    lengths("Holds took, median and 99 %", lock.holds, "holds", at),
  ];
}

/** Returns the title of the chart of holds, and its greatest value. */
function shareHeld(most: number): [string, string] {
  // Several threads may hold the lock at the same time.
  if (most > 1.0005) return ["Threads that hold it, on average", `0 – ${most.toFixed(2)}`];
  return ["Held", `0 – ${percent(most)}`];
}

/** Returns the chart of medians and 99th percentiles, on a logarithmic scale. */
function lengths(title: string, { p50_ns, p99_ns }: Lengths, kind: string, at: readonly number[]) {
  const most = greatest(p99_ns);
  const some = p50_ns.filter((one) => one > 0);
  const least = some.length ? Math.min(...some) : 1;
  const span = Math.log(Math.max(most, 2 * least) / least) * 1.1;
  const high = (ns: number) => (ns > 0 ? 0.08 + 0.92 * (Math.log(ns / least) / span) : 0);
  const of = some.length ? `${duration(least)} – ${duration(most)}` : "–";
  return chart(title, of, at, [
    stepped(p99_ns.map(high), `${kind} high`),
    stepped(p50_ns.map(high), `${kind} median`),
  ]);
}

function chart(title: string, most: string, at: readonly number[], paths: readonly SVGElement[]) {
  const picture = svg("svg", {
    viewBox: `0 0 1 ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  picture.append(...paths);
  for (const x of at) picture.append(svg("path", { class: "change", d: `M${x},0V${HEIGHT}` }));
  const label = h("span", { class: "chart-label" }, title, h("span", { class: "figure" }, most));
  return h("div", { class: "chart" }, label, picture);
}

/** Returns the area below values, as shares of the greatest value. */
function filled(values: readonly number[], most: number, kind: string): SVGElement {
  const wide = 1 / values.length;
  const top = values.map((one) => `V${y(most ? one / most : 0)}h${wide}`).join("");
  return svg("path", { class: `area ${kind}`, d: `M0,${HEIGHT}${top}V${HEIGHT}Z` });
}

/** Returns a line through values from 0 to 1. The line is broken where a value is missing. */
function stepped(values: readonly number[], kind: string): SVGElement {
  const wide = 1 / values.length;
  let before = 0;
  const parts = values.map((one, bin) => {
    const part = one > 0 ? `${before > 0 ? `V${y(one)}` : `M${bin * wide},${y(one)}`}h${wide}` : "";
    before = one;
    return part;
  });
  return svg("path", { class: `line ${kind}`, d: parts.join("") || "M0,0" });
}

function y(share: number): number {
  return Number((HEIGHT - share * (HEIGHT - 4)).toFixed(2));
}

function greatest(values: readonly number[]): number {
  return values.reduce((most, one) => Math.max(most, one), 0);
}
