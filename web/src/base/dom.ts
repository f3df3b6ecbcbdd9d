// Makes elements. Text is always set as text, as names in a trace may contain markup and control characters.
import { nameAndRest, plain } from "./text";

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
type Child = Node | string | null | undefined;

/** Returns a new element. A false or undefined attribute is left out, and a true attribute is empty. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : plain(String(value)));
  }
  for (const child of children) {
    if (child === null || child === undefined) continue;
    element.append(typeof child === "string" ? plain(child) : child);
  }
  return element;
}

/** Returns a label from a trace. The direction of its name does not change the text around the name. */
export function named(label: string): HTMLElement {
  const [name, rest] = nameAndRest(label);
  return h("span", {}, h("bdi", {}, name), rest);
}

/** Returns a button. It never submits a form. */
export function button(
  text: string | HTMLElement,
  click: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const made = h("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", click);
  return made;
}

/** Returns a new element of a drawing. */
export function svg(
  tag: string,
  attributes: Readonly<Record<string, string | number>>,
): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
