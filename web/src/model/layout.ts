// The positions of rows: their heights, their groups by process, and the rows at a height.
import type { Range } from "../base/state";
import { nameAndRest } from "../base/text";
import type { RowData } from "./rows";

/** Heights in CSS pixels. */
export const HEADER = 22;
const STATE_LANE = 17;
const HOLD_LANE = 13;
const QUEUE_LANE = 12;
const PADDING = 5;
/** Holds nested deeper share the last lane: a stack of ten locks must not fill the screen. */
export const MOST_LANES = 6;

export type Item =
  | {
      readonly kind: "row";
      readonly y: number;
      readonly height: number;
      readonly data: RowData;
      readonly pinned: boolean;
    }
  | {
      readonly kind: "group";
      readonly y: number;
      readonly height: number;
      /** The key for folding the group. */
      readonly key: string;
      readonly process: number;
      /** The beginning of the names of its rows; empty for a process. */
      readonly name: string;
      readonly rows: number;
      readonly folded: boolean;
      readonly pinned: false;
    };

/** Which rows are shown, and how. Lists have numbers of rows of one kind. */
export interface Arrangement {
  /** Groups with hidden rows. */
  readonly folded: readonly string[];
  /** Rows that stay at the top, in this order. */
  readonly pinned: readonly number[];
  readonly hidden: readonly number[];
  /** If the list is not empty, only these rows are shown. */
  readonly only: readonly number[];
  /** Whether rows are grouped by the beginnings of their names, and not by process. */
  readonly byName: boolean;
  /** Only rows that existed in this range are shown. */
  readonly alive: Range | null;
}

export const PLAIN: Arrangement = {
  folded: [],
  pinned: [],
  hidden: [],
  only: [],
  byName: false,
  alive: null,
};

/** An item, and its place below the top of the visible part. */
export interface Placed {
  readonly item: Item;
  readonly y: number;
}

/** Returns the beginning of a name that other names may share: the part before the number or offset. */
export function beginningOf(label: string): string {
  const [name] = nameAndRest(label);
  return name.replace(/(\+0x[0-9a-f]+|\[\d+\]|\d+)$/i, "");
}

/** Returns the group of a row. */
export function groupOf(row: RowData, byName: boolean): string {
  return byName ? `${row.process}/${beginningOf(row.label)}` : String(row.process);
}

export class Layout {
  readonly items: readonly Item[];
  readonly height: number;
  /** Height of the rows that stay at the top. They are the first items. */
  readonly pinnedHeight: number;
  /** Number of rows that are neither shown nor in a folded group. */
  readonly left: number;
  private readonly pinnedCount: number;
  private readonly byRow = new Map<number, number>();

  /**
   * Groups by process are made if there are several processes, groups by name if several rows share
   * the name.
   */
  constructor(rows: readonly RowData[], arrangement: Partial<Arrangement> = {}) {
    const { folded, pinned, hidden, only, byName, alive } = { ...PLAIN, ...arrangement };
    const items: Item[] = [];
    let y = 0;
    const add = (data: RowData, isPinned: boolean) => {
      const height = rowHeight(data);
      this.byRow.set(data.row, items.length);
      items.push({ kind: "row", y, height, data, pinned: isPinned });
      y += height;
    };
    const known = new Map(rows.map((row) => [row.row, row]));
    for (const row of pinned) {
      const data = known.get(row);
      if (data) add(data, true);
    }
    this.pinnedHeight = y;
    this.pinnedCount = items.length;
    const [without, sole] = [new Set([...hidden, ...pinned]), new Set(only)];
    const groups = new Map<string, RowData[]>();
    let shown = items.length;
    for (const row of rows) {
      if (without.has(row.row) || (sole.size && !sole.has(row.row))) continue;
      if (alive && (row.start_ns >= alive.to || row.end_ns < alive.from)) continue;
      shown++;
      const key = groupOf(row, byName);
      const group = groups.get(key);
      if (group) group.push(row);
      else groups.set(key, [row]);
    }
    this.left = rows.length - shown;
    for (const [key, members] of groups) {
      const [first] = members;
      const isGroup = byName ? members.length > 1 : groups.size > 1;
      const isFolded = isGroup && folded.includes(key);
      if (isGroup && first) {
        const name = byName ? beginningOf(first.label) : "";
        const about = { key, process: first.process, name, rows: members.length };
        items.push({ kind: "group", y, height: HEADER, ...about, folded: isFolded, pinned: false });
        y += HEADER;
      }
      if (!isFolded) for (const data of members) add(data, false);
    }
    this.items = items;
    this.height = y;
  }

  /** Returns the visible items in drawing order. Pinned items come last if they stay at the top. */
  seen(top: number, height: number, sticks: boolean): readonly Placed[] {
    const placed = (item: Item) => ({ item, y: item.y - top });
    if (!sticks || !this.pinnedCount) return this.between(top, top + height).map(placed);
    const below = this.between(top + this.pinnedHeight, top + height);
    const pinned = this.items.slice(0, this.pinnedCount).map((item) => ({ item, y: item.y }));
    return [...below.filter((item) => !item.pinned).map(placed), ...pinned];
  }

  /** Returns the item at a height, or null below the last item. */
  at(y: number): Item | null {
    if (y < 0 || y >= this.height) return null;
    return this.items[this.indexAt(y)] ?? null;
  }

  /** Returns the visible items between two heights. */
  between(top: number, bottom: number): readonly Item[] {
    if (!this.items.length || bottom <= 0 || top >= this.height) return [];
    const first = this.indexAt(Math.max(0, top));
    const last = this.indexAt(Math.min(this.height - 1, Math.max(0, bottom - 1)));
    return this.items.slice(first, last + 1);
  }

  /** Returns the item of this layout for an item of another layout, or null. */
  same(item: Item): Item | null {
    if (item.kind === "row") return this.find(item.data.row);
    const here = this.items.find((one) => one.kind === "group" && one.key === item.key);
    return here ?? null;
  }

  /** Returns the index of an item among the items. */
  placeOf(item: Item): number {
    return this.indexAt(item.y);
  }

  /** Returns the index of a row among the items, or -1 if the row is not shown. */
  indexOf(row: number): number {
    return this.byRow.get(row) ?? -1;
  }

  /** Returns the item of a row, or null if the row is folded, filtered out or not loaded. */
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
 * Returns the share of a height for the first of two parts. Each part gets its share, but a part
 * that does not need its share gives the rest to the other part. Height that neither needs is below
 * both.
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

/** Returns the number of drawn lanes of a row. */
export function lanesOf(row: RowData): number {
  if (row.kind === "processor") return 1;
  return Math.max(row.kind === "thread" ? 1 : 2, Math.min(MOST_LANES, row.lanes));
}

/**
 * Returns the place of a lane below the top of its row. A thread has its state on top and nested
 * holds below. An object has its holders on top and the queue below. A processor has one lane.
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
