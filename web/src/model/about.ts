// The arrows that belong to the selection.

/** Returns whether an arrow belongs to the selection. */
export type About = (arrow: {
  readonly wait: number;
  readonly object: number;
  readonly threads: readonly number[];
}) => boolean;
