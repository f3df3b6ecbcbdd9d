// Goes to the longest contended wait of a row, or to the first event at a call site.
import type { App } from "../../base/app";
import type { Range, RowKind, Selection } from "../../base/state";

interface Longest {
  readonly range: Range;
  /** Number of the wait; 0 if the wait goes on. */
  readonly wait: number;
}

export interface Place {
  readonly by: RowKind;
  readonly row: number;
  /** Address of a call site; empty for a row. */
  readonly site: string;
}

/** Selects the longest contended wait of a row within the mark, and shows the wait. */
export async function showWorst(app: App, place: Place): Promise<void> {
  if (place.site) {
    await showSite(app, place.site);
    return;
  }
  if (!place.row) return;
  const within = app.store.get().mark ?? { from: 0, to: app.trace().end_ns + 1 };
  const row: Selection = { kind: "row", by: place.by, row: place.row };
  app.store.update({ selection: row });
  const found = await longestWait(app, place, within);
  // If the user has selected something else, that selection stays.
  if (app.store.get().selection !== row) return;
  if (found?.wait) app.store.update({ selection: { kind: "wait", wait: found.wait } });
  app.zoomTo(found?.range ?? within);
}

async function longestWait(app: App, { by, row }: Place, within: Range): Promise<Longest | null> {
  const found = await app.source.table("waits", {
    [by]: [row],
    wait_class: "contended",
    from_ns: Math.floor(within.from),
    to_ns: Math.ceil(within.to),
    limit: 1,
  });
  if (!found.length) return null;
  const from = found.t_ns[0] ?? 0;
  const range = { from, to: from + Math.max(1, found.dur_ns[0] ?? 0) };
  return { range, wait: found.wait_id[0] ?? 0 };
}

async function showSite(app: App, site: string): Promise<void> {
  const { mark, selection } = app.store.get();
  const asked = { site, t_ns: Math.floor(mark?.from ?? 0), count: 1 };
  const found = await app.source.table("events", asked);
  const position = found.position[0];
  const at = found.ts_ns[0];
  if (app.store.get().selection !== selection) return;
  if (position === undefined || at === undefined) {
    app.notify("No event of this call site was found");
    return;
  }
  app.store.update({ selection: { kind: "event", position, at }, filter: { site }, tab: "events" });
}
