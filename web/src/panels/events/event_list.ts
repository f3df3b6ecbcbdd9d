// The event list: rows around a place that scroll without end. One of them is the current event.
import type { App } from "../../base/app";
import { h, named } from "../../base/dom";
import type { Filter } from "../../base/state";
import { exact } from "../../base/units";
import { ROW_HEIGHT } from "../parts/table";
import { type Anchor, EventWindow, type TraceEvent } from "./event_window";

/** More events are asked for when this few are left to an end of the loaded events. */
const NEAR = 60;

export interface EventListOptions {
  readonly app: App;
  /** An event was picked with the mouse or the keyboard. */
  readonly picked: (event: TraceEvent) => void;
  /** Enter or a double click: look closely at the event. */
  readonly opened: (event: TraceEvent) => void;
  /** The visible events changed, or the progress of a search. */
  readonly moved: () => void;
}

export class EventList {
  readonly element: HTMLElement;
  private readonly body = h("div", { class: "events-body", role: "rowgroup" });
  private readonly bar = h("div", { class: "events-bar", "aria-hidden": "true" });
  private readonly thumb = h("div", { class: "events-thumb" });
  private window: EventWindow | null = null;
  /** The next window. It replaces the present window as soon as it was read. */
  private coming: EventWindow | null = null;
  private giveUp = new AbortController();
  private loading = false;
  /** Number of the first visible event, with a fraction. */
  private top = 0;
  current: TraceEvent | null = null;
  error = "";

  constructor(private readonly options: EventListOptions) {
    const titles = ["Time", "Thread", "Event", "What happened", "Call site"];
    const cells = titles.map((title, column) => {
      const kind = column === 0 ? "table-cell number" : "table-cell";
      return h("div", { role: "columnheader", class: kind }, title);
    });
    const head = h("div", { class: "table-row table-head", role: "row" }, ...cells);
    this.bar.append(this.thumb);
    this.element = h(
      "div",
      { class: "table events", role: "grid", tabindex: 0, "aria-label": "Events" },
      h("div", { role: "rowgroup" }, head),
      this.body,
      this.bar,
    );
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.dragBar();
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  get searching(): number | null {
    return this.window?.searching ?? null;
  }

  /** The time of the last event of the trace, if it is loaded. */
  get last(): number | null {
    const { window } = this;
    return window?.atEnd ? (window.events[window.events.length - 1]?.ts ?? null) : null;
  }

  /** The visible events. */
  shown(): readonly TraceEvent[] {
    const first = Math.max(0, Math.floor(this.top));
    return this.window?.events.slice(first, first + this.rows()) ?? [];
  }

  /**
   * Shows the events around a place. The event there becomes the current event if the anchor is an
   * event. Returns whether the list shows this place: the user may have asked for another place
   * meanwhile.
   */
  async show(filter: Filter, anchor: Anchor): Promise<boolean> {
    this.giveUp.abort();
    this.giveUp = new AbortController();
    const { signal } = this.giveUp;
    const window = new EventWindow(this.options.app.source, filter, signal, this.options.moved);
    this.coming = window;
    this.element.setAttribute("aria-busy", "true");
    try {
      const at = await window.around(anchor);
      if (signal.aborted) return false;
      this.error = "";
      this.window = window;
      this.loading = false;
      const found = window.events[at];
      const meant = "position" in anchor && found?.position === anchor.position;
      if (meant && found) this.current = found;
      this.top = Math.max(0, at - (meant ? Math.floor(this.rows() / 2) : 0));
    } catch (error) {
      if (signal.aborted) return false;
      this.error = error instanceof Error ? error.message : String(error);
    }
    this.coming = null;
    this.element.setAttribute("aria-busy", "false");
    this.draw();
    return this.window === window;
  }

  /** Makes an event the current event and scrolls to it, if the event is loaded. */
  go(position: string): boolean {
    if (this.coming) return false;
    const at = this.window?.events.findIndex((event) => event.position === position) ?? -1;
    if (at < 0) return false;
    this.moveTo(at, false);
    return true;
  }

  private rows(): number {
    return Math.max(1, Math.floor(this.body.clientHeight / ROW_HEIGHT));
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    const lines =
      event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY : event.deltaY / ROW_HEIGHT;
    this.scroll(lines);
  }

  private scroll(rows: number): void {
    this.top += rows;
    this.draw();
    void this.more();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const window = this.window;
    if (!window) return;
    const now = this.current
      ? window.events.findIndex((e) => e.position === this.current?.position)
      : -1;
    const at = now < 0 ? Math.floor(this.top) : now;
    const step: Record<string, number> = {
      ArrowDown: now < 0 ? 0 : 1,
      ArrowUp: -1,
      PageDown: this.rows(),
      PageUp: -this.rows(),
    };
    const by = step[event.key];
    if (by !== undefined) this.moveTo(at + by, true);
    else if (event.key === "Enter" && this.current) this.options.opened(this.current);
    else if (event.key === "Home") void this.end({ ts: 0 });
    else if (event.key === "End") void this.end({ ts: this.options.app.trace().end_ns + 1 });
    else return;
    event.preventDefault();
  }

  private async end(anchor: Anchor): Promise<void> {
    if (!(await this.show(this.options.app.store.get().filter, anchor))) return;
    const events = this.window?.events ?? [];
    this.moveTo("ts" in anchor && anchor.ts === 0 ? 0 : events.length - 1, true);
  }

  private moveTo(at: number, report: boolean): void {
    const events = this.window?.events ?? [];
    const to = Math.max(0, Math.min(events.length - 1, at));
    const event = events[to];
    if (!event) return;
    this.current = event;
    if (to < this.top) this.top = to;
    if (to > this.top + this.rows() - 1) this.top = to - this.rows() + 1;
    if (report) this.options.picked(event);
    this.draw();
    void this.more();
  }

  /** Asks for more events near an end of the loaded events. */
  private async more(): Promise<void> {
    const window = this.window;
    if (!window || this.loading) return;
    this.loading = true;
    try {
      // The position after the answer counts, and the window may have been replaced.
      if (this.top < NEAR && !window.atStart) {
        const came = await window.before();
        if (window === this.window) this.top += came;
      }
      if (
        window === this.window &&
        this.top + this.rows() > window.events.length - NEAR &&
        !window.atEnd
      ) {
        const gone = await window.after();
        if (window === this.window) this.top -= gone;
      }
    } catch {
      // The next step asks again for events that could not be read.
    }
    if (window !== this.window) return;
    this.loading = false;
    this.draw();
  }

  private draw(): void {
    const events = this.window?.events ?? [];
    this.top = Math.max(0, Math.min(this.top, events.length - this.rows()));
    const first = Math.floor(this.top);
    const shown = events.slice(first, first + this.rows() + 2);
    const shift = (first - this.top) * ROW_HEIGHT;
    this.body.replaceChildren(...shown.map((event, n) => this.row(event, n, shift)));
    const empty = this.error || (this.window && !events.length ? "No such events" : "");
    if (empty) this.body.append(h("p", { class: "empty" }, empty));
    const current = shown.findIndex((event) => event.position === this.current?.position);
    if (current >= 0) this.element.setAttribute("aria-activedescendant", `event-${current}`);
    else this.element.removeAttribute("aria-activedescendant");
    const end = Math.max(1, this.options.app.trace().end_ns);
    this.thumb.style.top = `${Math.min(1, (shown[0]?.ts ?? 0) / end) * 100}%`;
    this.options.moved();
  }

  private row(event: TraceEvent, n: number, shift: number): HTMLElement {
    const selected = event.position === this.current?.position;
    const thread = event.thread || String(event.tid);
    const texts = [exact(event.ts), thread, event.event, event.sentence, event.site];
    const cells = texts.map((text, column) => {
      const kind = column === 0 ? "table-cell number" : "table-cell";
      return h(
        "div",
        { role: "gridcell", class: kind, title: column ? text : undefined },
        named(text),
      );
    });
    const row = h(
      "div",
      { class: "table-row", role: "row", id: `event-${n}`, "aria-selected": selected },
      ...cells,
    );
    row.setAttribute("aria-selected", String(selected));
    row.dataset["position"] = event.position;
    row.style.transform = `translateY(${n * ROW_HEIGHT + shift}px)`;
    row.addEventListener("click", () => {
      this.current = event;
      this.options.picked(event);
      this.draw();
    });
    row.addEventListener("dblclick", () => this.options.opened(event));
    return row;
  }

  /** The bar stands for the time of the whole trace. A press on the bar moves the list to that time. */
  private dragBar(): void {
    let held = false;
    const go = (event: PointerEvent) => {
      const box = this.bar.getBoundingClientRect();
      const share = Math.max(0, Math.min(1, (event.clientY - box.top) / box.height));
      void this.show(this.options.app.store.get().filter, {
        ts: share * this.options.app.trace().end_ns,
      });
    };
    this.bar.addEventListener("pointerdown", (event) => {
      held = true;
      this.bar.setPointerCapture(event.pointerId);
      go(event);
    });
    this.bar.addEventListener("pointermove", (event) => {
      if (held) go(event);
    });
    for (const end of ["pointerup", "pointercancel"] as const) {
      this.bar.addEventListener(end, () => {
        held = false;
      });
    }
  }
}
