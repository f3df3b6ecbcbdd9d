// The panel of the critical path: the threads on the path, and its pieces in the order of time.
import type { App, Panel } from "../base/app";
import { h } from "../base/dom";
import { type Critical, PATH_KINDS, type PathLink, type PathThread } from "../base/protocol";
import { duration, exact, percent, plural } from "../base/units";
import { Asking } from "./parts/asking";
import { rowLabel } from "./parts/labels";
import { DataTable } from "./parts/table";

interface Part {
  readonly label: string;
  readonly row: number;
  readonly share: number;
  readonly run: number;
  readonly wake: number;
  /** Part of the time in the run queue; null if not known. */
  readonly queue: number | null;
  readonly wait: number;
}

interface Piece {
  readonly t: number;
  readonly dur: number;
  readonly kind: string;
  readonly row: number;
  readonly thread: string;
  readonly object: string;
  readonly count: number;
}

const KINDS: Readonly<Record<(typeof PATH_KINDS)[number], string>> = {
  run: "not waiting",
  wake: "until awake",
  wait: "waiting",
  create: "until it began",
};
const WIDTH = 1000;

export const CRITICAL: Panel = {
  id: "critical",
  title: "Critical path",
  help: "The chain of waits and wake-ups from the end of the run to its beginning",
  mount,
};

function mount(element: HTMLElement, app: App): void {
  const totals = h("p", { class: "totals" });
  const threads = threadTable(app);
  const pieces = pieceTable(app);
  const asking = new Asking<{ critical: Critical; pieces: Piece[] }>({
    app,
    panel: element,
    ask: async (signal) => {
      const critical = await app.source.json("critical", {}, signal);
      return { critical, pieces: await piecesOf(app, signal) };
    },
    show: (answer) => {
      const { path, thread_rows } = answer.critical;
      const total = Math.max(1, path.end_ns - path.start_ns);
      const links = through(path.links).slice(0, 3);
      totals.textContent = [
        `${duration(total)} from ${exact(path.start_ns)} to ${exact(path.end_ns)}`,
        queued(path.threads),
        links.length ? `from thread to thread through ${links.join(", ")}` : "",
        path.resolution_ns ? `waits below ${duration(path.resolution_ns)} are left out` : "",
      ]
        .filter(Boolean)
        .join(" · ");
      threads.set(
        path.threads.map((part, at) => ({
          label: `${part.tid} ${part.name}`.trim(),
          row: thread_rows[at] ?? 0,
          share: (part.run_ns + part.latency_ns + part.open_ns) / total,
          run: part.run_ns,
          wake: part.latency_ns,
          queue: part.ready_ns,
          wait: part.open_ns,
        })),
      );
      pieces.set(answer.pieces);
    },
  });
  element.append(
    h(
      "div",
      { class: "panel-column" },
      h("div", { class: "panel-bar" }, threads.saver),
      asking.element,
      totals,
      h("div", { class: "panel-split even" }, threads.element, pieces.element),
    ),
  );
  asking.renew();
}

/**
 * Returns the links of the path, the most frequent first. All ends of threads are one entry; each
 * lock is an entry.
 */
export function through(links: readonly PathLink[]): string[] {
  const ends = links
    .filter((link) => link.kind === "thread")
    .reduce((sum, link) => sum + link.count, 0);
  const counts = links
    .filter((link) => link.kind !== "thread")
    .map(({ kind, name, object, count }): [string, number] => [`${kind} ${name || object}`, count]);
  if (ends) counts.push(["ends of threads", ends]);
  const sorted = counts.sort(([, a], [, b]) => b - a);
  return sorted.map(([what, count]) => `${what} (${plural(count, "time")})`);
}

/** Returns the part of the path in the run queue; empty if not known. */
export function queued(threads: readonly PathThread[]): string {
  const known = threads.filter((part) => part.ready_ns !== null);
  const ready = known.reduce((sum, part) => sum + (part.ready_ns ?? 0), 0);
  if (!ready) return "";
  const bound = known.length < threads.length ? "at least " : "";
  return `${bound}${duration(ready)} through the run queue`;
}

function threadTable(app: App): DataTable<Part> {
  const time = (id: "run" | "wake" | "wait", title: string, help: string) => ({
    id,
    title,
    help,
    width: "90px",
    numeric: true,
    value: (part: Part) => part[id],
    text: (part: Part) => (part[id] ? duration(part[id]) : "–"),
  });
  return new DataTable<Part>({
    label: "Threads of the critical path",
    columns: [
      { id: "label", title: "Thread", width: "minmax(120px, 1fr)", value: (part) => part.label },
      {
        id: "share",
        title: "Share",
        width: "90px",
        numeric: true,
        value: (part) => part.share,
        text: (part) => percent(part.share),
        bar: (part) => part.share,
      },
      time("run", "Not waiting", "The thread ran, was ready to run, or slept elsewhere"),
      time("wake", "Until awake", "From the wake-up until the thread went on"),
      {
        id: "queue",
        title: "Run queue",
        help: "Part of that time: it could have run and had no processor; ? if the trace does not say",
        width: "90px",
        numeric: true,
        value: (part) => part.queue ?? -1,
        text: (part) => (part.queue === null ? "?" : part.queue ? duration(part.queue) : "–"),
      },
      time("wait", "Waiting", "The thread waited, and no other thread was the cause"),
    ],
    sort: "share",
    open: (part) => app.store.update({ selection: { kind: "row", by: "thread", row: part.row } }),
  });
}

function pieceTable(app: App): DataTable<Piece> {
  return new DataTable<Piece>({
    label: "Pieces of the critical path",
    columns: [
      {
        id: "t",
        title: "Time",
        width: "140px",
        numeric: true,
        least: true,
        value: (piece) => piece.t,
        text: (piece) => exact(piece.t),
      },
      {
        id: "dur",
        title: "Length",
        width: "84px",
        numeric: true,
        value: (piece) => piece.dur,
        text: (piece) => duration(piece.dur),
      },
      {
        id: "thread",
        title: "Thread",
        width: "minmax(140px, 1fr)",
        value: (piece) => piece.thread,
      },
      { id: "kind", title: "What", width: "130px", value: (piece) => piece.kind },
      {
        id: "object",
        title: "Through",
        width: "minmax(90px, 1fr)",
        value: (piece) => piece.object,
      },
    ],
    sort: "t",
    open: (piece) => {
      app.store.update({ selection: { kind: "row", by: "thread", row: piece.row } });
      app.zoomTo({ from: piece.t, to: piece.t + Math.max(1, piece.dur) });
    },
  });
}

async function piecesOf(app: App, signal: AbortSignal): Promise<Piece[]> {
  const found = await app.source.table("path", { width: WIDTH }, signal);
  const name = async (by: "thread" | "object", row: number) => (row ? rowLabel(app, by, row) : "");
  return Promise.all(
    Array.from({ length: found.length }, async (_, at) => ({
      t: found.t_ns[at] ?? 0,
      dur: found.dur_ns[at] ?? 0,
      kind: KINDS[PATH_KINDS[found.kind[at] ?? 0] ?? "run"],
      row: found.row[at] ?? 0,
      thread: await name("thread", found.row[at] ?? 0),
      object: await name("object", found.object_row[at] ?? 0),
      count: found.count[at] ?? 1,
    })),
  );
}
