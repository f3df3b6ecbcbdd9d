// Shares of time by pixel column. Each column of a lane is a stack: the height of a state is its share of the
// time.

/** A block of a lane: columns and heights in device pixels, with heights from the bottom. */
export interface Block {
  readonly layer: number;
  readonly x0: number;
  readonly x1: number;
  readonly bottom: number;
  readonly top: number;
}

/**
 * A short state that is alone gets this height, to be visible. Its neighbours are lower to make up
 * for that.
 */
const SEEN = 5;
/** Share of the height of an empty column that makes up for earlier heights that were too great. */
const FORGIVEN = 0.01;

export class Shares {
  private readonly shares: Float32Array;
  private readonly layers: number;
  private low: number;
  private high = 0;

  /**
   * @param order The layers from the bottom up.
   * @param seen The layer that is always drawn high enough to be seen.
   * @param rest The layer that fills the rest of the column.
   */
  constructor(
    readonly columns: number,
    private readonly order: readonly number[],
    private readonly seen = -1,
    private readonly rest = -1,
  ) {
    this.layers = Math.max(...order) + 1;
    this.shares = new Float32Array(columns * this.layers);
    this.low = columns;
  }

  /** Adds a share of the time between two places, in columns. */
  add(layer: number, from: number, to: number, share = 1): void {
    const first = Math.max(0, from);
    const last = Math.min(this.columns, to);
    if (!(last > first)) return;
    const end = Math.ceil(last);
    this.low = Math.min(this.low, Math.floor(first));
    this.high = Math.max(this.high, end);
    for (let column = Math.floor(first); column < end; column++) {
      const part = Math.min(last, column + 1) - Math.max(first, column);
      const at = column * this.layers + layer;
      this.shares[at] = (this.shares[at] ?? 0) + part * share;
    }
  }

  /** Returns the share of a layer in a column. */
  private share(layer: number, column: number): number {
    const added = this.shares[column * this.layers + layer] ?? 0;
    if (layer !== this.rest || added === 0) return added;
    let others = 0;
    for (const one of this.order) if (one !== layer) others += this.share(one, column);
    return Math.max(0, added - others);
  }

  /**
   * Returns the blocks of a lane of this height, and forgets all shares. Rounding errors of a
   * column's heights are carried to the next columns, so areas are proportional to times at any
   * width.
   */
  blocks(height: number): Block[] {
    const { order } = this;
    const found: Block[] = [];
    const open = new Map<number, Block>();
    const carried = new Float64Array(this.layers);
    let before = false;
    for (let column = this.low; column < this.high; column++) {
      const sum = order.reduce((all, layer) => all + this.share(layer, column), 0);
      const full = height / Math.max(1, sum);
      let bottom = 0;
      for (const layer of order) {
        const share = this.share(layer, column);
        const owed = carried[layer] ?? 0;
        const wanted = share * full + owed;
        let tall = share > 0 ? Math.max(0, Math.round(wanted)) : 0;
        if (layer === this.seen) {
          if (share > 0 && !before && wanted > -SEEN) tall = Math.max(tall, SEEN);
          before = share > 0;
        }
        const isLast = layer === order[order.length - 1];
        // A layer that fills the column is not made lower to make up for others.
        if (share > 0.999) tall = height;
        if (tall > height - bottom || (isLast && share > 0 && sum > 0.999)) tall = height - bottom;
        const forgiven = share > 0 ? 0 : FORGIVEN * height;
        carried[layer] = Math.max(
          -2 * SEEN,
          Math.min(1, wanted - tall + (owed < 0 ? forgiven : 0)),
        );
        const last = open.get(layer);
        const top = bottom + tall;
        if (last && last.bottom === bottom && last.top === top && last.x1 === column) {
          open.set(layer, { ...last, x1: column + 1 });
        } else if (tall > 0) {
          if (last) found.push(last);
          open.set(layer, { layer, x0: column, x1: column + 1, bottom, top });
        }
        bottom = top;
      }
    }
    found.push(...open.values());
    this.shares.fill(0, this.low * this.layers, this.high * this.layers);
    this.low = this.columns;
    this.high = 0;
    return found;
  }
}
