// The help: all keys that do something, as they are registered, what the mouse does, and what words mean.
import type { App } from "./app";
import { button, h } from "./dom";
import type { Key, KeyGroup } from "./keys";

const GROUPS: readonly KeyGroup[] = ["Navigation", "Selection", "View", "Help"];
const GESTURES: readonly (readonly [string, string])[] = [
  ["Wheel", "Scroll the rows; where all are in sight, zoom"],
  ["Ctrl+wheel, pinch", "Zoom about the pointer"],
  ["Shift+wheel", "Pan, as a sideways wheel does"],
  ["Drag", "Pan and scroll"],
  ["Shift+drag", "Mark a range; on the ruler without Shift"],
  ["Click", "Select a wait, a hold, a row"],
  ["Double click", "Show it as wide as it fits; on the ruler, the whole trace"],
  ["Drag in the strip", "Move what is seen, or its edges; beside it, choose anew"],
];
const WORDS: readonly (readonly [string, string])[] = [
  ["contended", "Another thread has what is waited for: the only waiting that counts as lost"],
  ["idle", "Waiting for work, which comes when somebody signals or posts"],
  ["not waiting", "Neither: the thread ran, was ready to run, or slept in another call"],
  ["caused", "How long others waited for what a thread, or a call site, had"],
  [
    "while held",
    "The part of a contended wait in which somebody had what it was for: only this is blamed",
  ],
  ["waking", "The rest of it: free or handed over, until the thread went on"],
  ["shared", "Held by several at the same time, as a lock for reading is"],
  ["lane", "A line of a row: on top what a thread waits for, below it the locks it has, nested"],
  ["queue", "Those who wait for a lock at a time"],
  ["critical path", "The chain of threads and waits that the length of the run depends on"],
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
  // What is pressed in the dialog is not meant for what lies behind it. Closed, it keeps the focus
  // until the next picture, and what is pressed by then is meant for the page.
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
