// The help: all registered keys, the actions of the mouse, and the meanings of words.
import type { App } from "../base/app";
import { button, h } from "../base/dom";
import type { Key, KeyGroup } from "../base/keys";

const GROUPS: readonly KeyGroup[] = ["Navigation", "Selection", "View", "Help"];
const GESTURES: readonly (readonly [string, string])[] = [
  ["Wheel", "Scroll the rows; zoom if all rows are visible"],
  ["Ctrl+wheel, pinch", "Zoom at the pointer"],
  ["Shift+wheel", "Pan, like a sideways wheel"],
  ["Drag", "Pan and scroll"],
  ["Shift+drag", "Mark a range; on the ruler also without Shift"],
  ["Click", "Select a wait, a hold or a row; a turn on a processor selects its thread"],
  [
    "Point at a lock",
    "Frame its waits and holds in the rows of all threads; if you select the lock, its holds get colours",
  ],
  ["Double click", "Zoom to it; on the ruler, show the whole trace"],
  ["Right click", "Open the menu of a row or a span: show alone, pin, hide, zoom, copy"],
  [
    "Drag in the strip",
    "Move the visible part or its edges; beside the visible part, choose a new part",
  ],
];
/** Words with their meanings, as in the glossary of the documentation. */
const WORDS: readonly (readonly [string, string])[] = [
  [
    "wait",
    "The time from the moment when an operation blocks to the moment when its thread continues",
  ],
  ["contended wait", "A wait for something that another thread has"],
  [
    "while held",
    "The part of a contended wait in which a thread held the object: the holder caused this part",
  ],
  [
    "until awake",
    "The rest of a contended wait: the lock was already free, or the signal was already sent",
  ],
  [
    "idle wait",
    "A wait for work: for a condition, or for a unit of a semaphore, that no thread withheld",
  ],
  ["not waiting", "The time between two waits: the thread ran, was ready to run, or slept"],
  ["caused", "How long other threads waited because of a holder, by thread, lock or call site"],
  [
    "hold",
    "The time from the moment when a thread takes a lock to the moment when the thread releases it",
  ],
  ["holder", "The thread that has a lock"],
  ["shared", "Held by several threads at the same time, for example a read-write lock for reading"],
  ["waker", "The thread that ended a wait by a release, signal, broadcast, post or arrival"],
  ["queue", "The threads that wait for one object at the same time"],
  ["turn", "An unbroken time of a thread on a processor"],
  ["lane", "A part of a row: waits or the queue on top, and holds below, nested"],
  ["mark", "A window that you choose on the timeline: the panels show its figures"],
  ["call site", "The place in the program that called a function of the thread library"],
  ["critical path", "The chain of waits and wake-ups from the end of a run back to its beginning"],
  [
    "lock order",
    "An arrow from a lock that a thread holds to a lock that it asks for; a cycle can deadlock",
  ],
  ["finding", "A bug or a suspicious pattern, with the events that prove it"],
  ["lost event", "An event that a hook reported and that is not in the trace"],
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
