// The timeline: overview, ruler, threads and locks, wired to the view and to each other.
import { RequestFailed } from "../base/api";
import type { App } from "../base/app";
import { button, h } from "../base/dom";
import { FLAGS, STATES } from "../base/protocol";
import { save } from "../base/save";
import { FIRST_VIEW, type PaneKind, type Range, rowsIn } from "../base/state";
import { plain } from "../base/text";
import { mountDetails } from "../details/details";
import { arrowsOf, rowOf, rowsOf, type Selected, SelectedThing } from "../details/selected";
import { divider } from "../frame/divider";
import type { Shell } from "../frame/shell";
import { describeSpan } from "../model/describe";
import { dividedBy, groupOf } from "../model/layout";
import { Motion } from "../model/motion";
import { type RowData, Rows } from "../model/rows";
import { Scale } from "../model/scale";
import { Tiles } from "../model/tiles";
import { rangeText } from "../panels/parts/scope";
import { Arrows } from "./drawing/arrows";
import { objectLegend, processorLegend, threadLegend } from "./drawing/legend";
import { light } from "./drawing/lit";
import { drawOver } from "./drawing/over";
import { Overview } from "./drawing/overview";
import { Palette } from "./drawing/palette";
import { type Hit, Pane } from "./drawing/pane";
import { picture } from "./drawing/picture";
import { Ruler } from "./drawing/ruler";
import { Spoken } from "./drawing/spoken";
import { oncePerFrame } from "./drawing/surface";
import { Actions } from "./input/actions";
import { addCommands } from "./input/commands";
import { Cursor } from "./input/cursor";
import { Menu } from "./input/menu";
import { followPointer } from "./input/pointer";
import { showAll } from "./input/row_menu";
import { makeCorner, makeSwitches } from "./toolbar";
import { Tooltip } from "./tooltip";

const ROWS_MS = 2000;
/** Rows are hidden and shown again after the view has rested this long. */
const REST_MS = 150;
const SHARED = STATES.indexOf("shared");
const TITLES = { thread: "Threads", processor: "Processors", object: "Locks" } as const;
/** The kind of the `other` rows in the spans of a pane. */
const OTHERS = { thread: "object", processor: "thread", object: "thread" } as const;
const NAMES_WIDTH = { first: 230, least: 90, most: 600 };

export class Timeline {
  readonly motion: Motion;
  private readonly rows: Record<PaneKind, Rows>;
  private readonly panes: Record<PaneKind, Pane>;
  private readonly ruler = new Ruler();
  private readonly overview: Overview;
  private readonly arrows: Arrows;
  private readonly tooltip: Tooltip;
  private readonly selected: SelectedThing;
  private readonly cursor: Cursor;
  private readonly actions: Actions;
  private readonly legends = {
    thread: threadLegend(),
    processor: processorLegend(),
    object: objectLegend(),
  };
  private readonly spoken: readonly Spoken[];
  private palette = new Palette(devicePixelRatio || 1);
  private namesWidth = Math.max(NAMES_WIDTH.least, Math.min(NAMES_WIDTH.first, innerWidth * 0.3));
  /** The selection while its rows are not loaded yet. */
  private toShow: Selected | null = null;
  private pointer: { ns: number; hit: Hit | null } | null = null;
  /** The lock under the pointer, in its name. */
  private pointed = 0;
  /** Runs again when the view moves under a resting pointer. */
  private hovered: (() => void) | null = null;
  private family = "sans-serif";
  private readonly drawAll = oncePerFrame(() => this.paintAll());
  private readonly drawOver = oncePerFrame(() => this.paintOver());

  constructor(
    private readonly shell: Shell,
    private readonly app: App,
  ) {
    const failed = (error: unknown) => this.failed(error);
    this.rows = {
      thread: new Rows("thread", app.source, failed),
      processor: new Rows("processor", app.source, failed),
      object: new Rows("object", app.source, failed),
    };
    this.panes = {
      thread: this.makePane("thread"),
      processor: this.makePane("processor"),
      object: this.makePane("object"),
    };
    this.motion = new Motion(app, () => this.pointer?.ns ?? null);
    this.arrows = new Arrows(app.source, failed);
    this.tooltip = new Tooltip(shell.overlay);
    const marked = () => app.store.get().mark;
    this.overview = new Overview(
      shell.overview,
      app.source,
      this.motion,
      () => this.palette,
      marked,
      failed,
    );
    this.selected = new SelectedThing(app.source, app.store, this.rows);
    const end = () => this.end();
    this.cursor = new Cursor(app, this.motion, this.panes.thread, end, () => this.drawAll());
    const { motion, panes, cursor, selected } = this;
    const menu = new Menu(shell.overlay);
    this.actions = new Actions(app, motion, panes, cursor, selected, () => this.drawOver(), menu);
    this.spoken = this.each((pane) => new Spoken(pane));
    this.build();
    this.follow();
    mountDetails(shell.details, app, this.selected, this.rows);
  }

  /** Shows a range with a margin at both sides. */
  zoomTo(range: Range): void {
    this.motion.flyTo(range);
  }

  /** Lets the browser save the visible timeline as a picture. */
  private savePicture(): void {
    const { overview, timeline } = this.shell;
    const name = `${plain(this.app.trace().name).replaceAll("/", "-")}.png`;
    const caption = `${plain(this.app.trace().name)}: ${rangeText(this.motion.range())}`;
    picture([overview, timeline], this.palette.ratio, caption).toBlob((made) => {
      if (made) save(made, name);
    });
  }

  // ---- building ----

  private makePane(by: PaneKind): Pane {
    const tiles = new Tiles(by, this.app.source, (error) => this.failed(error));
    tiles.changed.listen(() => this.drawAll());
    this.rows[by].changed.listen(() => {
      this.arrange();
      this.showSelected(false);
      this.drawAll();
    });
    return new Pane({
      by,
      title: TITLES[by],
      rows: this.rows[by],
      tiles,
      legend: this.legends[by].element,
      groupName: (process, name) => this.groupName(process, name),
      nameOf: (row) => this.rows[OTHERS[by]].name(row),
      picked: (item) => this.actions.pick(by, item),
      menu: (item, x, y) => this.actions.menuOf(item, x, y),
      showAll: () => showAll(this.app, by),
      pointed: (row) => {
        if (by !== "object") return;
        this.pointed = row;
        this.drawOver();
      },
      scrolled: () => this.drawAll(),
    });
  }

  private each<T>(make: (pane: Pane) => T): T[] {
    const { thread, processor, object } = this.panes;
    return [make(thread), make(processor), make(object)];
  }

  private build(): void {
    const place = this.shell.timeline;
    const top = h("div", { class: "timeline-top" }, makeCorner(this.app), this.ruler.element);
    const { thread, processor, object } = this.panes;
    processor.element.classList.add("processors");
    processor.element.hidden = true;
    const split = divider({
      label: "Height of threads and locks",
      orientation: "horizontal",
      at: () => thread.element.offsetHeight,
      moved: (pixels) => {
        const whole = thread.element.offsetHeight + object.element.offsetHeight;
        const share = (thread.element.offsetHeight + pixels) / Math.max(1, whole);
        this.app.store.update({ split: Math.min(0.95, Math.max(0.05, share)) });
      },
    });
    const names = divider({
      label: "Width of the names",
      orientation: "vertical",
      at: () => this.namesWidth,
      moved: (pixels) => {
        const { least, most } = NAMES_WIDTH;
        this.namesWidth = Math.min(most, Math.max(least, this.namesWidth + pixels));
        this.resize();
      },
    });
    names.classList.add("names-divider");
    const saver = button("Picture", () => this.savePicture(), {
      id: "picture",
      title: "Save the visible timeline as a PNG file (P)",
    });
    this.shell.tools.prepend(...makeSwitches(this.app), saver);
    this.app.keys.add({
      chars: ["p", "P"],
      label: "P",
      does: "Save the visible timeline as a picture",
      group: "View",
      press: () => {
        this.savePicture();
        return undefined;
      },
    });
    place.append(top, thread.element, processor.element, split, object.element, names);
    for (const spoken of this.spoken) place.append(spoken.element);
    this.each((pane) => this.followPane(pane));
    this.followRuler();
    new ResizeObserver(() => this.resize()).observe(place);
    new ResizeObserver(() => this.resize()).observe(this.shell.overview);
    addCommands(this.app, this.motion, this.actions, this.cursor);
  }

  private follow(): void {
    const { app } = this;
    app.store.watch(["sort", "rows"], () => void this.load());
    app.store.watch(["folded", "pinned", "hidden", "only", "byName", "inView"], () => {
      this.arrange();
      this.drawAll();
    });
    let resting: number | undefined;
    app.store.watch(["range"], (view) => {
      clearTimeout(resting);
      if (!view.inView) return;
      resting = window.setTimeout(() => {
        this.arrange();
        this.drawAll();
      }, REST_MS);
    });
    app.store.watch(["split"], () => this.resize());
    app.store.watch(["range"], () => {
      this.hovered?.();
      this.drawAll();
    });
    app.store.watch(["mark", "other", "arrows"], () => this.drawAll());
    this.selected.changed.listen(() => {
      this.toShow = this.selected.now;
      this.showSelected(true);
      this.drawAll();
    });
    this.arrows.changed.listen(() => this.drawOver());
    app.onTheme(() => this.recolour());
    this.recolour();
    this.followTrace();
  }

  /** Draws a trace anew that grows or is still being read. A view at the end of the trace moves with it. */
  private followTrace(): void {
    let drawnFrom = this.extent();
    let wasReady = this.app.trace().detail.ready;
    let end = this.end();
    let loading: number | undefined;
    this.app.onChange(() => {
      const now = this.extent();
      this.selected.refresh();
      if (now === drawnFrom) return;
      drawnFrom = now;
      const { range } = this.app.store.get();
      const grown = this.end() - end;
      if (range && grown > 0 && range.from < end && range.to >= end) this.motion.pan(grown);
      end = this.end();
      const { ready } = this.app.trace().detail;
      this.each((pane) => pane.options.tiles.outdate(ready !== wasReady));
      wasReady = ready;
      this.arrows.outdate();
      this.overview.refresh(true);
      this.drawAll();
      // Fetching all rows is slow. While they change all the time, they are fetched now and then.
      const rest = this.app.trace().detail.ready ? 0 : ROWS_MS;
      if (rest && loading !== undefined) return;
      clearTimeout(loading);
      loading = window.setTimeout(() => {
        loading = undefined;
        void this.load();
      }, rest);
    });
  }

  /** A key for the drawn state of the trace. Later analysis does not change it. */
  private extent(): string {
    const { end_ns, events, detail } = this.app.trace();
    return [end_ns, events, detail.ready, detail.until_ns].join();
  }

  private followPane(pane: Pane): void {
    pane.names.element.addEventListener("focus", () => {
      this.cursor.pane = pane;
      if (!pane.cursor) this.cursor.moveRow(0);
    });
    followPointer(pane.canvas.parentElement ?? pane.canvas, {
      drag: (dx, dy) => {
        this.motion.pan(-dx * this.nsPerPixel());
        pane.scroller.scrollTop -= dy;
      },
      zoom: (factor, x) => this.motion.zoom(factor, this.nsAt(x)),
      pan: (pixels) => this.motion.pan(pixels * this.nsPerPixel()),
      scroll: (pixels) => {
        if (pane.layout.height <= pane.height) return false;
        pane.scroller.scrollTop += pixels;
        return true;
      },
      click: (x, y) => this.actions.click(pane, x, y),
      open: (x, y) => this.actions.open(pane, x, y),
      menu: (x, y) => this.actions.menu(pane, x, y),
      hover: (x, y) => this.hover(pane, x, y),
      leave: () => this.leave(),
      mark: (from, to) => this.actions.markRange(this.rangeOf(from, to)),
    });
  }

  private followRuler(): void {
    followPointer(
      this.ruler.element,
      {
        drag: (dx) => this.motion.pan(-dx * this.nsPerPixel()),
        zoom: (factor, x) => this.motion.zoom(factor, this.nsAt(x)),
        pan: (pixels) => this.motion.pan(pixels * this.nsPerPixel()),
        scroll: () => false,
        click: () => this.app.store.update({ mark: null }),
        open: () => this.motion.showAll(),
        menu: () => undefined,
        hover: (x) => {
          this.hovered = null;
          this.pointer = { ns: this.nsAt(x), hit: null };
          this.drawOver();
        },
        leave: () => this.leave(),
        mark: (from, to) => this.actions.markRange(this.rangeOf(from, to)),
      },
      true,
    );
  }

  // ---- state ----

  private end(): number {
    return this.motion.whole().to;
  }

  private nsPerPixel(): number {
    return new Scale(this.motion.range(), this.panes.thread.width).nsPerPixel;
  }

  private nsAt(clientX: number): number {
    const left = this.panes.thread.canvas.getBoundingClientRect().left;
    return new Scale(this.motion.range(), this.panes.thread.width).ns(clientX - left);
  }

  private groupName(process: number, name: string): string {
    const { processes } = this.app.trace();
    const found = processes.find((one) => one.process === process);
    const owner = found ? `${found.name} (${found.pid})` : `process ${process}`;
    if (!name) return owner;
    return processes.length > 1 ? `${name}* of ${owner}` : `${name}*`;
  }

  private async load(): Promise<void> {
    const { sort, rows } = this.app.store.get();
    const { thread, processor, object } = this.rows;
    // There are few processors, and they are known by number.
    const processors = processor.load("row", "");
    await Promise.all([thread.load(sort, rows), processors, object.load(sort, rows)]);
    if (!rows || rows !== this.app.store.get().rows) return;
    // A filter by thread names matches no lock. If all locks would be hidden, they are shown.
    if (!thread.total && object.total) await thread.load(sort, "");
    else if (!object.total && thread.total) await object.load(sort, "");
  }

  private arrange(): void {
    const view = this.app.store.get();
    const { folded, rows, byName } = view;
    const ready = this.app.trace().detail.ready;
    const empty = rows
      ? "No row matches the filter"
      : ready
        ? "None in this trace"
        : "Reading the trace…";
    // The filter does not apply to processors.
    const alive = view.inView ? this.motion.range() : null;
    this.each((pane) => {
      const [pinned, hidden, only] = [view.pinned, view.hidden, view.only].map((refs) =>
        rowsIn(refs, pane.by),
      ) as [number[], number[], number[]];
      const arrangement = { folded, pinned, hidden, only, byName, alive };
      pane.arrange(arrangement, empty, pane.by === "processor" ? "" : rows);
    });
    const { processor } = this.panes;
    const none = !processor.layout.items.length;
    if (processor.element.hidden !== none) {
      processor.element.hidden = none;
      this.resize();
    }
    this.divide();
  }

  private failed(error: unknown): void {
    const line = error instanceof Error ? error.message : String(error);
    this.app.notify(
      error instanceof RequestFailed ? line : `The viewer's server: ${line}`,
      "error",
    );
  }

  // ---- drawing ----

  /** Divides the height between threads and locks by the user's choice. Neither gets more than it needs. */
  private divide(): void {
    const { split } = this.app.store.get();
    const { thread, object } = this.panes;
    const whole = thread.element.offsetHeight + object.element.offsetHeight;
    const [first, second] = [thread.needed(), object.needed()];
    const chosen = split !== FIRST_VIEW.split || !whole || !thread.layout.items.length;
    const share = chosen ? split : dividedBy(first, second, whole, split);
    const grow = String(share);
    if (thread.element.style.flexGrow === grow) return;
    thread.element.style.flexGrow = grow;
    object.element.style.flexGrow = String(1 - share);
    this.each((pane) => pane.resize(this.namesWidth));
  }

  private resize(): void {
    this.divide();
    this.shell.timeline.style.setProperty("--names-width", `${this.namesWidth}px`);
    this.each((pane) => pane.resize(this.namesWidth));
    this.ruler.resize(this.panes.thread.width);
    this.overview.refresh(false);
    this.drawAll();
  }

  private recolour(): void {
    this.palette = new Palette(Math.min(3, devicePixelRatio || 1));
    this.family = getComputedStyle(document.body).fontFamily;
    for (const legend of Object.values(this.legends)) legend.draw(this.palette);
    this.overview?.update();
    this.drawAll();
  }

  private paintAll(): void {
    const range = this.motion.range();
    const end = this.end();
    for (const pane of this.each((one) => one)) {
      pane.draw(range, this.palette, end, this.family, rowsOf(this.selected.now, pane.by));
      pane.want(range, end);
    }
    // More entries may need another line of the legend.
    if (this.legends.thread.occur(this.panes.thread.states)) this.resize();
    const { thread } = this.panes;
    if (this.app.store.get().arrows) this.arrows.want(thread.visible(), range, thread.width);
    this.overview.update();
    for (const spoken of this.spoken) spoken.update(range, end);
    this.paintOver();
  }

  private paintOver(): void {
    const range = this.motion.range();
    const { mark, other, arrows } = this.app.store.get();
    const pointer = this.pointer?.ns ?? null;
    const selected = this.selected.now;
    for (const pane of this.each((one) => one)) {
      const context = pane.beginOver();
      if (pane.by === "thread") {
        const locks = rowsOf(selected, "object");
        const near = this.lockNear();
        for (const lock of locks) light(context, pane, this.palette, range, this.end(), lock, true);
        if (!locks.includes(near))
          light(context, pane, this.palette, range, this.end(), near, false);
      }
      if (arrows && pane.by === "thread") {
        this.arrows.draw(context, pane, range, this.palette, arrowsOf(selected));
      }
      const here = this.pointer?.hit?.data.by === pane.by ? this.pointer.hit.span : null;
      const focused = this.cursor.pane === pane ? this.cursor.span : null;
      drawOver(context, pane, this.palette, {
        range,
        mark,
        other,
        selected,
        pointer,
        hovered: here,
        focused,
      });
    }
    const scale = new Scale(range, this.panes.thread.width);
    this.ruler.draw(scale, this.palette, pointer, mark, `11px ${this.family}`);
  }

  /** Scrolls to the rows of the selection, as soon as they are loaded, and to its time. */
  private showSelected(time: boolean): void {
    if (!this.toShow) return;
    let found = true;
    for (const pane of this.each((one) => one)) {
      const row = rowOf(this.selected.now, pane.by);
      const item = pane.layout.find(row);
      const known = this.rows[pane.by].get(row);
      if (item) pane.reveal(item);
      else if (known) this.unfold(pane, known);
      else if (row) found = false;
    }
    const range = this.selected.range();
    if (time && range && this.toShow.kind !== "row") this.motion.reveal(range);
    if (found) this.toShow = null;
  }

  private unfold(pane: Pane, row: RowData): void {
    this.actions.fold(groupOf(row, this.app.store.get().byName), false);
    const item = pane.layout.find(row.row);
    if (item) pane.reveal(item);
  }

  // ---- what the user does ----

  private hover(pane: Pane, x: number, y: number): void {
    this.hovered = () => this.hover(pane, x, y);
    const hit = pane.hit(x, y, this.motion.range(), this.end());
    this.pointer = { ns: this.nsAt(x), hit };
    if (hit?.span) {
      const what = describeSpan(
        hit.data,
        hit.span,
        pane.options.nameOf(hit.span.other),
        pane.isFree(hit, this.motion.range(), this.end()),
      );
      this.tooltip.show(what, "", x, y);
    } else {
      this.tooltip.hide();
    }
    this.drawOver();
  }

  private leave(): void {
    this.hovered = null;
    this.pointer = null;
    this.tooltip.hide();
    this.drawOver();
  }

  /** Returns the row of the lock under the pointer, in a row or a span; 0 if there is none. */
  private lockNear(): number {
    const hit = this.pointer?.hit;
    if (!hit) return this.pointed;
    if (hit.data.by === "object") return hit.data.row;
    if (hit.data.by !== "thread" || !hit.span || hit.span.flags & FLAGS.merged) return 0;
    return hit.span.state && hit.span.state <= SHARED ? hit.span.other : 0;
  }

  private rangeOf(fromX: number, toX: number): Range {
    const [a, b] = [this.nsAt(fromX), this.nsAt(toX)];
    return { from: Math.min(a, b), to: Math.max(a, b) };
  }
}
