// Answers from the data in the page itself. The one-file page asks no server.
import {
  type Answer,
  type Asked,
  type JsonEndpoint,
  RequestFailed,
  type Source,
  type TableEndpoint,
} from "../base/api";
import type { Columns } from "../base/columns";
import type {
  ArrowsColumns,
  ArrowsParameters,
  ContentionParameters,
  DiffParameters,
  EventsColumns,
  EventsParameters,
  Findings,
  FlameParameters,
  Hold,
  HoldParameters,
  Live,
  ObjectRef,
  OverTimeParameters,
  OverviewColumns,
  PathColumns,
  RowsColumns,
  RowsParameters,
  SearchParameters,
  SpansColumns,
  SpansParameters,
  ThreadRef,
  TraceInfo,
  WaitParameters,
  WaitsParameters,
} from "../base/protocol";
import { FLAGS, STATES } from "../base/protocol";
import type { PaneKind } from "../base/state";
import { type Chosen, eventsOf } from "./events";
import { take, where } from "./pick";
import { rowsOf } from "./rows";
import { search } from "./search";
import { drawn, indexSpans, type SpanIndex } from "./spans";
import { Packed, type Waits } from "./store";
import { waitsOf } from "./waits";

export class EmbeddedSource implements Source {
  readonly served = false;
  private readonly packed = new Packed();
  private readonly indices = new Map<PaneKind, Promise<SpanIndex>>();

  async json<E extends JsonEndpoint>(endpoint: E, parameters: Asked<E>): Promise<Answer<E>> {
    return (await this.answer(endpoint, parameters)) as Answer<E>;
  }

  async table<E extends TableEndpoint>(
    endpoint: E,
    parameters: Asked<E>,
    signal?: AbortSignal,
  ): Promise<Columns<Answer<E>>> {
    const found = await this.columns(endpoint, parameters);
    signal?.throwIfAborted();
    return found as Columns<Answer<E>>;
  }

  post(): Promise<never> {
    return Promise.reject(new RequestFailed(404, "This page has no server: use ptt ui for this"));
  }

  live(changed: (live: Live) => void): () => void {
    void this.packed.json<TraceInfo>("trace").then((trace) => {
      const { state, end_ns, events, lost, threads, objects, detail } = trace;
      changed({
        version: 1,
        state,
        end_ns,
        events,
        lost,
        threads,
        objects,
        detail,
        analysed: true,
        message: "",
      });
    });
    return () => {};
  }

  private answer(endpoint: JsonEndpoint, asked: unknown): Promise<unknown> {
    switch (endpoint) {
      case "wait":
        return this.wait((asked as WaitParameters).id);
      case "hold":
        return this.hold(asked as HoldParameters);
      case "contention":
        return this.contention(asked as ContentionParameters);
      case "flame":
        return this.flame(asked as FlameParameters);
      case "diff": {
        const { by, ...part } = asked as DiffParameters;
        return this.ofThePart(`diff-${by ?? "site"}`, part);
      }
      case "over_time":
        return this.ofThePart("over-time", asked as OverTimeParameters);
      case "statistics":
        return this.ofThePart("statistics", asked as ContentionParameters);
      case "search":
        return this.search(asked as SearchParameters);
      default:
        return this.packed.json(endpoint);
    }
  }

  private columns(endpoint: TableEndpoint, asked: unknown): Promise<unknown> {
    switch (endpoint) {
      case "rows":
        return this.rows(asked as RowsParameters);
      case "spans":
        return this.spans(asked as SpansParameters);
      case "arrows":
        return this.arrows(asked as ArrowsParameters);
      case "events":
        return this.events(asked as EventsParameters);
      case "waits":
        return this.waits(asked as WaitsParameters);
      case "path":
        return this.packed.table<PathColumns>("path");
      default:
        return this.packed.table<OverviewColumns>("overview");
    }
  }

  private async rows(asked: RowsParameters) {
    return rowsOf(await this.packed.table<RowsColumns>(`rows-${asked.by}`), asked);
  }

  private async spans(asked: SpansParameters) {
    const table = await this.packed.table<SpansColumns>(`spans-${asked.by}`);
    let index = this.indices.get(asked.by);
    if (!index) {
      index = Promise.resolve(indexSpans(table));
      this.indices.set(asked.by, index);
    }
    const { first_ns, end_ns } = await this.packed.json<TraceInfo>("trace");
    const range = {
      from: asked.from_ns ?? first_ns,
      to: asked.to_ns ?? end_ns,
      width: asked.width ?? 1000,
    };
    return drawn(table, await index, asked.rows, range);
  }

  private async arrows(asked: ArrowsParameters) {
    const table = await this.packed.table<ArrowsColumns>("arrows");
    const rows = new Set(asked.rows);
    const [from, to] = [asked.from_ns ?? 0, asked.to_ns ?? Number.POSITIVE_INFINITY];
    const found = where(table.length, (at) => {
      const [a, b] = [table.from_ns[at] ?? 0, table.to_ns[at] ?? 0];
      const shown = rows.has(table.to_row[at] ?? 0) || rows.has(table.from_row[at] ?? 0);
      return shown && Math.max(a, b) >= from && Math.min(a, b) < to;
    });
    return take<ArrowsColumns>(table, found.slice(0, asked.limit ?? 500));
  }

  private async events(asked: EventsParameters) {
    const chosen = await this.packed.json<Chosen>("chosen");
    return eventsOf(await this.packed.table<EventsColumns>("events"), asked, chosen);
  }

  private async wait(id: number) {
    const { waits, chains } = await this.packed.json<Waits>("waits");
    const chain = (chains[id] ?? [])
      .map((number) => waits[number])
      .filter((wait) => wait !== undefined);
    if (!chain.length)
      throw new RequestFailed(404, "This wait is not in the file: only the longest waits are");
    return { chain };
  }

  private async waits(asked: WaitsParameters) {
    const { waits } = await this.packed.json<Waits>("waits");
    const { first_ns, end_ns } = await this.packed.json<TraceInfo>("trace");
    return waitsOf(Object.values(waits), asked, { from: first_ns, to: end_ns + 1 });
  }

  /** The file has only the drawn spans of holds. Call sites are from the events in the file. */
  private async hold({ row, lane, t_ns }: HoldParameters): Promise<Hold> {
    const table = await this.packed.table<SpansColumns>("spans-thread");
    const at = where(
      table.length,
      (n) =>
        table.row[n] === row &&
        table.lane[n] === lane &&
        (table.t_ns[n] ?? 0) <= t_ns &&
        (table.t_ns[n] ?? 0) + (table.dur_ns[n] ?? 0) >= t_ns,
    )[0];
    if (at === undefined) throw new RequestFailed(404, "nothing was held at that place and time");
    const begin = table.t_ns[at] ?? 0;
    const end = begin + (table.dur_ns[at] ?? 0);
    const object = table.other[at] ?? 0;
    return {
      t_ns: begin,
      dur_ns: end - begin,
      open: Boolean((table.flags[at] ?? 0) & FLAGS.open),
      mode: table.state[at] === STATES.indexOf("shared") ? "shared" : "exclusive",
      max_waiters: table.depth[at] ?? 0,
      thread: await this.threadRef(row),
      object: await this.objectRef(object),
      site: await this.siteAt(row, object, begin),
      stack: [], // the file has no stacks of holds
      release_site: await this.siteAt(row, object, end),
    };
  }

  private async siteAt(thread: number, object: number, t_ns: number): Promise<string> {
    const found = await this.events({ t_ns, count: 1, thread: [thread], object: [object] });
    return found.ts_ns[0] === t_ns ? (found.site[0] ?? "") : "";
  }

  private async threadRef(row: number): Promise<ThreadRef> {
    const found = await this.rows({ by: "thread", rows: [row] });
    return {
      row,
      pid: found.pid[0] ?? 0,
      tid: found.tid[0] ?? 0,
      name: found.name[0] ?? "",
      label: found.label[0] ?? "?",
    };
  }

  private async objectRef(row: number): Promise<ObjectRef> {
    const found = await this.rows({ by: "object", rows: [row] });
    return {
      row,
      pid: found.pid[0] ?? 0,
      kind: found.kind[0] ?? "",
      object: found.object[0] ?? "",
      name: found.name[0] ?? "",
      label: found.label[0] ?? "?",
      generation: 1,
    };
  }

  private contention(asked: ContentionParameters) {
    return this.ofThePart(`contention-${(asked.by ?? "object").replace(",", "-")}`, asked);
  }

  private flame(asked: FlameParameters) {
    return this.ofThePart(`flame-${asked.show ?? "waits"}`, asked);
  }

  /** The export has sums of the whole exported part, and not of smaller parts. */
  private ofThePart(name: string, asked: { from_ns?: number; to_ns?: number }): Promise<unknown> {
    if (asked.from_ns === undefined && asked.to_ns === undefined) return this.packed.json(name);
    const line = "This page only has sums of everything in it: for sums of a part, use ptt ui";
    return Promise.reject(new RequestFailed(404, line));
  }

  private async search({ q, limit }: SearchParameters) {
    const searched = {
      threads: await this.packed.table<RowsColumns>("rows-thread"),
      objects: await this.packed.table<RowsColumns>("rows-object"),
      events: await this.packed.table<EventsColumns>("events"),
      findings: await this.packed.json<Findings>("findings"),
    };
    return search(searched, q, limit ?? 50);
  }
}
