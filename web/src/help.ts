// The help: all keys that do something, as they are registered.
import type { App } from "./app";
import { button, h } from "./dom";
import type { Key, KeyGroup } from "./keys";

const GROUPS: readonly KeyGroup[] = ["Navigation", "Selection", "View", "Help"];

export function mountHelp(place: HTMLElement, app: App): void {
  const body = h("div", { class: "help-groups" });
  const dialog = h("dialog", { id: "help", class: "help", "aria-labelledby": "help-title" });
  dialog.append(
    h(
      "div",
      { class: "help-head" },
      h("h2", { id: "help-title" }, "Keys"),
      button("Close", () => dialog.close()),
    ),
    body,
  );
  place.append(dialog);
  const show = () => {
    body.replaceChildren(...GROUPS.map((group) => section(group, app.keys.all())));
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
  const rows = keys
    .filter((key) => key.group === group)
    .map((key) =>
      h("div", { class: "help-key" }, h("kbd", {}, key.label), h("span", {}, key.does)),
    );
  return h("section", {}, h("h3", {}, group), ...rows);
}
