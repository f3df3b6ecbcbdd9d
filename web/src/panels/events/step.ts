// Steps to the next or previous event of the same object, whether the list of events is shown or not.
import type { App } from "../../base/app";
import type { RowKind, Selection } from "../../base/state";
import { exact } from "../../base/units";
import { type Anchor, firstEvent, neighbour, type TraceEvent } from "./event_window";

/** Selects the event of a step. The timeline moves only if the event is out of view. */
export function pick(app: App, event: TraceEvent): void {
  const { range } = app.store.get();
  const selection: Selection = { kind: "event", position: event.position, at: event.ts };
  if (!range || (event.ts >= range.from && event.ts < range.to)) app.store.update({ selection });
  else {
    const half = (range.to - range.from) / 2;
    const from = Math.max(0, event.ts - half);
    app.store.update({ selection, range: { from, to: from + 2 * half } });
  }
  app.announce(`${exact(event.ts)}: ${event.sentence}`);
}

let steps: Promise<void> = Promise.resolve();

/**
 * Goes to the next (1) or previous (-1) event of the selected object. If an earlier step is not
 * answered yet, this step starts from its end.
 */
export function stepObject(app: App, by: 1 | -1): Promise<void> {
  steps = steps.then(() => step(app, by));
  return steps;
}

async function step(app: App, by: 1 | -1): Promise<void> {
  const { selection } = app.store.get();
  try {
    const place = await placeOf(app, by);
    if (!place?.object) {
      app.notify("Pick an event of an object first");
      return;
    }
    const found = await neighbour(app.source, place.anchor, place.object, by);
    // If the user has selected something else, that selection stays.
    if (app.store.get().selection !== selection) return;
    if (found) pick(app, found);
    else app.announce(by > 0 ? "No later event of this object" : "No earlier event of this object");
  } catch (error) {
    app.notify(error instanceof Error ? error.message : String(error), "error");
  }
}

interface Place {
  readonly anchor: Anchor;
  /** Row of the object, 0 for none. */
  readonly object: number;
}

async function placeOf(app: App, by: 1 | -1): Promise<Place | null> {
  const { selection, range, filter } = app.store.get();
  const from = range?.from ?? 0;
  switch (selection?.kind) {
    case "event": {
      const event = await firstEvent(app.source, selection);
      return { anchor: selection, object: event?.objectRow || filter.object || 0 };
    }
    case "wait": {
      const { chain } = await app.source.json("wait", { id: selection.wait });
      return chain[0] ? besides(chain[0].t_ns, chain[0].object.row, by) : null;
    }
    case "span":
      return ofRow(app, selection.by, selection.row, selection.at, by);
    case "row":
      return ofRow(app, selection.by, selection.row, from, by);
    default: {
      const event = await firstEvent(app.source, { ts: from });
      return event && { anchor: event, object: event.objectRow || filter.object || 0 };
    }
  }
}

/** For a thread, the place has the object of its event at that time. */
async function ofRow(app: App, kind: RowKind, row: number, ts: number, by: 1 | -1): Promise<Place> {
  if (kind === "object") return besides(ts, row, by);
  const event = await firstEvent(app.source, { ts }, row);
  return event ? { anchor: event, object: event.objectRow } : { anchor: { ts }, object: 0 };
}

/** A place at a time counts as passed, so the next event is a later event. */
function besides(ts: number, object: number, by: 1 | -1): Place {
  return { anchor: { ts: by > 0 ? ts + 1 : ts }, object };
}
