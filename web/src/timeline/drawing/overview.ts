// The overview: the whole trace as a strip. The visible part is a window that the user can drag.
import { isAbort, NotYet, type Source } from "../../base/api";
import type { Columns } from "../../base/columns";
import { h } from "../../base/dom";
import type { OverviewColumns } from "../../base/protocol";
import type { Range } from "../../base/state";
import { duration, instant } from "../../base/units";
import type { Motion } from "../../model/motion";
import { Scale } from "../../model/scale";
import type { Palette } from "./palette";
import { oncePerFrame, Surface } from "./surface";

const EDGE_PIXELS = 7;
const LEAST_WINDOW = 3;

export class Overview {
  private readonly surface: Surface;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private table: Columns<OverviewColumns> | null = null;
  /** The bars. They change less often than the window over them. */
  private readonly picture = new Surface(h("canvas"));
  private pictured: readonly unknown[] = [];
  private asked = 0;
  private asking = 0;
  private readonly draw = oncePerFrame(() => this.paint());

  constructor(
    private readonly element: HTMLElement,
    private readonly source: Source,
    private readonly motion: Motion,
    private readonly palette: () => Palette,
    private readonly mark: () => Range | null,
    private readonly failed: (error: unknown) => void,
  ) {
    element.append(this.canvas);
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", "Overview: the visible part of the trace");
    element.setAttribute("aria-orientation", "horizontal");
    this.surface = new Surface(this.canvas);
    this.followPointer();
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Takes the size of the box. Asks again if the size changed or the trace grew. */
  refresh(grown: boolean): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    this.surface.resize(width, height);
    if (width > 0 && (grown || Math.abs(width - this.asked) > 40)) void this.ask(width);
    this.draw();
  }

  /** Draws the overview again, as the view moved or the colours changed. */
  update(): void {
    this.draw();
  }

  private async ask(width: number): Promise<void> {
    this.asked = width;
    const mine = ++this.asking;
    try {
      const table = await this.source.table("overview", { width: Math.round(width) });
      if (mine !== this.asking) return;
      this.table = table;
      this.draw();
    } catch (error) {
      if (!isAbort(error) && !(error instanceof NotYet)) this.failed(error);
    }
  }

  /** The range of the bars; null before they are there. */
  private counted(): Range | null {
    const found = this.table?.metadata;
    if (!found) return null;
    return { from: Number(found.get("from_ns") ?? 0), to: Number(found.get("to_ns") ?? 0) };
  }

  private scale(): Scale {
    const whole = this.motion.whole();
    const bars = this.counted() ?? whole;
    const from = Math.min(whole.from, bars.from);
    const to = Math.max(whole.to, bars.to, from + 1);
    return new Scale({ from, to }, this.surface.width);
  }

  private window(): { x0: number; x1: number } {
    const scale = this.scale();
    const view = this.motion.range();
    const x0 = Math.max(0, scale.x(view.from));
    const x1 = Math.min(this.surface.width, scale.x(view.to));
    const middle = (x0 + x1) / 2;
    if (x1 - x0 >= LEAST_WINDOW) return { x0, x1 };
    return { x0: middle - LEAST_WINDOW / 2, x1: middle + LEAST_WINDOW / 2 };
  }

  private paint(): void {
    const context = this.surface.begin();
    const { width, height } = this.surface;
    const palette = this.palette();
    this.drawBars(palette);
    if (width > 0 && height > 0) context.drawImage(this.picture.canvas, 0, 0, width, height);
    const { x0, x1 } = this.window();
    context.fillStyle = palette.get("bg");
    context.globalAlpha = 0.62;
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, width - x1, height);
    context.globalAlpha = 1;
    const mark = this.mark();
    if (mark) {
      const scale = this.scale();
      context.fillStyle = palette.get("mark");
      const wide = Math.max(2, scale.x(mark.to) - scale.x(mark.from));
      context.fillRect(scale.x(mark.from), height - 3, wide, 3);
    }
    context.strokeStyle = palette.get("accent");
    context.lineWidth = 1;
    context.strokeRect(x0 + 0.5, 0.5, Math.max(1, x1 - x0 - 1), height - 1);
    context.fillStyle = palette.get("accent");
    for (const x of [x0 - 1, x1 - 2]) context.fillRect(x, height / 2 - 7, 3, 14);
    this.announce();
  }

  private drawBars(palette: Palette): void {
    const { width, height } = this.surface;
    const now = [this.table, palette, width, height];
    if (now.every((part, at) => part === this.pictured[at])) return;
    this.pictured = now;
    this.picture.resize(width, height);
    const context = this.picture.begin();
    if (this.table?.length) this.bars(context, this.table, palette);
  }

  /**
   * Draws each bin: running threads at the bottom, contended threads over them, idle threads on
   * top; and marks for problems.
   */
  private bars(
    context: CanvasRenderingContext2D,
    table: Columns<OverviewColumns>,
    palette: Palette,
  ): void {
    const { height } = this.surface;
    const scale = this.scale();
    const counted = this.counted() ?? scale.range;
    const bin = (counted.to - counted.from) / table.length;
    const step = bin / scale.nsPerPixel;
    const left = scale.x(counted.from);
    // The bars have whole pixels. Bars with a common pixel would look like stripes in the data.
    const { ratio } = this.surface;
    const snap = (pixels: number) => Math.round(pixels * ratio) / ratio;
    let most = 1;
    for (let at = 0; at < table.length; at++) most = Math.max(most, table.threads[at] ?? 0);
    const contended = palette.state(1);
    const room = height - 9;
    for (let at = 0; at < table.length; at++) {
      const x = snap(left + at * step);
      const threads = table.threads[at] ?? 0;
      const waits = (table.contended_ns[at] ?? 0) / bin;
      const idle = ((table.idle_ns[at] ?? 0) + (table.other_ns[at] ?? 0)) / bin;
      const running = Math.max(0, threads - waits - idle);
      const wide = Math.max(snap(left + (at + 1) * step) - x, 1 / ratio);
      let all = 0;
      const bar = (amount: number, fill: string) => {
        const bottom = snap((all / most) * room);
        all += amount;
        const top = snap((all / most) * room);
        if (top <= bottom) return;
        context.fillStyle = fill;
        context.fillRect(x, height - 1 - top, wide, top - bottom);
      };
      bar(running, palette.state(0).fill);
      bar(waits, contended.fill);
      bar(idle, palette.state(2).fill);
      if (table.findings[at]) {
        context.fillStyle = palette.get("finding");
        triangle(context, x + step / 2);
      }
      if (table.lost[at]) {
        context.fillStyle = palette.get("loss");
        context.fillRect(x, 0, Math.max(2, wide), 3);
      }
    }
  }

  private announce(): void {
    const scale = this.scale();
    const view = this.motion.range();
    const length = scale.range.to - scale.range.from;
    const share = (ns: number) => String(Math.round((100 * (ns - scale.range.from)) / length));
    this.element.setAttribute("aria-valuemin", "0");
    this.element.setAttribute("aria-valuemax", "100");
    const middle = Math.min(100, Math.max(0, Number(share((view.from + view.to) / 2))));
    this.element.setAttribute("aria-valuenow", String(middle));
    const step = (view.to - view.from) / 100;
    const from = instant(Math.max(view.from, 0), step);
    this.element.setAttribute(
      "aria-valuetext",
      `from ${from}, ${duration(view.to - view.from)} long`,
    );
  }

  private followPointer(): void {
    let drag: { kind: "move" | "from" | "to" | "new"; ns: number; range: Range } | null = null;
    const nsAt = (event: PointerEvent) => {
      return this.scale().ns(event.clientX - this.element.getBoundingClientRect().left);
    };
    this.element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.element.setPointerCapture(event.pointerId);
      drag = { kind: this.partAt(event), ns: nsAt(event), range: this.motion.range() };
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!drag) {
        const part = this.partAt(event);
        const edge = part === "from" || part === "to";
        this.element.style.cursor = edge ? "ew-resize" : part === "move" ? "grab" : "crosshair";
        return;
      }
      const ns = nsAt(event);
      const { from, to } = drag.range;
      const by = ns - drag.ns;
      const next = {
        move: { from: from + by, to: to + by },
        from: ordered(from + by, to),
        to: ordered(from, to + by),
        new: ordered(drag.ns, ns),
      }[drag.kind];
      if (next.to > next.from) this.motion.set(next);
    });
    this.element.addEventListener("pointerup", (event) => {
      if (
        drag?.kind === "new" &&
        Math.abs(this.scale().x(nsAt(event)) - this.scale().x(drag.ns)) < 3
      ) {
        const half = (drag.range.to - drag.range.from) / 2;
        this.motion.set({ from: drag.ns - half, to: drag.ns + half });
      }
      drag = null;
    });
    this.element.addEventListener("pointercancel", () => {
      drag = null;
    });
    this.element.addEventListener("dblclick", () => this.motion.showAll());
    this.element.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const view = this.motion.range();
        this.motion.zoom(Math.exp(event.deltaY / 400), (view.from + view.to) / 2);
      },
      { passive: false },
    );
  }

  private partAt(event: PointerEvent): "move" | "from" | "to" | "new" {
    const x = event.clientX - this.element.getBoundingClientRect().left;
    const { x0, x1 } = this.window();
    const whole = x0 <= 1 && x1 >= this.surface.width - 1;
    // In a narrow window, the edges must leave room to drag the window.
    const edge = Math.min(EDGE_PIXELS, Math.max(2, (x1 - x0) / 4));
    if (Math.abs(x - x0) <= edge) return "from";
    if (Math.abs(x - x1) <= edge) return "to";
    return x > x0 && x < x1 && !whole ? "move" : "new";
  }

  private key(event: KeyboardEvent): void {
    const view = this.motion.range();
    const step = (view.to - view.from) / 4;
    const about = (view.from + view.to) / 2;
    switch (event.key) {
      case "ArrowLeft":
        this.motion.pan(-step);
        break;
      case "ArrowRight":
        this.motion.pan(step);
        break;
      case "ArrowUp":
        this.motion.zoom(0.7, about);
        break;
      case "ArrowDown":
        this.motion.zoom(1 / 0.7, about);
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

function ordered(a: number, b: number): Range {
  return { from: Math.min(a, b), to: Math.max(a, b) };
}

function triangle(context: CanvasRenderingContext2D, x: number): void {
  context.beginPath();
  context.moveTo(x - 4, 0);
  context.lineTo(x + 4, 0);
  context.lineTo(x, 7);
  context.fill();
}
