// What every part of the page is given: the trace, the view, the keyboard, and a voice.
import type { Source } from "./api";
import type { Keys } from "./keys";
import type { Live, TraceInfo } from "./protocol";
import type { Range, ViewStore } from "./state";

export interface App {
  readonly source: Source;
  readonly store: ViewStore;
  readonly keys: Keys;
  /** The trace as of now; a running one grows. */
  readonly trace: () => TraceInfo;
  /** What the server said last about what is there; null before it said anything. */
  readonly live: () => Live | null;
  /** Calls back whenever trace() and live() changed: what was asked before may be out of date. */
  readonly onChange: (listener: () => void) => () => void;
  /** Calls back when the colours changed, so that all is drawn again. */
  readonly onTheme: (listener: () => void) => () => void;
  /** Says something to screen readers. */
  readonly announce: (text: string) => void;
  /** Shows a line to everyone for a while: what was done, or why not. */
  readonly notify: (text: string, kind?: "info" | "error") => void;
  /** Shows a part of the trace, with some air at both sides, and moves there smoothly unless that is unwanted. */
  readonly zoomTo: (range: Range) => void;
}

/** One tab of the dock, or another part with a mount point of its own. */
export interface Panel {
  readonly id: string;
  readonly title: string;
  /** What it shows, in one line. */
  readonly help: string;
  /** Fills the element, once, when the panel is first shown. */
  readonly mount: (element: HTMLElement, app: App) => void;
}
