// The frame of the page: top bar, timeline, details and dock, as named places for the parts.

import { h } from "../base/dom";
import { divider } from "./divider";

/** The places for the parts of the page. */
export interface Shell {
  readonly topbar: HTMLElement;
  readonly title: HTMLElement;
  readonly summary: HTMLElement;
  /** Notices that everyone must see: losses, recovery, modules that were not covered. */
  readonly notices: HTMLElement;
  /** Shown while there is no server any more. */
  readonly gone: HTMLElement;
  readonly search: HTMLElement;
  readonly tools: HTMLElement;
  readonly overview: HTMLElement;
  readonly timeline: HTMLElement;
  readonly details: HTMLElement;
  readonly dock: HTMLElement;
  /** Dialogs, for example the help. */
  readonly overlay: HTMLElement;
  readonly live: HTMLElement;
  readonly toast: HTMLElement;
}

/** Builds the frame into the page, and returns its places. */
export function mountShell(page: HTMLElement): Shell {
  const shell = {
    title: h("h1"),
    summary: h("div", { class: "summary" }),
    notices: h("div", { class: "notices", id: "notices" }),
    gone: h(
      "div",
      { class: "gone", role: "alert", hidden: true },
      "ptt ui has ended: only loaded data can be shown",
    ),
    search: h("div", { class: "search", id: "search", role: "search" }),
    tools: h("div", { class: "tools", id: "tools", role: "toolbar", "aria-label": "Tools" }),
    overview: h("div", { class: "overview", id: "overview" }),
    timeline: h("div", { class: "timeline", id: "timeline" }),
    details: h("aside", { class: "side", id: "details", "aria-label": "Details" }),
    dock: h("section", { class: "dock", id: "dock", "aria-label": "Panels" }),
    overlay: h("div", { class: "overlay", id: "overlay" }),
    live: h("div", { class: "visually-hidden", id: "live", "aria-live": "polite" }),
    toast: h("div", { class: "toast", id: "toast", role: "status", hidden: true }),
  };
  const topbar = h(
    "header",
    { class: "topbar" },
    shell.title,
    shell.summary,
    shell.notices,
    shell.gone,
    shell.search,
    shell.tools,
  );
  const height = divider({
    label: "Height of the panels",
    orientation: "horizontal",
    at: () => shell.dock.getBoundingClientRect().height,
    moved: (pixels) => {
      const now = shell.dock.getBoundingClientRect().height - pixels;
      frame.style.setProperty("--dock-height", `${Math.max(60, now)}px`);
    },
  });
  const width = divider({
    label: "Width of the details",
    orientation: "vertical",
    at: () => shell.details.getBoundingClientRect().width,
    moved: (pixels) => {
      const now = shell.details.getBoundingClientRect().width - pixels;
      frame.style.setProperty("--side-width", `${Math.min(900, Math.max(160, now))}px`);
    },
  });
  width.classList.add("at-the-side");
  const { overview, timeline, dock, details } = shell;
  const left = h("main", { class: "main" }, overview, timeline, height, dock, width);
  const body = h("div", { class: "body" }, left, details);
  const frame = h("div", { class: "shell" }, topbar, body);
  page.append(frame, shell.overlay, shell.live, shell.toast);

  return { topbar, ...shell };
}
