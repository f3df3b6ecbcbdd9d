// The box beside the pointer. It describes the thing under the pointer.
import { h } from "../base/dom";
import type { Described } from "../model/describe";

const AWAY = 14;

export class Tooltip {
  private readonly element = h("div", { class: "tooltip", role: "tooltip", hidden: true });

  constructor(parent: HTMLElement) {
    parent.append(this.element);
  }

  /** Shows the box at a place of the window, moved inside the window if needed. */
  show(what: Described, hint: string, x: number, y: number): void {
    const facts = what.facts.map((fact) => h("div", { class: "fact" }, fact));
    const more = hint ? h("div", { class: "hint" }, hint) : null;
    this.element.replaceChildren(h("div", { class: "title" }, what.title), ...facts);
    if (more) this.element.append(more);
    this.element.hidden = false;
    const { width, height } = this.element.getBoundingClientRect();
    const left = x + AWAY + width > innerWidth ? x - AWAY - width : x + AWAY;
    const top = y + AWAY + height > innerHeight ? y - AWAY - height : y + AWAY;
    this.element.style.left = `${Math.max(4, left)}px`;
    this.element.style.top = `${Math.max(4, top)}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
