// Where rows are: their heights, their groups by process, and which of them are at a height.
import type { RowData } from "./rows";

/** Heights in CSS pixels. */
export const HEADER = 22;
const STATE_LANE = 17;
const HOLD_LANE = 13;
const QUEUE_LANE = 12;
const PADDING = 5;
/** Deeper nested holds share the last lane: a stack of ten locks must not fill the screen. */
export const MOST_LANES = 6;

export type Item =
  | { readonly kind: "row"; readonly y: number; readonly height: number; readonly data: RowData }
  | {
      readonly kind: "group";
      readonly y: number;
      readonly height: number;
      readonly process: number;
      readonly rows: number;
      readonly folded: boolean;
    };

export class Layout {
  readonly items: readonly Item[];
  readonly height: number;
  private readonly byRow = new Map<number, number>();

  /** @param folded Processes whose rows are not shown. Groups are made when there are several processes. */
  constructor(rows: readonly RowData[], folded: readonly number[]) {
    const groups = new Map<number, RowData[]>();
    for (const row of rows) {
      const group = groups.get(row.process);
      if (group) group.push(row);
      else groups.set(row.process, [row]);
    }
    const items: Item[] = [];
    let y = 0;
    for (const [process, members] of groups) {
      const hidden = groups.size > 1 && folded.includes(process);
      if (groups.size > 1) {
        const group = { process, rows: members.length, folded: hidden };
        items.push({ kind: "group", y, height: HEADER, ...group });
        y += HEADER;
      }
      if (hidden) continue;
      for (const data of members) {
        const height = rowHeight(data);
        this.byRow.set(data.row, items.length);
        items.push({ kind: "row", y, height, data });
        y += height;
      }
    }
    this.items = items;
    this.height = y;
  }

  /** Returns the item at a height, or null below the last. */
  at(y: number): Item | null {
    if (y < 0 || y >= this.height) return null;
    return this.items[this.indexAt(y)] ?? null;
  }

  /** Returns the items that are seen between two heights. */
  between(top: number, bottom: number): readonly Item[] {
    if (!this.items.length || bottom <= 0 || top >= this.height) return [];
    const first = this.indexAt(Math.max(0, top));
    const last = this.indexAt(Math.min(this.height - 1, Math.max(0, bottom - 1)));
    return this.items.slice(first, last + 1);
  }

  /** Returns what an item of another layout is in this one, or null. */
  same(item: Item): Item | null {
    if (item.kind === "row") return this.find(item.data.row);
    const here = this.items.find((one) => one.kind === "group" && one.process === item.process);
    return here ?? null;
  }

  /** Returns the place of an item among the items. */
  placeOf(item: Item): number {
    return this.indexAt(item.y);
  }

  /** Returns the place of a row among the items, or -1 when it is not shown. */
  indexOf(row: number): number {
    return this.byRow.get(row) ?? -1;
  }

  /** Returns the item of a row, or null when it is folded, filtered out or not loaded. */
  find(row: number): Item | null {
    return this.items[this.indexOf(row)] ?? null;
  }

  private indexAt(y: number): number {
    let low = 0;
    let high = this.items.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.items[middle]?.y ?? 0) <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/**
 * Returns the share of a height that the first of two parts gets: its share of it, but of what one
 * cannot fill the other has the rest. What neither can fill lies below both.
 */
export function dividedBy(first: number, second: number, whole: number, share: number): number {
  if (first + second <= whole) return first / whole;
  if (first < whole * share) return first / whole;
  if (second < whole * (1 - share)) return 1 - second / whole;
  return share;
}

export function rowHeight(row: RowData): number {
  const lowest = row.kind === "thread" ? lanesOf(row) - 1 : 0;
  const { top, height } = laneBox(row, lowest);
  return top + height + PADDING;
}

/** Returns how many lanes of a row are drawn. */
export function lanesOf(row: RowData): number {
  if (row.kind === "processor") return 1;
  return Math.max(row.kind === "thread" ? 1 : 2, Math.min(MOST_LANES, row.lanes));
}

/**
 * Returns where a lane is below the top of its row. A thread has its state on top and nested holds
 * below; an object has its holders on top, and the queue below that; a processor has one lane.
 */
export function laneBox(row: RowData, lane: number): { top: number; height: number } {
  const at = Math.min(lane, lanesOf(row) - 1);
  if (row.kind === "processor") return { top: 2, height: STATE_LANE };
  if (row.kind === "thread") {
    if (at === 0) return { top: 2, height: STATE_LANE };
    return { top: 2 + STATE_LANE + 1 + (at - 1) * HOLD_LANE, height: HOLD_LANE - 1 };
  }
  const holds = lanesOf(row) - 1;
  const hold = holds > 1 ? HOLD_LANE : STATE_LANE;
  if (at === 0) return { top: 2 + holds * hold + 1, height: QUEUE_LANE };
  return { top: 2 + (at - 1) * hold, height: hold - 1 };
}

/** Returns the lane at a height below the top of a row, or -1 between lanes. */
export function laneAt(row: RowData, y: number): number {
  for (let lane = 0; lane < lanesOf(row); lane++) {
    const { top, height } = laneBox(row, lane);
    if (y >= top && y < top + height + 1) return lane;
  }
  return -1;
}
