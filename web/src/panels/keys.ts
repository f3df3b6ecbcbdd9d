// Keys of the panels. They work whether a panel is shown or not.
import type { App, Panel } from "../base/app";
import { keepMark } from "./compare/compare";
import { stepObject } from "./events/step";
import { cutOut } from "./parts/scope";

export function addPanelKeys(app: App, panels: readonly Panel[]): void {
  const step = (key: string, does: string, by: 1 | -1) => ({
    chars: [key],
    label: key,
    does,
    group: "Selection" as const,
    press: () => {
      void stepObject(app, by);
      return undefined;
    },
  });
  app.keys.add(
    step("[", "Previous event of the same object", -1),
    step("]", "Next event of the same object", 1),
    {
      // As on the keyboard, 0 comes after 9. There is no key for more panels.
      chars: panels.slice(0, 10).map((_, at) => String((at + 1) % 10)),
      label: "1 – 9, 0",
      does: `Show a panel: ${panels
        .slice(0, 10)
        .map((panel) => panel.title)
        .join(", ")}`,
      group: "View",
      press: (event) => {
        const panel = panels[(Number(event.key) + 9) % 10];
        if (!panel) return false;
        app.store.update({ tab: panel.id, dock: true });
        // The next keys are for the contents of the panel.
        queueMicrotask(() => focusFirst(`panel-${panel.id}`));
        app.announce(panel.title);
        return undefined;
      },
    },
    {
      chars: ["n", "N"],
      label: "N",
      does: "Keep the mark as A, to compare it with another mark",
      group: "Selection",
      press: () => {
        keepMark(app);
        return undefined;
      },
    },
    {
      chars: ["x"],
      label: "X",
      does: "Cut the mark to a new trace",
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
