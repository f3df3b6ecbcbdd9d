// A button with the name of a filter, which removes the filter.
import { button } from "../../base/dom";

export function chip(text: string, remove: () => void): HTMLElement {
  return button(`${text} ✕`, remove, { class: "chip", "aria-label": `No longer only ${text}` });
}
