// The timeline as a picture: its canvases, and the texts beside them at their places in the window.

/** The texts of the timeline outside of the canvases. */
const TEXTS = ".pane-head h2, .name .label, .name .figure, .name .badge";

/** Height of the caption and of each line of the legend. */
const LINE = 22;
const AIR = 8;

/** Draws some places of the page on a new canvas, in device pixels, with a caption and the legend. */
export function picture(
  places: readonly HTMLElement[],
  ratio: number,
  caption: string,
): HTMLCanvasElement {
  const boxes = places.map((place) => place.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top)) - LINE;
  const right = Math.max(...boxes.map((box) => box.right));
  const bottom = Math.max(...boxes.map((box) => box.bottom));
  const legend = legendLines(places, right - left);
  const made = document.createElement("canvas");
  made.width = Math.ceil((right - left) * ratio);
  made.height = Math.ceil((bottom - top + LINE * legend.length) * ratio);
  const context = made.getContext("2d");
  if (!context) return made;
  const body = getComputedStyle(document.body);
  context.fillStyle = body.backgroundColor;
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
  context.font = `${body.fontSize} ${body.fontFamily}`;
  context.fillStyle = body.color;
  context.textBaseline = "middle";
  context.fillText(caption, left + AIR, top + LINE / 2);
  for (const [line, entries] of legend.entries()) {
    const y = bottom + LINE * (line + 0.5);
    for (const { canvas, text, x } of entries) {
      context.drawImage(canvas, left + x, y - 5.5, 18, 11);
      context.fillText(text, left + x + 22, y);
    }
  }
  return made;
}

interface LegendEntry {
  readonly canvas: HTMLCanvasElement;
  readonly text: string;
  readonly x: number;
}

/** Returns the entries of the legends, in lines of this width. */
function legendLines(places: readonly HTMLElement[], width: number): LegendEntry[][] {
  const lines: LegendEntry[][] = [];
  let x = AIR;
  const measure = document.createElement("canvas").getContext("2d");
  const body = getComputedStyle(document.body);
  if (measure) measure.font = `${body.fontSize} ${body.fontFamily}`;
  for (const list of places.flatMap((place) => [...place.querySelectorAll(".legend")])) {
    let line: LegendEntry[] = [];
    x = AIR;
    for (const entry of list.querySelectorAll("li")) {
      const canvas = entry.querySelector("canvas");
      const text = entry.textContent ?? "";
      const wide = 22 + (measure?.measureText(text).width ?? 0) + 2 * AIR;
      if (!canvas?.width || !entry.checkVisibility()) continue;
      if (x + wide > width && line.length) {
        lines.push(line);
        line = [];
        x = AIR;
      }
      line.push({ canvas, text, x });
      x += wide;
    }
    if (line.length) lines.push(line);
  }
  return lines;
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

/** Returns the text of an element without the text of hidden parts. */
function shownText(node: Node): string {
  if (node instanceof HTMLElement && node.hidden) return "";
  if (!node.childNodes.length) return node.textContent ?? "";
  return [...node.childNodes].map(shownText).join("");
}
