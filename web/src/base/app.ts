// The parts that every part of the page gets: the trace, the view, the keyboard, and messages.
import type { Source } from "./api";
import type { Keys } from "./keys";
import type { Live, TraceInfo } from "./protocol";
import type { Range, ViewStore } from "./state";

export interface App {
  readonly source: Source;
  readonly store: ViewStore;
  readonly keys: Keys;
  /** The trace as it is now. A running trace grows. */
  readonly trace: () => TraceInfo;
  /** The last state that the server sent; null before the first. */
  readonly live: () => Live | null;
  /** Calls back whenever trace() or live() changed: earlier answers may be out of date. */
  readonly onChange: (listener: () => void) => () => void;
  /** Calls back when the colours changed, so that everything is drawn again. */
  readonly onTheme: (listener: () => void) => () => void;
  /** Says something to screen readers. */
  readonly announce: (text: string) => void;
  /** Shows a line to everyone for a while: the result of an action, or why it failed. */
  readonly notify: (text: string, kind?: "info" | "error") => void;
  /**
   * Shows a part of the trace with a margin at both sides. It moves there smoothly unless the user
   * wants no motion.
   */
  readonly zoomTo: (range: Range) => void;
}

/** A tab of the dock, or another part with its own mount point. */
export interface Panel {
  readonly id: string;
  readonly title: string;
  /** What the panel shows, in one line. */
  readonly help: string;
  /** Fills the element once, when the panel is first shown. */
  readonly mount: (element: HTMLElement, app: App) => void;
}
