// The box beside a table that tells more of the row that was come to.
import { h } from "../dom";

export function aboutBox(...children: readonly Node[]): HTMLElement {
  const attributes = { class: "about", tabindex: 0, role: "region", "aria-label": "More of it" };
  return h("div", { ...attributes, "aria-live": "polite" }, ...children);
}
