// A button that names what a list is restricted to, and takes that away.
import { button } from "../../base/dom";

export function chip(text: string, remove: () => void): HTMLElement {
  return button(`${text} ✕`, remove, { class: "chip", "aria-label": `No longer only ${text}` });
}
