// The dock: a tab for each panel. A panel is filled when it is first shown.
import type { App, Panel } from "../base/app";
import { button, h } from "../base/dom";

/** Fills the dock with the tabs of the panels, and keeps it in step with the view. */
export function mountDock(dock: HTMLElement, panels: readonly Panel[], app: App): void {
  const tabs = h("div", { class: "dock-tabs", role: "tablist", "aria-label": "Panels" });
  const bodies = h("div", { class: "dock-panels" });
  const show = (id: string) => app.store.update({ tab: id, dock: true });
  const made = panels.map((panel) => {
    const tab = button(panel.title, () => pick(panel.id), {
      role: "tab",
      id: `tab-${panel.id}`,
      "aria-controls": `panel-${panel.id}`,
      title: panel.help,
    });
    const body = h("div", {
      role: "tabpanel",
      id: `panel-${panel.id}`,
      "aria-labelledby": `tab-${panel.id}`,
      tabindex: 0,
    });
    tabs.append(tab);
    bodies.append(body);
    return { panel, tab, body, mounted: false };
  });
  /** A second click on the open tab folds the dock. */
  const pick = (id: string) => {
    const { tab, dock: open } = app.store.get();
    if (open && tab === id) app.store.update({ dock: false });
    else show(id);
  };
  tabs.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = made.findIndex((one) => one.tab === document.activeElement);
    const next = made[(at + step + made.length) % made.length];
    if (!next) return;
    show(next.panel.id);
    next.tab.focus();
  });
  dock.append(tabs, bodies);

  app.store.watch(["tab", "dock"], (view) => {
    const shown = made.find((one) => one.panel.id === view.tab) ?? made[0];
    dock.classList.toggle("folded", !view.dock);
    for (const one of made) {
      const selected = one === shown;
      one.tab.setAttribute("aria-selected", String(selected));
      one.tab.tabIndex = selected ? 0 : -1;
      one.body.hidden = !selected;
    }
    if (!shown || shown.mounted || !view.dock) return;
    shown.mounted = true;
    shown.panel.mount(shown.body, app);
  });
}
