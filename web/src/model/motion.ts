// Moves the view: pans, zooms, flies to a range; smoothly, unless the user wants no motion.
import type { App } from "../base/app";
import { wholeOf } from "../base/extent";
import type { Range } from "../base/state";
import { reducedMotion } from "../base/theme";
import { moved, withAir, within, zoomed } from "./scale";

const FLIGHT_MS = 180;
/** How fast held keys pan, in widths a second, and zoom, in doublings a second. */
const PAN_SPEED = 1.1;
const ZOOM_SPEED = 2.6;
/** What one tap of a key does at least. */
const TAP_S = 0.09;

export class Motion {
  private flight = 0;
  /** Where a flight ends; null while none is under way. */
  private goal: Range | null = null;
  /** What a flight last showed: it ends when something else is shown. */
  private flown: Range | null = null;
  private held = { pan: 0, zoom: 0 };
  private last = 0;
  private running = false;

  constructor(
    private readonly app: App,
    /** The time that a zoom by key leaves where it is; null is the middle. */
    private readonly anchor: () => number | null,
  ) {}

  /** Whether what is seen goes on to be something else. */
  get moving(): boolean {
    return this.running || this.inFlight();
  }

  whole(): Range {
    return wholeOf(this.app.trace());
  }

  range(): Range {
    return this.app.store.get().range ?? withAir(this.whole(), 0.01);
  }

  set(range: Range): void {
    this.app.store.update({ range: within(range, this.whole()) });
  }

  pan(ns: number): void {
    this.land();
    this.set(moved(this.range(), ns));
  }

  zoom(factor: number, about: number): void {
    this.land();
    this.set(zoomed(this.range(), factor, about));
  }

  /** Shows this range, with air at both sides. */
  flyTo(range: Range): void {
    this.fly(within(withAir(range), this.whole()), range);
  }

  /** Shows the whole trace. */
  showAll(): void {
    const all = withAir(this.whole(), 0.01);
    this.fly(all, null);
  }

  /**
   * Moves the view, no more than needed, so that this time is well inside. What counts is where a
   * flight ends: what is asked for on its way must not end it halfway.
   */
  reveal(range: Range): void {
    const view = (this.inFlight() ? this.goal : null) ?? this.range();
    const length = view.to - view.from;
    const edge = length * 0.08;
    if (range.from >= view.from + edge && range.to <= view.to - edge) return;
    if (range.to - range.from > length - 2 * edge) {
      if (range.from > view.to - edge || range.to < view.from + edge) this.flyTo(range);
      return;
    }
    const middle = (range.from + range.to) / 2;
    this.fly(within({ from: middle - length / 2, to: middle + length / 2 }, this.whole()), range);
  }

  /** Starts (1, -1) or ends (0) a steady movement, as a held key makes it. */
  hold(kind: "pan" | "zoom", direction: number): void {
    if (this.held[kind] === direction) return;
    this.land();
    this.held[kind] = direction;
    if (direction !== 0) this.advance(kind, direction * TAP_S);
    if (reducedMotion() || this.running || direction === 0) return;
    this.running = true;
    this.last = performance.now();
    requestAnimationFrame((now) => this.step(now));
  }

  private step(now: number): void {
    const seconds = Math.min(0.1, Math.max(0, now - this.last) / 1000);
    this.last = now;
    this.running = this.held.pan !== 0 || this.held.zoom !== 0;
    if (!this.running) return;
    for (const kind of ["pan", "zoom"] as const) {
      if (this.held[kind]) this.advance(kind, this.held[kind] * seconds);
    }
    requestAnimationFrame((next) => this.step(next));
  }

  private advance(kind: "pan" | "zoom", seconds: number): void {
    const range = this.range();
    if (kind === "pan") {
      this.set(moved(range, (range.to - range.from) * PAN_SPEED * seconds));
      return;
    }
    const about = this.anchor() ?? (range.from + range.to) / 2;
    this.set(zoomed(range, 2 ** (-ZOOM_SPEED * seconds), about));
  }

  /** @param target What is meant to be seen; null shows the whole and follows its growth. */
  private fly(to: Range, target: Range | null): void {
    this.land();
    const from = this.range();
    const arrive = () => {
      this.goal = null;
      this.app.store.update({ range: target ? to : null });
    };
    if (reducedMotion()) {
      arrive();
      return;
    }
    const start = performance.now();
    const id = ++this.flight;
    this.goal = to;
    const show = (range: Range) => {
      this.flown = range;
      this.app.store.update({ range });
    };
    const step = (now: number) => {
      if (id !== this.flight || !this.inFlight()) return;
      const part = Math.min(1, Math.max(0, now - start) / FLIGHT_MS);
      if (part >= 1) {
        arrive();
        return;
      }
      const eased = 1 - (1 - part) ** 3;
      const blend = (a: number, b: number) => a + (b - a) * eased;
      show({ from: blend(from.from, to.from), to: blend(from.to, to.to) });
      requestAnimationFrame(step);
    };
    show({ ...from });
    requestAnimationFrame(step);
  }

  /** A flight is over as soon as another range is shown than its own: one went back, say. */
  private inFlight(): boolean {
    return this.goal !== null && this.app.store.get().range === this.flown;
  }

  /** Ends a flight where it is. */
  private land(): void {
    this.flight++;
    this.goal = null;
  }
}
