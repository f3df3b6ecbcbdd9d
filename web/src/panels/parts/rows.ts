// Rows of one height in a scrolled place, of which only those in sight are elements.
import { h } from "../../base/dom";

/** Browsers place nothing behind some ten million pixels. */
const TALLEST = 8_000_000;
const MORE = 6;

export class VirtualRows {
  readonly element: HTMLElement;
  private scroller: HTMLElement;
  private readonly space = h("div", { class: "rows-space", role: "presentation" });
  private count = 0;
  private drawn: [number, number] = [-1, -1];

  /**
   * @param height Of a row in pixels.
   * @param fill Makes the elements of the rows from one number up to another.
   * @param head How much of the scrolled place is covered at its top.
   */
  constructor(
    private readonly height: number,
    private readonly fill: (from: number, to: number) => readonly HTMLElement[],
    private readonly head = 0,
  ) {
    this.element = h("div", { class: "rows", role: "rowgroup" }, this.space);
    this.scroller = this.element;
  }

  /** The element that scrolls the rows. */
  within(scroller: HTMLElement): void {
    this.scroller = scroller;
    scroller.addEventListener("scroll", () => this.draw(false), { passive: true });
    new ResizeObserver(() => this.draw(false)).observe(scroller);
  }

  /** Sets how many rows there are, and draws them anew. */
  set(count: number): void {
    this.count = count;
    this.space.style.height = `${Math.min(count * this.height, TALLEST)}px`;
    this.draw(true);
  }

  /** Draws the rows in sight. */
  draw(anew: boolean): void {
    const first = Math.max(0, Math.floor(this.top() / this.height) - MORE);
    const seen = Math.ceil(this.room() / this.height) + 2 * MORE;
    const last = Math.min(this.count, first + seen);
    if (!anew && this.drawn[0] === first && this.drawn[1] === last) return;
    this.drawn = [first, last];
    const rows = this.fill(first, last);
    const shift = this.scroller.scrollTop - this.top();
    rows.forEach((row, at) => {
      row.style.transform = `translateY(${(first + at) * this.height + shift}px)`;
    });
    this.space.replaceChildren(...rows);
  }

  /** Scrolls as little as shows a row. */
  reveal(row: number): void {
    const at = row * this.height;
    const top = this.top();
    const bottom = top + this.room() - this.height;
    if (at < top) this.scrollTo(at);
    else if (at > bottom) this.scrollTo(at - this.room() + this.height);
    this.draw(true);
  }

  /** How many whole rows are in sight. */
  page(): number {
    return Math.max(1, Math.floor(this.room() / this.height));
  }

  private room(): number {
    return Math.max(0, this.scroller.clientHeight - this.head);
  }

  private ratio(): number {
    const room = this.room();
    const whole = Math.max(1, this.count * this.height - room);
    return this.count * this.height > TALLEST ? whole / (TALLEST - room) : 1;
  }

  private top(): number {
    return this.scroller.scrollTop * this.ratio();
  }

  private scrollTo(top: number): void {
    this.scroller.scrollTop = top / this.ratio();
  }
}
