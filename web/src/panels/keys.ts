// Keys of the panels: the tabs by their number, and cutting out what is marked.
import type { App, Panel } from "../app";
import { cutOut } from "./scope";

export function addPanelKeys(app: App, panels: readonly Panel[]): void {
  app.keys.add(
    {
      chars: panels.map((_, at) => String(at + 1)),
      label: `1 – ${panels.length}`,
      does: `Show a panel: ${panels.map((panel) => panel.title).join(", ")}`,
      group: "View",
      press: (event) => {
        const panel = panels[Number(event.key) - 1];
        if (!panel) return false;
        app.store.update({ tab: panel.id, dock: true });
        // The keys that follow are for what the panel holds.
        queueMicrotask(() => focusFirst(`panel-${panel.id}`));
        app.announce(panel.title);
        return undefined;
      },
    },
    {
      chars: ["x"],
      label: "X",
      does: "Cut what is marked to a new trace",
      group: "Selection",
      press: () => {
        if (!app.source.served) return false;
        void cutOut(app);
        return undefined;
      },
    },
  );
}

function focusFirst(id: string): void {
  const panel = document.getElementById(id);
  const inner = panel?.querySelector<HTMLElement>("[role=grid]");
  (inner ?? panel)?.focus();
}
