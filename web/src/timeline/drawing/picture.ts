// The timeline as one picture: its canvases, and the texts that stand beside them, where they are in the window.

/** What is text in the timeline, besides that of the canvases. */
const TEXTS = ".pane-head h2, .name .label, .name .figure, .name .badge";

/** Draws what some places show on a canvas of its own, in pixels of the device. */
export function picture(places: readonly HTMLElement[], ratio: number): HTMLCanvasElement {
  const boxes = places.map((place) => place.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  const made = document.createElement("canvas");
  made.width = Math.ceil((Math.max(...boxes.map((box) => box.right)) - left) * ratio);
  made.height = Math.ceil((Math.max(...boxes.map((box) => box.bottom)) - top) * ratio);
  const context = made.getContext("2d");
  if (!context) return made;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, made.width, made.height);
  context.setTransform(ratio, 0, 0, ratio, -left * ratio, -top * ratio);
  for (const place of places) {
    for (const canvas of place.querySelectorAll("canvas")) {
      const box = canvas.getBoundingClientRect();
      if (!box.width || !box.height || canvas.closest("ul")) continue;
      const style = getComputedStyle(canvas);
      context.globalAlpha = Number(style.opacity);
      context.drawImage(canvas, box.left, box.top, box.width, box.height);
    }
    context.globalAlpha = 1;
    for (const text of place.querySelectorAll<HTMLElement>(TEXTS)) write(context, text);
  }
  return made;
}

function write(context: CanvasRenderingContext2D, element: HTMLElement): void {
  const box = element.getBoundingClientRect();
  const shown = element.closest(".pane-scroll")?.getBoundingClientRect() ?? box;
  const top = Math.max(box.top, shown.top);
  const bottom = Math.min(box.bottom, shown.bottom);
  if (!box.width || bottom <= top) return;
  const style = getComputedStyle(element);
  context.save();
  context.beginPath();
  context.rect(box.left, top, box.width, bottom - top);
  context.clip();
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  context.fillText(shownText(element), box.left, (box.top + box.bottom) / 2);
  context.restore();
}

/** Returns the text of an element without that of hidden parts. */
function shownText(node: Node): string {
  if (node instanceof HTMLElement && node.hidden) return "";
  if (!node.childNodes.length) return node.textContent ?? "";
  return [...node.childNodes].map(shownText).join("");
}
