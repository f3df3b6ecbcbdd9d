// A menu at a place of the window, for mouse and keyboard. It closes as soon as the user does something else.
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
    "aria-label": "Actions",
  });
  private before: HTMLElement | null = null;

  constructor(parent: HTMLElement) {
    parent.append(this.element);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("contextmenu", (event) => event.preventDefault());
    this.element.addEventListener("toggle", (event) => {
      // The focus goes back to the element that had it before.
      if ((event as ToggleEvent).newState === "closed") this.before?.focus({ preventScroll: true });
    });
  }

  /** Shows the entries, inside the window. The first entry gets the focus. */
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
    // Keys in the menu must not reach the page behind it.
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
