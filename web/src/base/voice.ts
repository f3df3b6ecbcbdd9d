// Messages: spoken by screen readers, or shown as a line on the page for a while.
import { plain } from "./text";

const SHOWN_MS = 6000;
/**
 * A message within this time replaces the message before. While a key is held down, only the last
 * message counts.
 */
const QUIET_MS = 150;

export class Voice {
  private quiet: number | undefined;
  private shown: number | undefined;

  constructor(
    private readonly live: HTMLElement,
    private readonly toast: HTMLElement,
  ) {}

  announce(text: string): void {
    clearTimeout(this.quiet);
    this.quiet = window.setTimeout(() => {
      this.live.textContent = plain(text);
    }, QUIET_MS);
  }

  notify(text: string, kind: "info" | "error" = "info"): void {
    clearTimeout(this.shown);
    this.toast.textContent = plain(text);
    this.toast.className = `toast ${kind}`;
    this.toast.hidden = false;
    this.shown = window.setTimeout(() => {
      this.toast.hidden = true;
    }, SHOWN_MS);
  }
}
