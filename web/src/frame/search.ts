// The search box: threads, locks, call sites, event types and findings by text.

import { NotYet } from "../base/api";
import type { App } from "../base/app";
import { h, named } from "../base/dom";
import type { Hit } from "../base/protocol";
import { exact } from "../base/units";
import { restrict } from "../panels/events/filter_bar";

const TYPING_MS = 150;
const LIMIT = 40;
const NAMES: Readonly<Record<Hit["kind"], string>> = {
  thread: "thread",
  object: "lock",
  site: "call site",
  event: "event type",
  finding: "finding",
};

export function mountSearch(place: HTMLElement, app: App): void {
  const input = h("input", {
    id: "search-text",
    type: "search",
    role: "combobox",
    placeholder: "Search ( / )",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Search threads, locks, call sites, event types and findings",
    "aria-controls": "search-hits",
    "aria-expanded": "false",
    "aria-autocomplete": "list",
  });
  const list = h("div", {
    id: "search-hits",
    class: "hits",
    role: "listbox",
    "aria-label": "Found",
    hidden: true,
  });
  place.append(input, list);
  const box = new SearchBox(app, input, list);
  input.addEventListener("input", () => box.typed());
  input.addEventListener("keydown", (event) => box.key(event));
  input.addEventListener("blur", () => box.close());
  input.addEventListener("focus", () => box.typed());
  app.onChange(() => box.again());
  app.keys.add({
    chars: ["/"],
    label: "/",
    does: "Search threads, locks, call sites, event types and findings",
    group: "Navigation",
    press: () => {
      input.focus();
      input.select();
      return undefined;
    },
  });
}

class SearchBox {
  private hits: readonly Hit[] = [];
  /** The text of the present hits. */
  private found = "";
  /** Enter was pressed before the hits were there. */
  private entered = false;
  private at = 0;
  private timer: number | undefined;
  private giveUp = new AbortController();

  constructor(
    private readonly app: App,
    private readonly input: HTMLInputElement,
    private readonly list: HTMLElement,
  ) {}

  typed(): void {
    this.entered = false;
    this.later();
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.search(), TYPING_MS);
  }

  /** While the trace is being read, a new search may find more. */
  again(): void {
    if (document.activeElement === this.input && !this.hits.length) this.later();
  }

  close(): void {
    this.entered = false;
    clearTimeout(this.timer);
    this.giveUp.abort();
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  key(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && this.hits.length) this.move((this.at + step + this.hits.length) % this.hits.length);
    else if (event.key === "Enter") this.enter();
    else if (event.key === "Escape") this.input.blur();
    else return;
    event.preventDefault();
  }

  /** Goes to the best hit for the present text. The search may still have to run. */
  private enter(): void {
    if (this.input.value.trim() === this.found) {
      this.pick(this.hits[this.at]);
      return;
    }
    this.entered = true;
    void this.search();
  }

  private async search(): Promise<void> {
    clearTimeout(this.timer);
    const q = this.input.value.trim();
    this.giveUp.abort();
    this.giveUp = new AbortController();
    const { signal } = this.giveUp;
    if (!q) {
      this.hits = [];
      this.found = "";
      this.close();
      return;
    }
    try {
      const found = await this.app.source.json("search", { q, limit: LIMIT }, signal);
      if (signal.aborted) return;
      this.found = q;
      this.show(found.hits, found.more);
      if (this.entered) this.pick(this.hits[0]);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof NotYet) this.later();
      else this.app.notify(error instanceof Error ? error.message : String(error), "error");
    }
  }

  private show(hits: readonly Hit[], more: boolean): void {
    this.hits = hits;
    const options = hits.map((hit, at) => this.option(hit, at));
    const rest = hits.length ? (more ? "More hits: type more letters" : "") : "Nothing found";
    this.list.replaceChildren(...options, ...(rest ? [h("div", { class: "hint" }, rest)] : []));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.app.announce(hits.length ? `${hits.length} found` : "Nothing found");
    this.move(0);
  }

  private option(hit: Hit, at: number): HTMLElement {
    const time = hit.t_ns === null ? "" : exact(hit.t_ns);
    const about = [hit.about, time].filter(Boolean).join(" · ");
    const option = h(
      "div",
      { id: `hit-${at}`, role: "option", class: "hit" },
      h("span", { class: "hit-kind" }, NAMES[hit.kind]),
      h("span", { class: "hit-label" }, named(hit.label)),
      h("span", { class: "hit-about" }, about),
    );
    // The press must come before the field loses the focus, as this closes the list.
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.pick(hit);
    });
    return option;
  }

  private move(at: number): void {
    this.at = at;
    [...this.list.querySelectorAll("[role=option]")].forEach((option, n) => {
      option.setAttribute("aria-selected", String(n === at));
      if (n === at) option.scrollIntoView({ block: "nearest" });
    });
    if (this.hits.length) this.input.setAttribute("aria-activedescendant", `hit-${at}`);
  }

  private pick(hit: Hit | undefined): void {
    if (!hit) return;
    go(this.app, hit);
    this.input.blur();
  }
}

/** Goes to a hit. */
function go(app: App, hit: Hit): void {
  if (hit.by && hit.row) app.store.update({ selection: { kind: "row", by: hit.by, row: hit.row } });
  if (hit.kind === "site") restrict(app, { site: hit.label });
  if (hit.kind === "event") restrict(app, { event: hit.label });
  if (hit.kind === "site" || hit.kind === "event") app.store.update({ tab: "events", dock: true });
  if (hit.kind === "finding") app.store.update({ tab: "findings", dock: true });
  if (hit.kind === "finding" && hit.t_ns !== null) {
    const air = Math.max(1e5, app.trace().end_ns / 1000);
    app.zoomTo({ from: Math.max(0, hit.t_ns - air), to: hit.t_ns + air });
  }
  app.announce(`${NAMES[hit.kind]} ${hit.label}`);
}
