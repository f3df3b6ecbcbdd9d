// Goes to the longest contended wait of a row, or to the first event at a call site.
import type { App } from "../app";
import { STATES } from "../protocol";
import type { Range, RowKind } from "../state";

const CONTENDED = STATES.indexOf("contended");
const WIDTH = 4000;

export interface Place {
  readonly by: RowKind;
  readonly row: number;
  /** Address of a call site; empty for a row. */
  readonly site: string;
}

/** Selects the row and shows its longest contended wait within what is marked, or the whole row. */
export async function showWorst(app: App, place: Place): Promise<void> {
  if (place.site) {
    await showSite(app, place.site);
    return;
  }
  if (!place.row) return;
  const { mark } = app.store.get();
  const within = mark ?? { from: 0, to: app.trace().end_ns };
  app.store.update({ selection: { kind: "row", by: place.by, row: place.row } });
  let found: Longest | null = { range: within, wait: 0, merged: true };
  // Short waits that lie close together come as one until we look closely.
  for (let look = 0; found?.merged && look < 6; look++) {
    const closer = await longest(app, place, found.range);
    if (!closer) break;
    found = closer;
  }
  if (!found || found.range === within) {
    app.zoomTo(within);
    return;
  }
  if (found.wait) app.store.update({ selection: { kind: "wait", wait: found.wait } });
  app.zoomTo(found.range);
}

interface Longest {
  readonly range: Range;
  readonly wait: number;
  readonly merged: boolean;
}

async function longest(app: App, place: Place, within: Range): Promise<Longest | null> {
  const spans = await app.source.table("spans", {
    by: place.by,
    rows: [place.row],
    from_ns: Math.floor(within.from),
    to_ns: Math.ceil(within.to),
    width: WIDTH,
  });
  let best = -1;
  for (let at = 0; at < spans.length; at++) {
    if (spans.lane[at] !== 0 || spans.state[at] !== CONTENDED) continue;
    if (best < 0 || (spans.busy_ns[at] ?? 0) > (spans.busy_ns[best] ?? 0)) best = at;
  }
  if (best < 0) return null;
  const from = spans.t_ns[best] ?? 0;
  const to = from + Math.max(1, spans.dur_ns[best] ?? 0);
  return {
    range: { from, to },
    wait: spans.wait_id[best] ?? 0,
    merged: (spans.count[best] ?? 1) > 1,
  };
}

async function showSite(app: App, site: string): Promise<void> {
  const { mark } = app.store.get();
  const found = await app.source.table("events", {
    site,
    t_ns: Math.floor(mark?.from ?? 0),
    count: 1,
  });
  const position = found.position[0];
  const at = found.ts_ns[0];
  if (position === undefined || at === undefined) {
    app.notify("No event of this call site was found");
    return;
  }
  app.store.update({ selection: { kind: "event", position, at }, filter: { site }, tab: "events" });
}
