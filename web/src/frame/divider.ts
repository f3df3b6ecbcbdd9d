// A bar between two parts. The user can drag it, or move it with the arrow keys.
import { h } from "../base/dom";

export interface DividerOptions {
  readonly label: string;
  readonly orientation: "horizontal" | "vertical";
  /** Its present place in pixels, for screen readers. */
  readonly at: () => number;
  /** Called with the pixels of a movement. Right and down are positive. */
  readonly moved: (pixels: number) => void;
}

const KEY_STEP = 16;

export function divider({ label, orientation, at, moved }: DividerOptions): HTMLElement {
  const bar = h("div", {
    class: `divider ${orientation}`,
    role: "separator",
    tabindex: 0,
    "aria-label": label,
    "aria-orientation": orientation,
    "aria-valuenow": 0,
    "aria-valuemin": 0,
    "aria-valuemax": 10_000,
  });
  const announce = () => bar.setAttribute("aria-valuenow", String(Math.round(at())));
  bar.addEventListener("focus", announce);
  const move = (pixels: number) => {
    moved(pixels);
    announce();
  };
  let last: number | null = null;
  const position = (event: PointerEvent) =>
    orientation === "horizontal" ? event.clientY : event.clientX;
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    last = position(event);
    event.preventDefault();
  });
  bar.addEventListener("pointermove", (event) => {
    if (last === null) return;
    const now = position(event);
    move(now - last);
    last = now;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    bar.addEventListener(end, () => {
      last = null;
    });
  }
  const [less, more] =
    orientation === "horizontal" ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  bar.addEventListener("keydown", (event) => {
    if (event.key !== less && event.key !== more) return;
    event.preventDefault();
    event.stopPropagation();
    move(event.key === less ? -KEY_STEP : KEY_STEP);
  });
  return bar;
}
