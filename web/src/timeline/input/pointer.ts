// Mouse, pen and fingers on a drawing: drag, click, double click, wheel, pinch, and marking with Shift.

export interface PointerActions {
  /** The movement of a drag, in pixels. */
  readonly drag: (dx: number, dy: number) => void;
  readonly zoom: (factor: number, clientX: number) => void;
  readonly pan: (pixels: number) => void;
  /** Pixels of rows to scroll by. Returns false if there is nothing to scroll. */
  readonly scroll: (pixels: number) => boolean;
  readonly click: (clientX: number, clientY: number) => void;
  readonly open: (clientX: number, clientY: number) => void;
  readonly menu: (clientX: number, clientY: number) => void;
  readonly hover: (clientX: number, clientY: number) => void;
  readonly leave: () => void;
  /** The user dragged over a range, from a place to another place. `done` when the button was released. */
  readonly mark: (fromX: number, toX: number, done: boolean) => void;
}

const CLICK_PIXELS = 4;
const WHEEL_ZOOM = 1 / 400;

/** @param marks Whether a plain drag marks, as on the ruler. Otherwise only a drag with Shift marks. */
export function followPointer(element: HTMLElement, actions: PointerActions, marks = false): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let start: { x: number; y: number; mark: boolean } | null = null;
  let wandered = false;

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 && event.button !== 1) return;
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    start = { x: event.clientX, y: event.clientY, mark: event.shiftKey !== marks };
    wandered = false;
    actions.leave();
    if (event.button === 1) event.preventDefault();
  });

  element.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      actions.hover(event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - before.x;
    const dy = event.clientY - before.y;
    if (start && Math.hypot(event.clientX - start.x, event.clientY - start.y) > CLICK_PIXELS) {
      wandered = true;
    }
    if (!wandered) return;
    if (pointers.size === 2) pinch(event, before, dx);
    else if (start?.mark) actions.mark(start.x, event.clientX, false);
    else actions.drag(dx, dy);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });

  /** Two fingers: the part between them stays between them. */
  const pinch = (event: PointerEvent, before: { x: number; y: number }, dx: number) => {
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) return;
    const apart = Math.hypot(before.x - other.x, before.y - other.y);
    const now = Math.hypot(event.clientX - other.x, event.clientY - other.y);
    actions.drag(dx / 2, 0);
    if (now > 10 && apart > 10) actions.zoom(apart / now, (event.clientX + other.x) / 2);
  };

  const end = (event: PointerEvent, clicked: boolean) => {
    if (!pointers.delete(event.pointerId)) return;
    if (start?.mark && wandered) actions.mark(start.x, event.clientX, true);
    else if (clicked && !wandered) actions.click(event.clientX, event.clientY);
    if (!pointers.size) start = null;
  };
  element.addEventListener("pointerup", (event) => end(event, true));
  element.addEventListener("pointercancel", (event) => end(event, false));
  element.addEventListener("pointerleave", () => actions.leave());
  element.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    actions.menu(event.clientX, event.clientY);
  });
  element.addEventListener("dblclick", (event) => actions.open(event.clientX, event.clientY));

  element.addEventListener(
    "wheel",
    (event) => {
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      event.preventDefault();
      // A pinch on a touch pad arrives as a wheel event with Ctrl.
      if (event.ctrlKey || event.metaKey)
        actions.zoom(Math.exp(dy * WHEEL_ZOOM * 2.5), event.clientX);
      else if (event.shiftKey) actions.pan(dy || dx);
      else if (Math.abs(dx) > Math.abs(dy)) actions.pan(dx);
      else if (!actions.scroll(dy)) actions.zoom(Math.exp(dy * WHEEL_ZOOM), event.clientX);
    },
    { passive: false },
  );
}
