// The keys of the timeline.
import type { App } from "../../base/app";
import type { Motion } from "../../model/motion";
import type { Actions } from "./actions";
import type { Cursor } from "./cursor";

/** Returns whether a key is for the timeline. A panel with the focus may want the key itself. */
function ours(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof Element)) return true;
  return target === document.body || target.closest("#timeline, #overview") !== null;
}

export function addCommands(app: App, motion: Motion, actions: Actions, cursor: Cursor): void {
  const held = (code: string, label: string, does: string, kind: "pan" | "zoom", way: 1 | -1) => ({
    codes: [code],
    label,
    does,
    group: "Navigation" as const,
    press: () => {
      motion.hold(kind, way);
      return undefined;
    },
    release: () => motion.hold(kind, 0),
  });
  app.keys.add(
    held("KeyW", "W", "Zoom in", "zoom", 1),
    held("KeyS", "S", "Zoom out", "zoom", -1),
    held("KeyA", "A", "Pan left", "pan", -1),
    held("KeyD", "D", "Pan right", "pan", 1),
  );
  addEventListener("blur", () => {
    motion.hold("pan", 0);
    motion.hold("zoom", 0);
  });

  const when = (act: (event: KeyboardEvent) => boolean | undefined) => (event: KeyboardEvent) => {
    return ours(event) ? act(event) : false;
  };
  const pan = (way: 1 | -1) => {
    const { from, to } = motion.range();
    motion.pan(((to - from) / 8) * way);
    return undefined;
  };
  app.keys.add(
    {
      chars: ["ArrowLeft", "ArrowRight"],
      shift: false,
      label: "← →",
      does: "Pan left or right",
      group: "Navigation",
      press: when((event) => pan(event.key === "ArrowLeft" ? -1 : 1)),
    },
    {
      chars: ["ArrowUp", "ArrowDown"],
      shift: false,
      label: "↑ ↓",
      does: "Go to the row above or below",
      group: "Selection",
      press: when((event) => {
        cursor.moveRow(event.key === "ArrowUp" ? -1 : 1);
        return undefined;
      }),
    },
    {
      chars: ["PageUp", "PageDown"],
      label: "Page ↑ ↓",
      does: "Go ten rows up or down",
      group: "Selection",
      press: when((event) => {
        cursor.moveRow(event.key === "PageUp" ? -10 : 10);
        return undefined;
      }),
    },
    {
      chars: ["ArrowLeft", "ArrowRight"],
      shift: true,
      label: "Shift ← →",
      does: "Go to the previous or next wait or hold of the row",
      group: "Selection",
      press: when((event) => {
        cursor.moveSpan(event.key === "ArrowLeft" ? -1 : 1);
        return undefined;
      }),
    },
    {
      chars: ["ArrowUp", "ArrowDown"],
      shift: true,
      label: "Shift ↑ ↓",
      does: "Go to the lane above or below: waits, then nested holds",
      group: "Selection",
      press: when((event) => {
        cursor.moveLane(event.key === "ArrowUp" ? -1 : 1);
        return undefined;
      }),
    },
    {
      chars: ["Home", "End"],
      label: "Home End",
      does: "Go to the start or the end of the trace",
      group: "Navigation",
      press: when((event) => {
        const { from, to } = motion.whole();
        const view = motion.range();
        motion.pan(event.key === "Home" ? from - view.from : to - view.to);
        return undefined;
      }),
    },
    {
      chars: ["f", "F"],
      label: "F",
      does: "Show the selection; again, the whole trace",
      group: "Navigation",
      press: () => {
        actions.fit();
        return undefined;
      },
    },
    {
      chars: ["m", "M"],
      label: "M",
      does: "Mark and measure the selection, or the visible range",
      group: "Selection",
      press: () => {
        actions.mark();
        return undefined;
      },
    },
    {
      chars: ["e", "E"],
      label: "E",
      does: "Show or hide the arrows",
      group: "View",
      press: () => {
        app.store.update({ arrows: !app.store.get().arrows });
        return undefined;
      },
    },
    {
      chars: ["i", "I"],
      label: "I",
      does: "Show or hide the details",
      group: "View",
      press: () => {
        app.store.update({ side: !app.store.get().side });
        return undefined;
      },
    },
    {
      chars: ["c", "C"],
      label: "C",
      does: "Fold or unfold the process",
      group: "View",
      press: when(() => {
        actions.toggleGroup();
        return undefined;
      }),
    },
    {
      chars: ["g", "G"],
      label: "G",
      does: "Group rows by the beginnings of their names, or by process",
      group: "View",
      press: () => {
        app.store.update({ byName: !app.store.get().byName });
        return undefined;
      },
    },
    {
      chars: ["v", "V"],
      label: "V",
      does: "Show only rows that existed in the visible range, or all rows",
      group: "View",
      press: () => {
        app.store.update({ inView: !app.store.get().inView });
        return undefined;
      },
    },
    ...["ContextMenu", "F10"].map((name) => ({
      chars: [name],
      ...(name === "F10" ? { shift: true } : {}),
      label: name === "F10" ? "Shift+F10" : "Menu",
      does: "Open the menu of the row: show alone, pin, hide, zoom, copy",
      group: "Selection" as const,
      press: when(() => actions.menuAtCursor()),
    })),
    {
      chars: ["l", "L"],
      label: "L",
      does: "Go from the threads to the locks and back, through the processors if they are shown",
      group: "Navigation",
      press: () => {
        actions.switchPane();
        return undefined;
      },
    },
    {
      chars: ["Enter", " "],
      label: "Enter",
      does: "Select the thing at the cursor",
      group: "Selection",
      press: when((event) => {
        const target = event.target;
        if (target instanceof Element && target.closest("button, .divider")) return false;
        return actions.activate();
      }),
    },
    {
      chars: ["Escape"],
      label: "Esc",
      does: "Clear the selection, then the mark",
      group: "Selection",
      press: () => actions.escape(),
    },
  );
}
