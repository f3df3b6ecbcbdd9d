// The box beside a table with more about the current row.
import { h } from "../../base/dom";

export function aboutBox(...children: readonly Node[]): HTMLElement {
  const attributes = {
    class: "about",
    tabindex: 0,
    role: "region",
    "aria-label": "More about the current row",
  };
  return h("div", { ...attributes, "aria-live": "polite" }, ...children);
}
