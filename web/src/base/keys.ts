// The keyboard: every key with an action is registered here, and the help is made from this list.

export type KeyGroup = "Navigation" | "Selection" | "View" | "Help";

export interface Key {
  /** Physical key codes (KeyboardEvent.code) or characters (KeyboardEvent.key). Any of them will do. */
  readonly codes?: readonly string[];
  readonly chars?: readonly string[];
  readonly shift?: boolean;
  /** Whether Ctrl or the Mac's command key is held. If not set, the browser gets the key with Ctrl. */
  readonly ctrl?: boolean;
  /** The name of the key in the help, and its action. */
  readonly label: string;
  readonly does: string;
  readonly group: KeyGroup;
  /**
   * Called at each press and repeat. Returns false if there was nothing to do: the browser then
   * gets the key.
   */
  readonly press: (event: KeyboardEvent) => boolean | undefined;
  readonly release?: (event: KeyboardEvent) => void;
}

export class Keys {
  private list: Key[] = [];

  constructor(target: EventTarget) {
    target.addEventListener("keydown", (event) => this.down(event as KeyboardEvent));
    target.addEventListener("keyup", (event) => this.up(event as KeyboardEvent));
  }

  /** Adds keys. The returned function removes them. */
  add(...keys: readonly Key[]): () => void {
    this.list.push(...keys);
    return () => {
      this.list = this.list.filter((key) => !keys.includes(key));
    };
  }

  /** Returns all keys in the order of registration, for the help. */
  all(): readonly Key[] {
    return this.list;
  }

  private down(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.altKey) return;
    const ctrl = event.ctrlKey || event.metaKey;
    if (isTyping(event.target) && event.key !== "Escape") return;
    for (const key of this.list) {
      if (Boolean(key.ctrl) !== ctrl || !matches(key, event)) continue;
      if (key.press(event) === false) continue;
      event.preventDefault();
      return;
    }
  }

  private up(event: KeyboardEvent): void {
    for (const key of this.list) if (matches(key, event)) key.release?.(event);
  }
}

function matches(key: Key, event: KeyboardEvent): boolean {
  if (key.shift !== undefined && key.shift !== event.shiftKey) return false;
  return Boolean(key.codes?.includes(event.code) || key.chars?.includes(event.key));
}

/** Returns whether keys belong to a field that the user is typing into. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.tagName === "SELECT" || target.tagName === "TEXTAREA") {
    return true;
  }
  const kind = target instanceof HTMLInputElement ? target.type : "";
  return (
    target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(kind)
  );
}
