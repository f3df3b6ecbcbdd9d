// Rows of equal height in a scrolled place. Only visible rows are elements.
import { h } from "../../base/dom";

/** Browsers place nothing beyond some ten million pixels. */
const TALLEST = 8_000_000;
const MORE = 6;

export class VirtualRows {
  readonly element: HTMLElement;
  private scroller: HTMLElement;
  private readonly space = h("div", { class: "rows-space", role: "presentation" });
  private count = 0;
  private drawn: [number, number] = [-1, -1];

  /**
   * @param height The height of a row in pixels.
   * @param fill Makes the elements of the rows from a number up to another number.
   * @param head The height that is covered at the top of the scrolled place.
   */
  constructor(
    private readonly height: number,
    private readonly fill: (from: number, to: number) => readonly HTMLElement[],
    private readonly head = 0,
  ) {
    this.element = h("div", { class: "rows", role: "rowgroup" }, this.space);
    this.scroller = this.element;
  }

  /** Sets the element that scrolls the rows. */
  within(scroller: HTMLElement): void {
    this.scroller = scroller;
    scroller.addEventListener("scroll", () => this.draw(false), { passive: true });
    new ResizeObserver(() => this.draw(false)).observe(scroller);
  }

  /** Sets the number of rows, and draws them anew. */
  set(count: number): void {
    this.count = count;
    this.space.style.height = `${Math.min(count * this.height, TALLEST)}px`;
    this.draw(true);
  }

  /** Draws the visible rows. */
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

  /** Scrolls as little as needed to show a row. */
  reveal(row: number): void {
    const at = row * this.height;
    const top = this.top();
    const bottom = top + this.room() - this.height;
    if (at < top) this.scrollTo(at);
    else if (at > bottom) this.scrollTo(at - this.room() + this.height);
    this.draw(true);
  }

  /** The number of rows that are fully visible. */
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
