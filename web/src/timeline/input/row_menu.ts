// The menu of a row or a span of it: show alone, pin, hide, zoom, copy.
import type { App } from "../../base/app";
import { type PaneKind, type Range, type RowRef, rowsIn, type View } from "../../base/state";
import { nameAndRest } from "../../base/text";
import { exact } from "../../base/units";
import type { Span } from "../../model/find";
import type { RowData } from "../../model/rows";
import { listWaits } from "../../panels/waits/listed";
import type { Entry } from "./menu";

/** Returns the menu entries of a row, for a time if the pointer was at a time. */
export function rowEntries(
  app: App,
  row: RowData,
  span: Span | null,
  at: number | null,
  zoomTo: (range: Range) => void,
): Entry[] {
  const { by } = row;
  const ref: RowRef = `${by}:${row.row}`;
  const view = app.store.get();
  const update = (change: Partial<View>) => app.store.update(change);
  const copy = (text: string) => {
    const done = () => app.notify(`Copied ${text}`);
    const failed = () => app.notify("The browser does not let the page copy", "error");
    void navigator.clipboard?.writeText(text).then(done, failed);
  };
  const when = span ? span.t_ns : at;
  const isPinned = view.pinned.includes(ref);
  const entries: (Entry | null)[] = [
    { text: "Only this", does: () => update({ only: [...others(view.only, by), ref] }) },
    isPinned
      ? { text: "Unpin", does: () => update({ pinned: without(view.pinned, ref) }) }
      : { text: "Pin to the top", does: () => update({ pinned: [...view.pinned, ref] }) },
    ...(["up", "down"] as const).map((way) => {
      const moved = movedBy(view.pinned, ref, way === "up" ? -1 : 1);
      return moved && { text: `Move ${way}`, does: () => update({ pinned: moved }) };
    }),
    {
      text: "Hide",
      does: () => {
        update({ hidden: [...view.hidden, ref], pinned: without(view.pinned, ref) });
      },
    },
    rowsIn([...view.hidden, ...view.only], by).length
      ? { text: "Show all rows", does: () => showAll(app, by) }
      : null,
    span
      ? {
          text: "Zoom to this",
          does: () => zoomTo({ from: span.t_ns, to: span.t_ns + span.dur_ns }),
        }
      : { text: "Zoom to its time", does: () => zoomTo({ from: row.start_ns, to: row.end_ns }) },
    by === "processor"
      ? null
      : { text: "List its waits", does: () => listWaits(app, { [by]: row.row }) },
    { text: "Copy name", does: () => copy(nameAndRest(row.label)[0]) },
    row.object ? { text: "Copy address", does: () => copy(row.object) } : null,
    when === null ? null : { text: "Copy time", does: () => copy(exact(when)) },
  ];
  return entries.filter((entry) => entry !== null);
}

/** Shows the hidden rows of a kind. */
export function showAll(app: App, by: PaneKind): void {
  const { hidden, only } = app.store.get();
  app.store.update({ hidden: others(hidden, by), only: others(only, by), inView: false });
}

/** Returns the rows of other kinds. */
function others(refs: readonly RowRef[], by: PaneKind): RowRef[] {
  return refs.filter((ref) => !ref.startsWith(`${by}:`));
}

function without(refs: readonly RowRef[], ref: RowRef): RowRef[] {
  return refs.filter((one) => one !== ref);
}

/** Returns rows with one of them moved beyond the next row of its kind; null if there is no next row. */
export function movedBy(refs: readonly RowRef[], ref: RowRef, step: 1 | -1): RowRef[] | null {
  const kind = `${ref.split(":")[0]}:`;
  const own = refs.filter((one) => one.startsWith(kind));
  const at = own.indexOf(ref);
  const next = own[at + step];
  if (at < 0 || next === undefined) return null;
  return refs.map((one) => (one === ref ? next : one === next ? ref : one));
}
