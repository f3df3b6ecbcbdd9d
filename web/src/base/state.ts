// The state of the page: what is looked at. Changed by update() only; everything drawn follows from it.

import { STATES, type Wait } from "./protocol";

/** A half-open span of time in ns since the start of the trace. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export type RowKind = "thread" | "object";
/** What has rows of its own in the timeline; a processor leads to the threads that had it. */
export type PaneKind = RowKind | "processor";

/** A row by its kind and number. */
export type RowRef = `${PaneKind}:${number}`;

/** Returns the numbers of the rows of a kind. */
export function rowsIn(refs: readonly RowRef[], by: PaneKind): number[] {
  const own = refs.filter((ref) => ref.startsWith(`${by}:`));
  return own.map((ref) => Number(ref.slice(by.length + 1)));
}

/** What the user picked, if anything. Rows and waits are the numbers the server gives them. */
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

/** Filters of the event list: rows of a thread and an object, and text as the server takes it. */
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
  /** Readings of the scheduler are listed as well. */
  readonly readings?: string;
}

/** Which waits are listed: rows of a thread and an object, and a call site by a part of its name or its address. */
export interface WaitFilter {
  /** How long they are at least, in ns. */
  readonly least: number;
  /** Their class; the empty text for all. */
  readonly kind: Wait["wait_class"] | "";
  readonly thread?: number;
  readonly object?: number;
  readonly site?: string;
}

/** The classes of waits, as states have them. */
export const WAIT_CLASSES = STATES.slice(1, STATES.indexOf("held")) as Wait["wait_class"][];

export type Theme = "auto" | "light" | "dark";
export type RowSort = "wait" | "hold" | "start" | "name" | "row";

/** Everything that the address holds. */
export interface View {
  /** What the timeline shows; null is the whole trace. */
  readonly range: Range | null;
  /** What was marked to be measured, cut or counted. */
  readonly mark: Range | null;
  /** A mark that was kept, to compare another with it. */
  readonly other: Range | null;
  readonly selection: Selection | null;
  readonly filter: Filter;
  readonly waits: WaitFilter;
  /** Only rows whose name contains this are shown. */
  readonly rows: string;
  readonly sort: RowSort;
  /** Groups whose rows are not shown: processes by their numbers, and beginnings of names behind these. */
  readonly folded: readonly string[];
  readonly pinned: readonly RowRef[];
  readonly hidden: readonly RowRef[];
  /** If there are any of a kind, no others of that kind are shown. */
  readonly only: readonly RowRef[];
  /** Rows are grouped by how their names begin, and not by process. */
  readonly byName: boolean;
  /** Only rows that lived in what is seen are shown. */
  readonly inView: boolean;
  /** The tab of the dock, and whether the dock is open. */
  readonly tab: string;
  readonly dock: boolean;
  /** Whether the details are shown at the side. */
  readonly side: boolean;
  /** Share of the height that the threads have, the locks having the rest: 0 to 1. */
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

/** Below this width of the window there is room for the rows, or for what lies beside and below them. */
const SMALL = 900;

/** Returns the view that a page opens with where the address says nothing. */
export function firstView(width: number): View {
  return width < SMALL ? { ...FIRST_VIEW, dock: false, side: false } : FIRST_VIEW;
}

export type Listener<T> = (value: T, before: T) => void;

/** One value that changes; listeners to a part of it are called when that part changed. */
export class Store<T extends object> {
  private listeners = new Set<Listener<T>>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  /** Changes some fields and calls all listeners, once, whether few or many fields changed. */
  update(change: Partial<T>): void {
    const before = this.value;
    const keys = Object.keys(change) as (keyof T)[];
    if (keys.every((key) => Object.is(before[key], change[key]))) return;
    this.value = { ...before, ...change };
    for (const listener of [...this.listeners]) listener(this.value, before);
  }

  /** Calls back after each change; the function returned ends that. */
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
