// The timeline: overview, ruler, threads and locks, wired to the view and to each other.
import { RequestFailed } from "../api";
import type { App } from "../app";
import { mountDetails } from "../details/details";
import { type Selected, SelectedThing } from "../details/selected";
import { divider } from "../divider";
import { h } from "../dom";
import type { Shell } from "../shell";
import type { Range, RowKind, Selection } from "../state";
import { duration } from "../units";
import { Arrows } from "./arrows";
import { addCommands } from "./commands";
import { Cursor } from "./cursor";
import { describeSpan } from "./describe";
import type { Span } from "./find";
import type { Item } from "./layout";
import { objectLegend, threadLegend } from "./legend";
import { Motion } from "./motion";
import { drawOver } from "./over";
import { Overview } from "./overview";
import { Palette } from "./palette";
import { type Hit, Pane } from "./pane";
import { followPointer } from "./pointer";
import { Rows } from "./rows";
import { Ruler } from "./ruler";
import { Scale } from "./scale";
import { Spoken } from "./spoken";
import { oncePerFrame } from "./surface";
import { Tiles } from "./tiles";
import { makeArrowSwitch, makeCorner, makeSideSwitch } from "./toolbar";
import { Tooltip } from "./tooltip";

const ROWS_MS = 2000;
const NAMES_WIDTH = { first: 230, least: 90, most: 600 };

export class Timeline {
  readonly motion: Motion;
  private readonly rows: { thread: Rows; object: Rows };
  private readonly panes: { thread: Pane; object: Pane };
  private readonly ruler = new Ruler();
  private readonly overview: Overview;
  private readonly arrows: Arrows;
  private readonly tooltip: Tooltip;
  private readonly selected: SelectedThing;
  private readonly cursor: Cursor;
  private readonly legends = [threadLegend(), objectLegend()] as const;
  private readonly spoken: readonly Spoken[];
  private palette = new Palette(devicePixelRatio || 1);
  private namesWidth = NAMES_WIDTH.first;
  /** What was selected when its rows were not here yet. */
  private toShow: Selected | null = null;
  private pointer: { ns: number; hit: Hit | null } | null = null;
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
      object: new Rows("object", app.source, failed),
    };
    this.panes = { thread: this.makePane("thread"), object: this.makePane("object") };
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
    this.spoken = this.each((pane) => new Spoken(pane));
    this.build();
    this.follow();
    mountDetails(shell.details, app, this.selected, this.rows);
  }

  /** Shows a range with air at both sides. */
  zoomTo(range: Range): void {
    this.motion.flyTo(range);
  }

  // ---- building ----

  private makePane(by: RowKind): Pane {
    const other = by === "thread" ? "object" : "thread";
    const tiles = new Tiles(by, this.app.source, (error) => this.failed(error));
    tiles.changed.listen(() => this.drawAll());
    this.rows[by].changed.listen(() => {
      this.arrange();
      this.showSelected(false);
      this.drawAll();
    });
    return new Pane({
      by,
      title: by === "thread" ? "Threads" : "Locks",
      rows: this.rows[by],
      tiles,
      legend: this.legends[by === "thread" ? 0 : 1].element,
      groupName: (process) => this.processName(process),
      nameOf: (row) => this.rows[other].get(row)?.label ?? "",
      picked: (item) => this.pick(by, item),
      scrolled: () => this.drawAll(),
    });
  }

  private each<T>(make: (pane: Pane) => T): T[] {
    return [make(this.panes.thread), make(this.panes.object)];
  }

  private build(): void {
    const place = this.shell.timeline;
    const top = h("div", { class: "timeline-top" }, makeCorner(this.app), this.ruler.element);
    const { thread, object } = this.panes;
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
    this.shell.tools.prepend(makeArrowSwitch(this.app), makeSideSwitch(this.app));
    place.append(top, thread.element, split, object.element, names);
    for (const spoken of this.spoken) place.append(spoken.element);
    for (const pane of [thread, object]) this.followPane(pane);
    this.followRuler();
    new ResizeObserver(() => this.resize()).observe(place);
    new ResizeObserver(() => this.resize()).observe(this.shell.overview);
    addCommands(this.app, this.motion, {
      fit: () => this.fit(),
      mark: () => this.mark(),
      escape: () => this.escape(),
      moveRow: (step) => this.cursor.moveRow(step),
      moveSpan: (step) => this.cursor.moveSpan(step),
      moveLane: (step) => this.cursor.moveLane(step),
      activate: () => this.activate(),
      toggleGroup: () => this.toggleGroup(),
      switchPane: () => {
        this.cursor.enter(this.cursor.pane === thread ? object : thread);
      },
    });
  }

  private follow(): void {
    const { app } = this;
    app.store.watch(["sort", "rows"], () => void this.load());
    app.store.watch(["folded"], () => {
      this.arrange();
      this.drawAll();
    });
    app.store.watch(["split"], (view) => {
      this.panes.thread.element.style.flexGrow = String(view.split);
      this.panes.object.element.style.flexGrow = String(1 - view.split);
      this.resize();
    });
    app.store.watch(["range"], () => this.drawAll());
    app.store.watch(["mark", "arrows"], () => this.drawAll());
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

  /** A trace that grows, or is still being read, is drawn anew; a view at its end goes with it. */
  private followTrace(): void {
    let drawnFrom = this.extent();
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
      this.each((pane) => pane.options.tiles.outdate());
      this.arrows.outdate();
      this.overview.refresh(true);
      this.drawAll();
      // All rows are many: while they change all the time, they are asked for now and then.
      const rest = this.app.trace().detail.ready ? 0 : ROWS_MS;
      if (rest && loading !== undefined) return;
      clearTimeout(loading);
      loading = window.setTimeout(() => {
        loading = undefined;
        void this.load();
      }, rest);
    });
  }

  /** What says whether what was drawn is out of date; analysis that comes later changes none of it. */
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
      click: (x, y) => this.click(pane, x, y),
      open: (x, y) => this.open(pane, x, y),
      hover: (x, y) => this.hover(pane, x, y),
      leave: () => this.leave(),
      mark: (from, to) => this.markPixels(from, to),
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
        hover: (x) => {
          this.pointer = { ns: this.nsAt(x), hit: null };
          this.drawOver();
        },
        leave: () => this.leave(),
        mark: (from, to) => this.markPixels(from, to),
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

  private processName(process: number): string {
    const found = this.app.trace().processes.find((one) => one.process === process);
    return found ? `${found.name} (${found.pid})` : `process ${process}`;
  }

  private async load(): Promise<void> {
    const { sort, rows } = this.app.store.get();
    await Promise.all([this.rows.thread.load(sort, rows), this.rows.object.load(sort, rows)]);
  }

  private arrange(): void {
    const { folded, rows } = this.app.store.get();
    const ready = this.app.trace().detail.ready;
    const empty = rows
      ? "No row matches the filter"
      : ready
        ? "Nothing was used"
        : "Reading the trace…";
    this.each((pane) => pane.arrange(folded, empty));
  }

  private failed(error: unknown): void {
    const line = error instanceof Error ? error.message : String(error);
    this.app.notify(
      error instanceof RequestFailed ? line : `The viewer's server: ${line}`,
      "error",
    );
  }

  // ---- drawing ----

  private resize(): void {
    this.shell.timeline.style.setProperty("--names-width", `${this.namesWidth}px`);
    this.each((pane) => pane.resize(this.namesWidth));
    this.ruler.resize(this.panes.thread.width);
    this.overview.refresh(false);
    this.drawAll();
  }

  private recolour(): void {
    this.palette = new Palette(Math.min(3, devicePixelRatio || 1));
    this.family = getComputedStyle(document.body).fontFamily;
    for (const legend of this.legends) legend.draw(this.palette);
    this.overview?.update();
    this.drawAll();
  }

  private paintAll(): void {
    const range = this.motion.range();
    const end = this.end();
    for (const pane of this.each((one) => one)) {
      pane.draw(range, this.palette, end, this.family, this.selectedRow(pane.by));
      pane.want(range, end);
    }
    const { thread } = this.panes;
    if (this.app.store.get().arrows) this.arrows.want(thread.visible(), range, thread.width);
    this.overview.update();
    for (const spoken of this.spoken) spoken.update(range, end);
    this.paintOver();
  }

  private paintOver(): void {
    const range = this.motion.range();
    const { mark, arrows } = this.app.store.get();
    const pointer = this.pointer?.ns ?? null;
    const selected = this.selected.now;
    for (const pane of this.each((one) => one)) {
      const context = pane.beginOver();
      if (arrows && pane.by === "thread") {
        this.arrows.draw(context, pane, range, this.palette, waitsOf(selected));
      }
      const here = this.pointer?.hit?.data.by === pane.by ? this.pointer.hit.span : null;
      const focused = this.cursor.pane === pane ? this.cursor.span : null;
      drawOver(context, pane, this.palette, {
        range,
        mark,
        selected,
        pointer,
        hovered: here,
        focused,
      });
    }
    const scale = new Scale(range, this.panes.thread.width);
    this.ruler.draw(scale, this.palette, pointer, mark, `11px ${this.family}`);
  }

  /** Returns the row of a pane that the selection is about; 0 where there is none. */
  private selectedRow(by: RowKind): number {
    const now = this.selected.now;
    if (now?.kind === "row") return now.row.by === by ? now.row.row : 0;
    if (now?.kind === "hold") return (by === "thread" ? now.hold.thread : now.hold.object).row;
    if (now?.kind === "event") return by === "thread" ? now.event.thread_row : now.event.object_row;
    const wait = now?.kind === "wait" ? now.chain[0] : undefined;
    return wait ? (by === "thread" ? wait.thread : wait.object).row : 0;
  }

  /** Scrolls to the rows of what was selected, as soon as they are there, and to its time. */
  private showSelected(time: boolean): void {
    if (!this.toShow) return;
    let found = true;
    for (const pane of this.each((one) => one)) {
      const row = this.selectedRow(pane.by);
      const item = pane.layout.find(row);
      const known = this.rows[pane.by].get(row);
      if (item) pane.reveal(item);
      else if (known) this.fold(known.process, false);
      else if (row) found = false;
    }
    const range = this.selected.range();
    if (time && range && this.toShow.kind !== "row") this.motion.reveal(range);
    if (found) this.toShow = null;
  }

  // ---- what the user does ----

  private hover(pane: Pane, x: number, y: number): void {
    const hit = pane.hit(x, y, this.motion.range(), this.end());
    this.pointer = { ns: this.nsAt(x), hit };
    if (hit?.span) {
      const what = describeSpan(hit.data, hit.span, pane.options.nameOf(hit.span.other));
      this.tooltip.show(what, "", x, y);
    } else {
      this.tooltip.hide();
    }
    this.drawOver();
  }

  private leave(): void {
    this.pointer = null;
    this.tooltip.hide();
    this.drawOver();
  }

  private click(pane: Pane, x: number, y: number): void {
    this.cursor.pane = pane;
    pane.names.element.focus({ preventScroll: true });
    const hit = pane.hit(x, y, this.motion.range(), this.end());
    if (!hit) {
      const item = pane.layout.at(y - pane.canvas.getBoundingClientRect().top + pane.top);
      if (item?.kind === "group") this.pick(pane.by, item);
      else this.app.store.update({ selection: null });
      return;
    }
    pane.cursor = pane.layout.find(hit.data.row);
    this.cursor.span = hit.span;
    const row: Selection = { kind: "row", by: pane.by, row: hit.data.row };
    this.app.store.update({ selection: hit.span ? selectionOf(pane.by, hit.span) : row });
  }

  /** A double click shows what is there as wide as it fits. */
  private open(pane: Pane, x: number, y: number): void {
    const span = pane.hit(x, y, this.motion.range(), this.end())?.span;
    if (span) this.zoomTo({ from: span.t_ns, to: span.t_ns + span.dur_ns });
  }

  private pick(by: RowKind, item: Item): void {
    const pane = this.panes[by];
    pane.cursor = item;
    this.cursor.pane = pane;
    this.cursor.span = null;
    if (item.kind === "group") this.fold(item.process, !item.folded);
    else this.app.store.update({ selection: { kind: "row", by, row: item.data.row } });
  }

  private activate(): boolean {
    const item = this.cursor.pane.cursor;
    if (!item) return false;
    const { span } = this.cursor;
    if (span && item.kind === "row") {
      this.app.store.update({ selection: selectionOf(this.cursor.pane.by, span) });
    } else this.pick(this.cursor.pane.by, item);
    return true;
  }

  private toggleGroup(): void {
    const item = this.cursor.pane.cursor;
    if (item?.kind === "group") this.fold(item.process, !item.folded);
    else if (item) this.fold(item.data.process, true);
  }

  private fold(process: number, fold: boolean): void {
    const { folded } = this.app.store.get();
    const others = folded.filter((one) => one !== process);
    this.app.store.update({ folded: fold ? [...others, process] : others });
  }

  /** Shows the selection; when that is what is seen already, the whole trace. */
  private fit(): void {
    const target = this.selected.range();
    const view = this.motion.range();
    const length = target ? target.to - target.from : 0;
    const shown = target && target.from >= view.from && target.to <= view.to;
    const wide = length > (view.to - view.from) * 0.6;
    if (!target || (shown && wide)) this.motion.showAll();
    else this.motion.flyTo(target);
  }

  private mark(): void {
    const target = this.selected.range();
    const whole = this.motion.whole();
    const view = this.motion.range();
    const seen = { from: Math.max(whole.from, view.from), to: Math.min(whole.to, view.to) };
    const mark = target && target.to > target.from ? target : seen;
    const before = this.app.store.get().mark;
    if (before && before.from === mark.from && before.to === mark.to) {
      this.app.store.update({ mark: null });
      return;
    }
    this.app.store.update({ mark: { from: Math.round(mark.from), to: Math.round(mark.to) } });
    this.app.announce(`Marked ${duration(mark.to - mark.from)}`);
  }

  private markPixels(fromX: number, toX: number): void {
    const [from, to] = [this.nsAt(fromX), this.nsAt(toX)].sort((a, b) => a - b) as [number, number];
    const first = Math.max(0, Math.round(from));
    this.app.store.update({ mark: { from: first, to: Math.max(first + 1, Math.round(to)) } });
  }

  private escape(): boolean {
    const { selection, mark } = this.app.store.get();
    if (this.cursor.span) this.cursor.span = null;
    if (selection) this.app.store.update({ selection: null });
    else if (mark) this.app.store.update({ mark: null });
    else return false;
    this.drawOver();
    return true;
  }
}

function selectionOf(by: RowKind, span: Span): Selection {
  if (span.wait_id) return { kind: "wait", wait: span.wait_id };
  const at = Math.round(span.t_ns + span.dur_ns / 2);
  return { kind: "span", by, row: span.row, lane: span.lane, at };
}

function waitsOf(selected: Selected | null): ReadonlySet<number> {
  if (selected?.kind !== "wait") return new Set();
  return new Set([...selected.chain, ...selected.later.waits].map((wait) => wait.wait_id));
}
