// The layer over the spans: the mark, the selection with its chain, the cursors of pointer and keyboard.

import type { Range } from "../../base/state";
import { rangeOf, type Selected } from "../../details/selected";
import type { Span } from "../../model/find";
import { Scale } from "../../model/scale";
import type { Palette } from "./palette";
import type { Pane } from "./pane";

export interface OverState {
  readonly range: Range;
  readonly mark: Range | null;
  /** The mark that the user kept. */
  readonly other: Range | null;
  readonly selected: Selected | null;
  /** The time under the pointer. */
  readonly pointer: number | null;
  readonly hovered: Span | null;
  /** The span with the keyboard focus. */
  readonly focused: Span | null;
}

export function drawOver(
  context: CanvasRenderingContext2D,
  pane: Pane,
  palette: Palette,
  state: OverState,
): void {
  const scale = new Scale(state.range, pane.width);
  if (state.other) drawMark(context, pane, palette, scale, state.other, "A");
  if (state.mark) drawMark(context, pane, palette, scale, state.mark, state.other ? "B" : "");
  drawSelected(context, pane, palette, scale, state.selected);
  if (state.hovered) outlineSpan(context, pane, scale, state.hovered, palette.get("text"), 1);
  if (state.focused) outlineSpan(context, pane, scale, state.focused, palette.get("focus"), 2);
  if (state.pointer !== null) {
    context.fillStyle = palette.get("text-dim");
    context.globalAlpha = 0.6;
    context.fillRect(Math.round(scale.x(state.pointer)), 0, 1, pane.height);
    context.globalAlpha = 1;
  }
}

function drawMark(
  context: CanvasRenderingContext2D,
  pane: Pane,
  palette: Palette,
  scale: Scale,
  mark: Range,
  name: string,
): void {
  const [x0, x1] = [scale.x(mark.from), scale.x(mark.to)];
  context.fillStyle = palette.get(name === "A" ? "mark-kept" : "mark");
  context.globalAlpha = 0.1;
  context.fillRect(x0, 0, Math.max(1, x1 - x0), pane.height);
  context.globalAlpha = 0.9;
  for (const x of [x0, x1]) context.fillRect(Math.round(x), 0, 1, pane.height);
  context.globalAlpha = 1;
  if (x1 < 0 || x0 > pane.width) return;
  context.textBaseline = "top";
  context.font = "bold 11px sans-serif";
  context.fillText(name, Math.max(0, x0) + 3, 2);
}

/** Outlines the selected wait and each wait of its chain. A selected event is a line. */
function drawSelected(
  context: CanvasRenderingContext2D,
  pane: Pane,
  palette: Palette,
  scale: Scale,
  selected: Selected | null,
): void {
  const colour = palette.get("accent");
  const { by } = pane;
  if (selected?.kind === "wait" && by !== "processor") {
    [...selected.chain, ...selected.later.waits].forEach((wait, at) => {
      const row = wait[by].row;
      const range = { from: wait.t_ns, to: wait.t_ns + wait.dur_ns };
      outline(context, pane, scale, row, 0, range, colour, at === 0 ? 2.5 : 1.5);
    });
  } else if (selected?.kind === "hold" && by !== "processor") {
    const { hold } = selected;
    const row = hold[by].row;
    const lane = selected.lanes[by];
    const range = { from: hold.t_ns, to: hold.t_ns + hold.dur_ns };
    outline(context, pane, scale, row, lane, range, colour, 2.5);
  } else if (selected?.kind === "event") {
    const range = rangeOf(selected);
    if (!range) return;
    context.fillStyle = colour;
    context.fillRect(Math.round(scale.x(range.from)), 0, 2, pane.height);
  }
}

function outlineSpan(
  context: CanvasRenderingContext2D,
  pane: Pane,
  scale: Scale,
  span: Span,
  colour: string,
  width: number,
): void {
  const range = { from: span.t_ns, to: span.t_ns + span.dur_ns };
  outline(context, pane, scale, span.row, span.lane, range, colour, width);
}

function outline(
  context: CanvasRenderingContext2D,
  pane: Pane,
  scale: Scale,
  row: number,
  lane: number,
  range: Range,
  colour: string,
  width: number,
): void {
  const box = pane.box(row, lane);
  if (!box || box.y + box.height < 0 || box.y > pane.height) return;
  // Far beyond the edges, a canvas loses its precision.
  const x0 = Math.max(-10, scale.x(range.from));
  const x1 = Math.min(pane.width + 10, scale.x(range.to));
  if (x1 < x0) return;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x0 - 1, box.y - 1, Math.max(3, x1 - x0 + 2), box.height + 2);
}
