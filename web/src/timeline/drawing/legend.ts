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
  shared: "shares a lock",
  join: "joins",
  timeout: "timed out",
  unknown: "waits, unknown why",
  gil: "waits for the GIL",
  preempted: "preempted with a lock",
};

const HELP: Readonly<Record<(typeof STATES)[number], string>> = {
  "not waiting": "The thread ran, was ready to run, or slept: the trace does not say which",
  contended: "The thread waits for another thread, which has the object or has to do something",
  idle: "The thread waits for work: no other thread holds it up",
  join: "The thread waits for the end of a thread",
  timeout: "The thread waited until the time limit",
  cancelled: "The thread was cancelled while it waited",
  unknown:
    "The thread waits in a futex call or for a semaphore of unknown purpose: another thread may be the cause",
  gil: "The thread waits for the lock of the Python interpreter",
  held: "The thread holds a lock; locks that it takes meanwhile are below",
  shared: "The thread shares a lock with others: it reads, and does not write",
  running: "The thread had a processor",
  ready: "The thread could run, and had no processor",
  asleep: "The thread slept in a system call",
  preempted: "The thread lost its processor while it held locks",
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
  const help = "The page has not loaded this part yet";
  const woken = {
    name: "lock free, thread not running",
    help: "The part of a contended wait in which nobody had the object: the thread was not awake yet. Waits that are drawn as one do not show this part",
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
      help: "Its waits are framed; if several holds are drawn as one, the longest counts",
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
      help: "Turns of threads that are too short to be drawn one by one; the height is their share of the time",
      paint: (palette) => palette.state(STATES.indexOf("running")).pattern,
    },
    {
      name: "none of them",
      help: "No thread of the trace is known to have had the processor: others may have had it",
      paint: (palette) => palette.get("state-free"),
    },
    {
      name: "ends so: it lost the processor",
      help: "The thread could have gone on; at other ends of turns, the thread gave the processor up",
      paint: (palette) => palette.state(STATES.indexOf("preempted")).fill,
    },
  ]);
}

export function objectLegend(): Legend {
  return new Legend("legend-objects", [
    {
      name: "held, a colour for each thread",
      help: "Eight colours: neighbours differ, and threads may share a colour; holds that are drawn as one are blue",
      paint: (palette) => palette.owner(0, false).pattern,
    },
    {
      name: "shared",
      help: "Held by several threads at the same time",
      paint: (palette) => palette.owner(1, true).pattern,
    },
    {
      name: "queue, as high as it is long",
      help: "How many threads wait: orange if another thread keeps one of them waiting, pale if all are idle, else in the colour of their waits. If nobody holds the lock below, the lock is free and the threads have not run since",
      paint: (palette) => palette.state(1).pattern,
    },
  ]);
}
