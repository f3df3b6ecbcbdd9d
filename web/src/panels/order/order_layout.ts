// Places the nodes of a directed graph in layers. Arrows lead from left to right, apart from arrows of
// cycles.

export interface Link {
  readonly from: number;
  readonly to: number;
}

export interface Placed {
  /** Column of each node, from 0. */
  readonly layer: readonly number[];
  /** Place of each node in its column, from 0. */
  readonly place: readonly number[];
  /** Number of nodes in each column. */
  readonly sizes: readonly number[];
}

const SWEEPS = 6;

/** Returns the places of the nodes 0 … count - 1. */
export function layout(count: number, links: readonly Link[]): Placed {
  const layer = layers(count, links);
  const columns: number[][] = Array.from(
    { length: 1 + layer.reduce((a, b) => Math.max(a, b), 0) },
    () => [],
  );
  for (const [node, at] of layer.entries()) columns[at]?.push(node);
  const place = new Array<number>(count).fill(0);
  const number = () => {
    for (const column of columns)
      column.forEach((node, at) => {
        place[node] = at;
      });
  };
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const ahead = sweep % 2 === 0;
    for (const column of ahead ? columns : [...columns].reverse())
      sortByNeighbours(column, links, place, ahead);
    number();
  }
  return { layer, place, sizes: columns.map((column) => column.length) };
}

/**
 * Returns the length of the longest way to each node from a node without incoming arrows. Arrows
 * that close a cycle are left out.
 */
function layers(count: number, links: readonly Link[]): number[] {
  const out: number[][] = Array.from({ length: count }, () => []);
  for (const { from, to } of links) if (from !== to) out[from]?.push(to);
  const state = new Uint8Array(count);
  const order: number[] = [];
  const kept: Link[] = [];
  // Depth first, without recursion: a graph may be a chain of thousands.
  for (let start = 0; start < count; start++) {
    if (state[start]) continue;
    const stack: [number, number][] = [[start, 0]];
    state[start] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1] as [number, number];
      const next = out[top[0]]?.[top[1]++];
      if (next === undefined) {
        state[top[0]] = 2;
        order.push(top[0]);
        stack.pop();
      } else if (state[next] !== 1) {
        kept.push({ from: top[0], to: next });
        if (!state[next]) {
          state[next] = 1;
          stack.push([next, 0]);
        }
      }
    }
  }
  const layer = new Array<number>(count).fill(0);
  const ahead: number[][] = Array.from({ length: count }, () => []);
  for (const { from, to } of kept) ahead[from]?.push(to);
  for (const node of order.reverse()) {
    for (const to of ahead[node] ?? [])
      layer[to] = Math.max(layer[to] ?? 0, (layer[node] ?? 0) + 1);
  }
  return layer;
}

/** Moves the nodes of a column near their neighbours in the other columns. */
function sortByNeighbours(
  column: number[],
  links: readonly Link[],
  place: number[],
  ahead: boolean,
): void {
  const sums = new Map<number, [number, number]>(column.map((node) => [node, [0, 0]]));
  for (const { from, to } of links) {
    const sum = sums.get(ahead ? to : from);
    if (!sum) continue;
    sum[0] += place[ahead ? from : to] ?? 0;
    sum[1]++;
  }
  const mean = (node: number) => {
    const [sum, n] = sums.get(node) ?? [0, 0];
    return n ? sum / n : (place[node] ?? 0);
  };
  column.sort((a, b) => mean(a) - mean(b) || a - b);
}
