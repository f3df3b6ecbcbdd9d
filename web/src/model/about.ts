// Which arrows the selection is about.

/** Says whether an arrow is one of those that the selection is about. */
export type About = (arrow: {
  readonly wait: number;
  readonly object: number;
  readonly threads: readonly number[];
}) => boolean;
