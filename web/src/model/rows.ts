// The rows of one kind, sorted and filtered by the user. They are fetched in pieces, the first piece at once.
import { isAbort, NotYet, type Source } from "../base/api";
import type { Columns } from "../base/columns";
import type { RowsColumns } from "../base/protocol";
import { Signal } from "../base/signal";
import type { PaneKind, RowSort } from "../base/state";

/** A thread, an object with all its generations, or a processor. */
export interface RowData {
  readonly by: PaneKind;
  readonly row: number;
  readonly kind: string;
  readonly label: string;
  readonly process: number;
  readonly pid: number;
  readonly tid: number;
  readonly object: string;
  readonly generations: number;
  readonly threads: number;
  readonly lanes: number;
  readonly start_ns: number;
  readonly end_ns: number;
  readonly waits: number;
  readonly wait_ns: number;
  readonly wait_max_ns: number;
  readonly idle_ns: number;
  readonly other_ns: number;
  readonly holds: number;
  readonly hold_ns: number;
  readonly caused_ns: number;
  readonly max_waiters: number;
}

const FIRST_PIECE = 500;
const PIECE = 10_000;
/** More rows than anybody scrolls through. The filter and the search find the others. */
const MOST = 200_000;

export class Rows {
  readonly changed = new Signal();
  /** How many rows match, loaded or not. */
  total = 0;
  /** The filter of the loaded rows. */
  filter = "";
  private list: RowData[] = [];
  /** Rows that need names before they are loaded. */
  private nameless = new Set<number>();
  private known = new Map<number, RowData>();
  private asking: AbortController | null = null;
  private asked = "";

  constructor(
    readonly by: PaneKind,
    private readonly source: Source,
    private readonly failed: (error: unknown) => void,
  ) {}

  all(): readonly RowData[] {
    return this.list;
  }

  /** Returns a row by its number if it was ever fetched, even if the filter hides it. */
  get(row: number): RowData | undefined {
    return this.known.get(row);
  }

  /** Returns the name of a row; empty if it is not loaded yet. */
  name(row: number): string {
    const known = this.known.get(row);
    if (known || !row) return known?.label ?? "";
    if (!this.nameless.size) queueMicrotask(() => void this.learn());
    this.nameless.add(row);
    return "";
  }

  private async learn(): Promise<void> {
    const rows = [...this.nameless].slice(0, FIRST_PIECE);
    try {
      const table = await this.source.table("rows", { by: this.by, rows });
      const found = rowsOf(this.by, table);
      for (const row of found) this.known.set(row.row, row);
      if (found.length) this.changed.emit();
    } catch (error) {
      if (!isAbort(error) && !(error instanceof NotYet)) this.failed(error);
    } finally {
      this.nameless.clear();
    }
  }

  /**
   * Fetches all rows anew. The old rows stay until the first new rows come. If the question is the
   * same again, the old rows stay until as many new rows came, so that nobody loses the place in
   * the list.
   */
  async load(sort: RowSort, filter: string): Promise<void> {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    const asked = `${sort} ${filter}`;
    const enough = asked === this.asked ? this.list.length : 0;
    this.asked = asked;
    const question = { by: this.by, sort, ...(filter ? { filter } : {}) };
    let list: RowData[] = [];
    try {
      for (;;) {
        const limit = list.length ? PIECE : FIRST_PIECE;
        const piece = { ...question, offset: list.length, limit };
        const table = await this.source.table("rows", piece, asking.signal);
        if (this.asking !== asking) return;
        list = list.concat(rowsOf(this.by, table));
        this.total = Number(table.metadata.get("total") ?? list.length);
        for (const row of list) this.known.set(row.row, row);
        const done = !table.length || list.length >= Math.min(this.total, MOST);
        if (done || list.length >= enough) {
          this.list = list;
          this.filter = filter;
          this.changed.emit();
        }
        if (done) return;
      }
    } catch (error) {
      if (!isAbort(error) && !(error instanceof NotYet)) this.failed(error);
    }
  }

  /** Fetches a row that the filter or the limit left out; null if there is none. */
  async one(row: number): Promise<RowData | null> {
    const known = this.known.get(row);
    if (known) return known;
    const table = await this.source.table("rows", { by: this.by, rows: [row] });
    const found = rowsOf(this.by, table)[0] ?? null;
    if (found) this.known.set(row, found);
    return found;
  }
}

/** Returns the rows of a table. */
export function rowsOf(by: PaneKind, table: Columns<RowsColumns>): RowData[] {
  return Array.from({ length: table.length }, (_, at) => {
    const number = (column: ArrayLike<number>) => column[at] ?? 0;
    return {
      by,
      row: number(table.row),
      kind: table.kind[at] ?? "",
      label: table.label[at] ?? "",
      process: number(table.process),
      pid: number(table.pid),
      tid: number(table.tid),
      object: table.object[at] ?? "",
      generations: number(table.generations),
      threads: number(table.threads),
      lanes: number(table.lanes),
      start_ns: number(table.start_ns),
      end_ns: number(table.end_ns),
      waits: number(table.waits),
      wait_ns: number(table.wait_ns),
      wait_max_ns: number(table.wait_max_ns),
      idle_ns: number(table.idle_ns),
      other_ns: number(table.other_ns),
      holds: number(table.holds),
      hold_ns: number(table.hold_ns),
      caused_ns: number(table.caused_ns),
      max_waiters: number(table.max_waiters),
    };
  });
}
