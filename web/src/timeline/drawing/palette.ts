// Colours and patterns of the canvases, from the tokens of the theme. A state has a colour and a pattern.
// Owners have different colours.
import { STATES } from "../../base/protocol";
import { token } from "../../base/theme";

export interface Paint {
  /** The plain colour, for parts that are too small for a pattern. */
  readonly fill: string;
  readonly ink: string;
  readonly pattern: CanvasPattern | string;
}

type Stroke = (context: CanvasRenderingContext2D, size: number) => void;

/** The pattern of each state. It distinguishes the states without colours. */
const STROKES: Readonly<Record<string, Stroke>> = {
  contended: (context, size) => {
    for (const shift of [-size, 0, size]) line(context, shift, size, shift + size, 0);
  },
  idle: (context) => {
    context.fillRect(1, 1, 1.3, 1.3);
    context.fillRect(5, 5, 1.3, 1.3);
  },
  join: (context, size) => line(context, 0, 2.5, size, 2.5),
  timeout: (context, size) => {
    line(context, 0, size, size, 0);
    line(context, 0, 0, size, size);
  },
  cancelled: (context, size) => line(context, 3.5, 0, 3.5, size),
  unknown: (context, size) => line(context, 0, 0, size, size),
  gil: (context) => {
    context.fillRect(1, 2, 4, 1.3);
    context.fillRect(3, 5.5, 4, 1.3);
  },
  ready: (context, size) => {
    line(context, 1.5, 0, 1.5, size / 2);
    line(context, 5.5, size / 2, 5.5, size);
  },
  asleep: (context, size) => line(context, 2, size / 2, size - 2, size / 2),
  preempted: (context, size) => {
    line(context, 0, size / 2, size / 2, 0);
    line(context, size / 2, size, size, size / 2);
  },
  waking: (context, size) => line(context, 0, 0, size, size),
  shared: (context, size) => {
    line(context, 1.5, 0, 1.5, size);
    line(context, 5.5, 0, 5.5, size);
  },
};
const TOKENS: Readonly<Record<string, string>> = {
  "not waiting": "not-waiting",
  held: "hold",
  shared: "hold-shared",
};
const SIZE = 8;
/** Number of colours for threads that own something. */
export const OWNERS = 8;
/** The part of a wait in which the object is free. This number comes after the states, and no span has it. */
export const WAKING = STATES.length;

export class Palette {
  readonly states: readonly Paint[];
  readonly owners: readonly Paint[];
  readonly sharers: readonly Paint[];
  /** The pattern for times that are not loaded yet. */
  readonly unknown: CanvasPattern | string;
  private readonly colours = new Map<string, string>();

  /** @param ratio Device pixels per CSS pixel. It keeps patterns sharp. */
  constructor(readonly ratio: number) {
    this.states = [...STATES, "waking"].map((state) => {
      const name = `state-${TOKENS[state] ?? state}`;
      return this.paint(token(name), token(`${name}-ink`), STROKES[state]);
    });
    const owners = Array.from({ length: OWNERS }, (_, at) => token(`owner-${at}`));
    const ink = token("owner-ink");
    this.owners = owners.map((colour) => this.paint(colour, ink, undefined));
    const unknown = (context: CanvasRenderingContext2D, size: number) =>
      line(context, 0, 0, size, size);
    this.unknown = this.pattern(token("bg"), token("line-strong"), unknown);
    this.sharers = owners.map((colour) => this.paint(colour, ink, STROKES["shared"]));
  }

  /** Returns the colour of a token. */
  get(name: string): string {
    const known = this.colours.get(name);
    if (known) return known;
    const found = token(name);
    this.colours.set(name, found);
    return found;
  }

  state(code: number): Paint {
    return this.states[code] ?? (this.states[0] as Paint);
  }

  /** Returns the paint of an owner, by the number of its colour. */
  owner(colour: number, shared: boolean): Paint {
    return (shared ? this.sharers : this.owners)[colour % OWNERS] as Paint;
  }

  private paint(fill: string, ink: string, stroke: Stroke | undefined): Paint {
    return { fill, ink, pattern: stroke ? this.pattern(fill, ink, stroke) : fill };
  }

  private pattern(fill: string, ink: string, stroke: Stroke): CanvasPattern | string {
    const tile = document.createElement("canvas");
    tile.width = tile.height = SIZE * this.ratio;
    const context = tile.getContext("2d");
    if (!context) return fill;
    context.scale(this.ratio, this.ratio);
    context.fillStyle = fill;
    context.fillRect(0, 0, SIZE, SIZE);
    context.globalAlpha = 0.42;
    context.strokeStyle = context.fillStyle = ink;
    context.lineWidth = 1.2;
    stroke(context, SIZE);
    const pattern = context.createPattern(tile, "repeat");
    pattern?.setTransform(new DOMMatrix().scale(1 / this.ratio));
    return pattern ?? fill;
  }
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
