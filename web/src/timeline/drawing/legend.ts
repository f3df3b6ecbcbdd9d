// The legend: the meaning of the colours and patterns. The code that draws the rows also draws the legend.
import { h } from "../../base/dom";
import { STATES } from "../../base/protocol";
import { type Palette, WAKING } from "./palette";
import { Surface } from "./surface";

interface Entry {
  readonly name: string;
  /** The meaning of the entry. */
  readonly help: string;
  readonly paint: (palette: Palette) => CanvasPattern | string;
  /**
   * The state that must have been drawn before the entry is shown. Without a state, the entry is
   * always shown.
   */
  readonly state?: number;
}

const NAMES: Readonly<Record<string, string>> = {
  held: "holds a lock",
  shared: "shares one",
  join: "joins",
  timeout: "timed out",
  unknown: "waits, unknown why",
  gil: "waits for the GIL",
  preempted: "preempted with a lock",
};

const HELP: Readonly<Record<(typeof STATES)[number], string>> = {
  "not waiting": "It ran, was ready to run, or slept: the trace does not say which",
  contended: "It waits for what another thread has, or has to do",
  idle: "It waits for work: nobody keeps what it waits for",
  join: "It waits for the end of a thread",
  timeout: "It waited until its time was up",
  cancelled: "It was cancelled while it waited",
  unknown: "It waits by a system call of its own: whether another thread keeps it is not known",
  gil: "It waits for the interpreter's lock of Python",
  held: "It has a lock; locks taken meanwhile lie below",
  shared: "It has a lock that others may have at the same time: read, not written",
  running: "It had a processor",
  ready: "It could run, and had no processor",
  asleep: "It slept in a system call",
  preempted: "Its processor was taken from it while it held locks",
};

/** A line of entries. If there is no room, a button shows the entries as a list. */
class Legend {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;
  private readonly swatches: { surface: Surface; entry: Entry; item: HTMLElement }[] = [];

  constructor(id: string, entries: readonly Entry[]) {
    this.list = h("ul", {
      id,
      class: "legend",
      tabindex: 0,
      "aria-label": "Legend",
      popover: "auto",
    });
    const opener = h(
      "button",
      { type: "button", class: "legend-opener", popovertarget: id },
      "Legend",
    );
    this.list.addEventListener("beforetoggle", () => this.place(opener));
    this.element = h("div", { class: "legend-place" }, opener, this.list);
    for (const entry of entries) {
      const canvas = h("canvas", { "aria-hidden": "true" });
      const item = h("li", { title: entry.help }, canvas, entry.name);
      this.swatches.push({ surface: new Surface(canvas), entry, item });
      this.list.append(item);
    }
  }

  /** The list is above everything else, at the place of its button. */
  private place(opener: HTMLElement): void {
    const box = opener.getBoundingClientRect();
    this.list.style.setProperty("--left", `${box.left}px`);
    this.list.style.setProperty("--top", `${box.bottom}px`);
  }

  /** Shows the entries of the drawn states. Returns whether the entries changed. */
  occur(states: ReadonlySet<number>): boolean {
    let changed = false;
    for (const { entry, item } of this.swatches) {
      const hidden = entry.state !== undefined && !states.has(entry.state);
      changed ||= hidden !== item.hidden;
      item.hidden = hidden;
    }
    return changed;
  }

  draw(palette: Palette): void {
    for (const { surface, entry } of this.swatches) {
      surface.resize(18, 11);
      const context = surface.begin();
      context.fillStyle = entry.paint(palette);
      context.fillRect(0, 0, 18, 11);
    }
  }
}

export function threadLegend(): Legend {
  const entries = STATES.map((state, code) => {
    const paint = (palette: Palette) => palette.state(code).pattern;
    return {
      name: NAMES[state] ?? state,
      help: HELP[state],
      paint,
      ...(code ? { state: code } : {}),
    };
  });
  const help = "The page has not heard of it yet";
  const woken = {
    name: "lock free, thread not running",
    help: "The part of a contended wait in which nobody had what it was for: the thread was not awake yet. Of several waits that are drawn as one this is not shown",
    paint: (palette: Palette) => palette.state(WAKING).pattern,
    state: WAKING,
  };
  return new Legend("legend-threads", [
    ...entries.slice(0, 2),
    woken,
    ...entries.slice(2),
    { name: "not known yet", help, paint: (palette) => palette.unknown },
    {
      name: "holds the selected lock",
      help: "Its waits are framed; of several holds that are drawn as one the longest counts",
      paint: (palette) => palette.get("lit-held"),
    },
    {
      name: "holds it, others want it",
      help: "At least one thread waited for the selected lock during this hold",
      paint: (palette) => palette.get("lit-wanted"),
    },
  ]);
}

export function processorLegend(): Legend {
  return new Legend("legend-processors", [
    {
      name: "a thread, in its colour",
      help: "Eight colours: neighbours differ, and threads may share a colour",
      paint: (palette) => palette.owner(0, false).pattern,
    },
    {
      name: "several turns",
      help: "Turns of threads that are too short to be drawn one by one, as high as they took long",
      paint: (palette) => palette.state(STATES.indexOf("running")).pattern,
    },
    {
      name: "none of them",
      help: "No thread of the trace is known to have had it: others may have",
      paint: (palette) => palette.get("state-free"),
    },
    {
      name: "ends so: it lost the processor",
      help: "It could have gone on; where a turn ends otherwise the thread gave the processor up",
      paint: (palette) => palette.state(STATES.indexOf("preempted")).fill,
    },
  ]);
}

export function objectLegend(): Legend {
  return new Legend("legend-objects", [
    {
      name: "held, a colour for each thread",
      help: "Eight colours: neighbours differ, and threads may share a colour; several holds that are drawn as one are blue",
      paint: (palette) => palette.owner(0, false).pattern,
    },
    {
      name: "shared",
      help: "Held by several threads at the same time",
      paint: (palette) => palette.owner(1, true).pattern,
    },
    {
      name: "queue, as high as it is long",
      help: "How many threads wait; orange where one of them is kept by another, pale where all are idle, else in the colour of such a wait. Where nobody holds the lock below, it is free and the threads have not run since",
      paint: (palette) => palette.state(1).pattern,
    },
  ]);
}
