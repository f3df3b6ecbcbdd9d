// The help: all registered keys, the actions of the mouse, and the meanings of words.
import type { App } from "../base/app";
import { button, h } from "../base/dom";
import type { Key, KeyGroup } from "../base/keys";

const GROUPS: readonly KeyGroup[] = ["Navigation", "Selection", "View", "Help"];
const GESTURES: readonly (readonly [string, string])[] = [
  ["Wheel", "Scroll the rows; where all are in sight, zoom"],
  ["Ctrl+wheel, pinch", "Zoom about the pointer"],
  ["Shift+wheel", "Pan, as a sideways wheel does"],
  ["Drag", "Pan and scroll"],
  ["Shift+drag", "Mark a range; on the ruler without Shift"],
  ["Click", "Select a wait, a hold, a row; of a turn on a processor its thread"],
  [
    "Point at a lock",
    "Frame its waits and holds in the rows of all threads; selected, its holds have colours of their own",
  ],
  ["Double click", "Show it as wide as it fits; on the ruler, the whole trace"],
  [
    "Right click",
    "Show what can be done with a row or a span: alone, pinned, hidden, zoomed to, copied",
  ],
  ["Drag in the strip", "Move what is seen, or its edges; beside it, choose anew"],
];
/** Words with their meanings, as in the glossary of the documentation. */
const WORDS: readonly (readonly [string, string])[] = [
  ["wait", "From the moment when an operation blocks to the moment when its thread goes on"],
  ["contended wait", "A wait for something that another thread has"],
  ["while held", "The part of it in which a thread had the object: the holder is its cause"],
  ["until awake", "The rest of it: the lock was free, or the signal was given already"],
  [
    "idle wait",
    "A wait for work: for a condition or a unit of a semaphore that no thread kept back",
  ],
  ["not waiting", "Between two waits: the thread ran, was ready to run, or slept"],
  ["caused", "How long others waited for what a thread held, or for what was taken at a call site"],
  ["hold", "From the moment when a thread has taken a lock to the moment when it gives it back"],
  ["holder", "The thread that has a lock"],
  ["shared", "Held by several threads at the same time, as a read-write lock for reading"],
  ["waker", "The thread whose release, signal, post or arrival ended a wait"],
  ["queue", "The threads that wait for one object at a time"],
  ["turn", "The time for which a thread has a processor, without a break"],
  ["lane", "A part of a row: on top waits or the queue, below it holds, nested"],
  ["mark", "A window that is chosen on the timeline: the panels show its figures"],
  ["call site", "Where the program called a function of the thread library"],
  ["critical path", "The chain of waits and wake-ups from the end of a run back to its beginning"],
  [
    "lock order",
    "From each lock that a thread holds to each that it asks for; a cycle can deadlock",
  ],
  ["finding", "A bug, or something that deserves a look, with the events that prove it"],
  ["lost event", "An event that was reported and is not in the trace"],
];

export function mountHelp(place: HTMLElement, app: App): void {
  const body = h("div", { class: "help-groups" });
  const dialog = h("dialog", { id: "help", class: "help", "aria-labelledby": "help-title" });
  dialog.append(
    h(
      "div",
      { class: "help-head" },
      h("h2", { id: "help-title" }, "Keys, mouse and words"),
      button("Close", () => dialog.close()),
    ),
    body,
  );
  place.append(dialog);
  const show = () => {
    body.replaceChildren(
      ...GROUPS.map((group) => section(group, app.keys.all())),
      list("Mouse", GESTURES),
      list("Words", WORDS),
    );
    dialog.showModal();
  };
  // Keys in the dialog must not reach the page behind it. A closed dialog keeps the focus until the next
  // frame, and keys in this time are meant for the page.
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return;
    event.stopPropagation();
    if (event.key === "?") dialog.close();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  app.keys.add({
    chars: ["?"],
    label: "?",
    does: "Show the keys",
    group: "Help",
    press: () => {
      show();
      return undefined;
    },
  });
  const tools = document.getElementById("tools");
  tools?.append(button("?", show, { "aria-label": "Keys and help", title: "Keys and help (?)" }));
}

function section(group: KeyGroup, keys: readonly Key[]): HTMLElement {
  const own = keys.filter((key) => key.group === group);
  return list(
    group,
    own.map((key) => [key.label, key.does]),
  );
}

function list(title: string, lines: readonly (readonly [string, string])[]): HTMLElement {
  const rows = lines.map(([name, text]) =>
    h("div", { class: "help-key" }, h("kbd", {}, name), h("span", {}, text)),
  );
  return h("section", {}, h("h3", {}, title), ...rows);
}
