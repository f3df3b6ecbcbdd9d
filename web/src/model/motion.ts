// Moves the view: pans, zooms, flies to a range. The motion is smooth unless the user wants no motion.
import type { App } from "../base/app";
import { wholeOf } from "../base/extent";
import type { Range } from "../base/state";
import { reducedMotion } from "../base/theme";
import { moved, withAir, within, zoomed } from "./scale";

const FLIGHT_MS = 180;
/** Speed of held keys: pan in widths per second, zoom in doublings per second. */
const PAN_SPEED = 1.1;
const ZOOM_SPEED = 2.6;
/** The least effect of a tap on a key, as a time of holding the key. */
const TAP_S = 0.09;

export class Motion {
  private flight = 0;
  /** The end of the present flight; null if there is none. */
  private goal: Range | null = null;
  /** The range that a flight showed last. The flight ends if another range is shown. */
  private flown: Range | null = null;
  private held = { pan: 0, zoom: 0 };
  private last = 0;
  private running = false;

  constructor(
    private readonly app: App,
    /** The time that stays in place while a key zooms; null for the middle. */
    private readonly anchor: () => number | null,
  ) {}

  /** Whether the view is still changing. */
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

  /** Shows a range with a margin at both sides. */
  flyTo(range: Range): void {
    this.fly(within(withAir(range), this.whole()), range);
  }

  /** Shows the whole trace. */
  showAll(): void {
    const all = withAir(this.whole(), 0.01);
    this.fly(all, null);
  }

  /**
   * Moves the view by as little as puts a time well inside the view. During a flight, the end of
   * the flight counts: a question on the way must not stop the flight halfway.
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

  /** Starts (1, -1) or ends (0) a steady movement, as a held key does. */
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

  /** @param target The range to be seen; null shows the whole trace and follows its growth. */
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

  /** A flight is over as soon as another range is shown, for example after a step back. */
  private inFlight(): boolean {
    return this.goal !== null && this.app.store.get().range === this.flown;
  }

  /** Ends a flight at its present place. */
  private land(): void {
    this.flight++;
    this.goal = null;
  }
}
