// Light and dark: the user's choice or else the system's, and the colours for the canvases.
import type { Theme, ViewStore } from "./state";

const dark = () => matchMedia("(prefers-color-scheme: dark)");

/** Sets the theme on the page now and whenever it changes. Calls back after each change. */
export function followTheme(store: ViewStore, changed: () => void): void {
  const apply = () => {
    document.documentElement.dataset["theme"] = effective(store.get().theme);
    changed();
  };
  store.watch(["theme"], apply);
  dark().addEventListener("change", apply);
}

function effective(theme: Theme): "light" | "dark" {
  return theme === "auto" ? (dark().matches ? "dark" : "light") : theme;
}

/** Returns the present colour of a token, as in `token("state-idle")`. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function reducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
