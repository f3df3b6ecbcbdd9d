// A menu at a place of the window: used with the mouse or the keyboard, gone as soon as something else is.
import { button, h } from "../../base/dom";

export interface Entry {
  readonly text: string;
  readonly does: () => void;
}

export class Menu {
  private readonly element = h("div", {
    class: "menu",
    role: "menu",
    tabindex: -1,
    popover: "auto",
    "aria-label": "What can be done with it",
  });
  private before: HTMLElement | null = null;

  constructor(parent: HTMLElement) {
    parent.append(this.element);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("contextmenu", (event) => event.preventDefault());
    this.element.addEventListener("toggle", (event) => {
      // Whoever had the keyboard gets it back.
      if ((event as ToggleEvent).newState === "closed") this.before?.focus({ preventScroll: true });
    });
  }

  /** Shows what can be done, as far as it fits; the first of it has the keyboard. */
  show(entries: readonly Entry[], x: number, y: number): void {
    if (this.element.matches(":popover-open")) this.element.hidePopover();
    const focused = document.activeElement;
    this.before = focused instanceof HTMLElement ? focused : null;
    const items = entries.map(({ text, does }) => {
      const act = () => {
        this.element.hidePopover();
        does();
      };
      return button(text, act, { role: "menuitem", tabindex: -1 });
    });
    this.element.replaceChildren(...items);
    this.element.showPopover();
    const { width, height } = this.element.getBoundingClientRect();
    this.element.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
    this.element.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 4))}px`;
    items[0]?.focus();
  }

  private key(event: KeyboardEvent): void {
    // What is pressed in the menu is not meant for what lies behind it.
    event.stopPropagation();
    const items = [...this.element.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") this.element.hidePopover();
    else if (to === undefined) return;
    event.preventDefault();
    if (to !== undefined) items.at(to % items.length)?.focus();
  }
}
