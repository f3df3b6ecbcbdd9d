// Goes to the longest contended wait of a row, or to the first event at a call site.
import type { App } from "../base/app";
import { MAX_ROWS, STATES } from "../base/protocol";
import type { Range, RowKind, Selection } from "../base/state";

const CONTENDED = STATES.indexOf("contended");
const WIDTH = 2000;
/** Of so many threads all waits are looked at; of more, only those while the object's queue is busiest. */
const FEW = 100;
const LOOKS = 6;

export interface Place {
  readonly by: RowKind;
  readonly row: number;
  /** Address of a call site; empty for a row. */
  readonly site: string;
}

/** Selects the longest contended wait of a row within what is marked, and shows it. */
export async function showWorst(app: App, place: Place): Promise<void> {
  if (place.site) {
    await showSite(app, place.site);
    return;
  }
  if (!place.row) return;
  const within = app.store.get().mark ?? { from: 0, to: app.trace().end_ns };
  const row: Selection = { kind: "row", by: place.by, row: place.row };
  app.store.update({ selection: row });
  const found = await longestWait(app, place, within);
  // What the user picked meanwhile stays.
  if (app.store.get().selection !== row) return;
  if (found?.wait) app.store.update({ selection: { kind: "wait", wait: found.wait } });
  app.zoomTo(found?.range ?? within);
}

interface Longest {
  readonly row: number;
  readonly range: Range;
  readonly wait: number;
  readonly merged: boolean;
}

async function longestWait(app: App, place: Place, within: Range): Promise<Longest | null> {
  const object = place.by === "object" ? place.row : 0;
  let rows = [place.row];
  let range = within;
  if (object) {
    if (app.trace().threads > FEW)
      range = (await longest(app, "object", rows, 0, within))?.range ?? within;
    const threads = await app.source.table("rows", { by: "thread", limit: MAX_ROWS });
    rows = Array.from(threads.row);
  }
  let found = await longest(app, "thread", rows, object, range);
  // Short waits that lie close together come as one until they are looked at closely.
  for (let look = 0; found?.merged && look < LOOKS; look++) {
    const closer = await longest(app, "thread", [found.row], object, found.range);
    if (!closer) break;
    found = closer;
  }
  return found;
}

/** Returns the longest contended stretch of some rows, of waits for one object if that is not 0. */
async function longest(
  app: App,
  by: RowKind,
  rows: readonly number[],
  object: number,
  within: Range,
): Promise<Longest | null> {
  const spans = await app.source.table("spans", {
    by,
    rows,
    from_ns: Math.floor(within.from),
    to_ns: Math.ceil(within.to),
    width: WIDTH,
  });
  let best = -1;
  for (let at = 0; at < spans.length; at++) {
    if (spans.lane[at] !== 0 || spans.state[at] !== CONTENDED) continue;
    if (object && spans.other[at] !== object) continue;
    if (best < 0 || (spans.busy_ns[at] ?? 0) > (spans.busy_ns[best] ?? 0)) best = at;
  }
  if (best < 0) return null;
  const from = spans.t_ns[best] ?? 0;
  return {
    row: spans.row[best] ?? 0,
    range: { from, to: from + Math.max(1, spans.dur_ns[best] ?? 0) },
    wait: spans.wait_id[best] ?? 0,
    merged: (spans.count[best] ?? 1) > 1,
  };
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
