// The state of the page: the view. Only update() changes it, and everything drawn follows from it.

import { STATES, type Wait } from "./protocol";

/** A half-open span of time in ns since the start of the trace. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export type RowKind = "thread" | "object";
/** The kinds of rows in the timeline. A processor leads to the threads that ran on it. */
export type PaneKind = RowKind | "processor";

/** A row by its kind and number. */
export type RowRef = `${PaneKind}:${number}`;

/** Returns the numbers of the rows of a kind. */
export function rowsIn(refs: readonly RowRef[], by: PaneKind): number[] {
  const own = refs.filter((ref) => ref.startsWith(`${by}:`));
  return own.map((ref) => Number(ref.slice(by.length + 1)));
}

/** The thing that the user selected, if any. The server numbers rows and waits. */
export type Selection =
  | { readonly kind: "row"; readonly by: RowKind; readonly row: number }
  | {
      readonly kind: "span";
      readonly by: RowKind;
      readonly row: number;
      readonly lane: number;
      readonly at: number;
    }
  | { readonly kind: "wait"; readonly wait: number }
  | { readonly kind: "event"; readonly position: string; readonly at: number };

/** Filters of the event list: rows of a thread and an object, and text in the server's syntax. */
export interface Filter {
  readonly thread?: number;
  readonly object?: number;
  readonly pid?: string;
  readonly tid?: string;
  /** Objects by address or name. */
  readonly on?: string;
  readonly event?: string;
  readonly site?: string;
  readonly text?: string;
  /** Whether events of the scheduler are listed as well. */
  readonly readings?: string;
}

/**
 * Filters of the wait list: rows of a thread and an object, and a call site by part of its name or
 * its address.
 */
export interface WaitFilter {
  /** The least length in ns. */
  readonly least: number;
  /** The class of the waits; the empty text for all. */
  readonly kind: Wait["wait_class"] | "";
  readonly thread?: number;
  readonly object?: number;
  readonly site?: string;
}

/** The classes of waits, in the order of the states. */
export const WAIT_CLASSES = STATES.slice(1, STATES.indexOf("held")) as Wait["wait_class"][];

export type Theme = "auto" | "light" | "dark";
export type RowSort = "wait" | "hold" | "start" | "name" | "row";

/** Everything in the address. */
export interface View {
  /** The range that the timeline shows; null for the whole trace. */
  readonly range: Range | null;
  /** The mark: a range to measure, cut or count. */
  readonly mark: Range | null;
  /** A mark that the user kept, to compare another mark with it. */
  readonly other: Range | null;
  readonly selection: Selection | null;
  readonly filter: Filter;
  readonly waits: WaitFilter;
  /** Show only rows with this in their names. */
  readonly rows: string;
  readonly sort: RowSort;
  /** Groups with hidden rows: process numbers, and beginnings of names after them. */
  readonly folded: readonly string[];
  readonly pinned: readonly RowRef[];
  readonly hidden: readonly RowRef[];
  /** If there are any of a kind, only these rows of the kind are shown. */
  readonly only: readonly RowRef[];
  /** Whether rows are grouped by the beginnings of their names, and not by process. */
  readonly byName: boolean;
  /** Whether only rows that existed in the visible range are shown. */
  readonly inView: boolean;
  /** The open tab of the dock, and whether the dock is open. */
  readonly tab: string;
  readonly dock: boolean;
  /** Whether the details are shown at the side. */
  readonly side: boolean;
  /** Share of the height for the threads, 0 to 1. The locks have the rest. */
  readonly split: number;
  readonly arrows: boolean;
  readonly theme: Theme;
}

export const FIRST_VIEW: View = {
  range: null,
  mark: null,
  other: null,
  selection: null,
  filter: {},
  waits: { least: 0, kind: "contended" },
  rows: "",
  sort: "wait",
  folded: [],
  pinned: [],
  hidden: [],
  only: [],
  byName: false,
  inView: false,
  tab: "events",
  dock: true,
  side: true,
  split: 0.6,
  arrows: true,
  theme: "auto",
};

/** In a narrower window there is no room for the rows together with the parts beside and below them. */
const SMALL = 900;

/** Returns the first view of a page without a view in its address. */
export function firstView(width: number): View {
  return width < SMALL ? { ...FIRST_VIEW, dock: false, side: false } : FIRST_VIEW;
}

export type Listener<T> = (value: T, before: T) => void;

/** A value that changes. Listeners to a part of the value are called when that part changed. */
export class Store<T extends object> {
  private listeners = new Set<Listener<T>>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  /** Changes some fields, and calls all listeners once for all changes. */
  update(change: Partial<T>): void {
    const before = this.value;
    const keys = Object.keys(change) as (keyof T)[];
    if (keys.every((key) => Object.is(before[key], change[key]))) return;
    this.value = { ...before, ...change };
    for (const listener of [...this.listeners]) listener(this.value, before);
  }

  /** Calls back after each change. The returned function ends that. */
  subscribe(listener: Listener<T>): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls back at once, and whenever one of these fields changed. */
  watch<K extends keyof T>(keys: readonly K[], then: (value: T) => void): () => void {
    then(this.value);
    return this.subscribe((value, before) => {
      if (keys.some((key) => !Object.is(value[key], before[key]))) then(value);
    });
  }
}

export type ViewStore = Store<View>;
